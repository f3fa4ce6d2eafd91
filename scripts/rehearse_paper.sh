#!/usr/bin/env bash
# Rehearses the paper in minutes, without weights, data or a GPU: plans all of sweeps/paper, runs it
# with a worker that answers each trial with given numbers, reports it, and compares the reports
# with the expected values.
#
#   scripts/rehearse_paper.sh [published|noise|all] [FOLDER_OF_PROGRAMS [FOLDER]]
#
# published   every trial answers with the paper's numbers: every printed cell of tables 1 to 16 and
#             every printed point of figure 3 must reappear, except for the listed errata
# noise       three seeds with different numbers: means, deviations, intervals, tests and marks must
#             equal those of numpy and scipy (scripts/statistics_venv.sh; exits with 77 if they are missing)
# all         both (the default)
#
# If pdflatex, booktabs and pgfplots are installed, the LaTeX of all tables and figures must also
# compile without warnings.
#
# FOLDER_OF_PROGRAMS is build/release/bin, else build/no-torch/bin. Databases, runs and the page
# with all reports go to FOLDER (build/rehearsal) and replace those of an earlier rehearsal.
caller=$PWD
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

# absolute PATH: resolves a path relative to the caller's folder.
absolute() { case "$1" in /*) printf '%s' "$1" ;; *) printf '%s' "$caller/$1" ;; esac; }

feed=${1:-all}
case "$feed" in
  all) feeds=(published noise) ;;
  published | noise) feeds=("$feed") ;;
  *) die "unknown argument '$feed'; expected published, noise or all" ;;
esac
if [ $# -ge 2 ]; then
  programs=$(absolute "$2")
else
  programs=$PWD/build/release/bin
  [ -x "$programs/petlab" ] || programs=$PWD/build/no-torch/bin
fi
petlab=$programs/petlab
[ -x "$petlab" ] || die "$programs: there is no program petlab in it; scripts/build.sh makes it"
out=$PWD/build/rehearsal
[ $# -lt 3 ] || out=$(absolute "$3")
[ $# -le 3 ] || die "found '$4' too, expected no more than three arguments"

scipy=
if [[ " ${feeds[*]} " == *" noise "* ]] && ! scipy=$(scripts/statistics_venv.sh --there); then
  say "SKIPPED: numpy and scipy are not in $PETLAB_HOME/python-statistics;" \
    "scripts/setup.sh --dev installs them"
  exit 77
fi

# Removes only the results of an earlier rehearsal with the same feed.
mkdir -p "$out"
rm -rf "${out:?}/home"
for feed in "${feeds[@]}"; do rm -rf "${out:?}/$feed"{.db,.db-shm,.db-wal,.runs,}; done
python3 -B scripts/rehearsal/world.py "$out/home"
mkdir -p "$out/slots"
in_rehearsal() {
  env -u PETLAB_DATA PETLAB_HOME="$out/home" PETLAB_SLOTS="$out/slots" PYTHONPATH=python/src \
    PYTHONDONTWRITEBYTECODE=1 "$@"
}
check() { # check PYTHON PROGRAM FEED [ARGUMENTS...]
  local python=$1 program=$2 feed=$3
  shift 3
  "$python" -B "scripts/rehearsal/$program" "$petlab" "$out/$feed.db" "$@"
}

compile_latex() { # compile_latex FOLDER: compiles its all.tex unchanged
  if ! command -v pdflatex >/dev/null || ! kpsewhich booktabs.sty pgfplots.sty >/dev/null; then
    say "The LaTeX was not compiled: there is no pdflatex with booktabs and pgfplots (Debian:" \
      "texlive-latex-recommended texlive-pictures)"
    return
  fi
  (cd "$1" && pdflatex -interaction=nonstopmode -halt-on-error all.tex >all.pdflatex 2>&1) ||
    die "pdflatex does not take $1/all.tex: $(grep -m 1 -A 3 '^!' "$1/all.log")"
  if grep -E '^(Overfull|Underfull)|Warning' "$1/all.log"; then
    die "pdflatex warns of $1/all.tex"
  fi
}

for feed in "${feeds[@]}"; do
  began=$SECONDS
  say "Fed with $feed numbers"
  for sweep in sweeps/paper/*.yaml; do
    in_rehearsal "$petlab" run "$sweep" --db "$out/$feed.db" --runs "$out/$feed.runs" --device cpu \
      --quiet --worker "python3 scripts/rehearsal/worker.py $feed"
  done
  ran=$((SECONDS - began))
  began=$SECONDS
  mkdir -p "$out/$feed"
  "$petlab" report all --db "$out/$feed.db" --out "$out/$feed" --format html,latex
  reported=$((SECONDS - began))
  compile_latex "$out/$feed"
  began=$SECONDS
  check python3 check_trials.py "$feed"
  if [ "$feed" = published ]; then check python3 check_printed.py "$feed"; fi
  if [ "$feed" = noise ]; then check "$scipy" check_statistics.py "$feed" "$feed"; fi
  say "Run in $ran s, reported in $reported s, compared in $((SECONDS - began)) s;" \
    "its page: $out/$feed/all.html"
done
