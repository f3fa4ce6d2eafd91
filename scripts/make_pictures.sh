#!/usr/bin/env bash
# Creates the pictures in docs/pictures, all from real runs:
#
#   paper    table1.svg, figure3-*.svg            from the paper's rehearsal
#   figure   quickstart-storage.svg               from the quickstart
#   page     page-light.png, page-dark.png        petlab serve on the quickstart, in Chromium
#   run      run-light.svg, run-dark.svg          petlab run in a terminal; trains for minutes
#
#   scripts/make_pictures.sh [--programs FOLDER] [--rehearsal DB] [--quickstart DB] [WHICH...]
#
# WHICH is paper, figure, page or run; without it, all are created. These commands create what they
# need:
#
#   scripts/setup.sh --dev && scripts/quickstart.sh && scripts/rehearse_paper.sh published
# Python packages are installed in PETLAB_HOME.
#
# --programs     default: build/release/bin; for all but run also build/no-torch/bin
# --rehearsal    default: build/rehearsal/published.db
# --quickstart   default: build/quickstart/petlab.db
caller=$PWD
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

absolute() { case "$1" in /*) printf '%s' "$1" ;; *) printf '%s' "$caller/$1" ;; esac; }
programs=$PWD/build/release/bin
[ -x "$programs/petlab" ] || programs=$PWD/build/no-torch/bin
rehearsal=$PWD/build/rehearsal/published.db
quickstart=$PWD/build/quickstart/petlab.db
which=()
while [ $# -gt 0 ]; do
  case "$1" in
    --programs | --rehearsal | --quickstart)
      [ $# -ge 2 ] || die "$1 needs a value"
      printf -v "${1#--}" '%s' "$(absolute "$2")"
      shift
      ;;
    paper | figure | page | run) which+=("$1") ;;
    *) die "unknown argument '$1'; expected paper, figure, page, run, --programs, --rehearsal or" \
      "--quickstart" ;;
  esac
  shift
done
[ ${#which[@]} -gt 0 ] || which=(paper figure page run)
chosen() { [[ " ${which[*]} " == *" $1 "* ]]; }

# ---- What the pictures need, before any is created
petlab=$programs/petlab
[ -x "$petlab" ] || die "$programs: no program petlab in it; scripts/build.sh builds it"
if chosen paper; then
  [ -f "$rehearsal" ] ||
    die "$rehearsal is missing; scripts/rehearse_paper.sh published creates it"
fi
if chosen figure || chosen page; then
  [ -f "$quickstart" ] || die "$quickstart is missing; scripts/quickstart.sh creates it"
fi
if chosen page; then
  command -v chromium >/dev/null || die "chromium is missing; scripts/setup.sh --dev installs it"
fi
if chosen run; then
  [ -x "$programs/petlab-trainer" ] ||
    die "$programs: no program petlab-trainer in it; scripts/build.sh builds it"
  for folder in models/minilm data/snippets; do
    [ -d "$PETLAB_HOME/$folder" ] ||
      die "$PETLAB_HOME/$folder is missing; scripts/setup.sh downloads it"
  done
fi

if chosen page; then
  browser=$(scripts/browser_venv.sh) || die "Playwright cannot be installed"
fi
if chosen page || chosen run; then
  pictures=$(scripts/pictures_venv.sh) || die "pyte, rich and Pillow cannot be installed"
fi

# ---- The pictures
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if chosen paper; then
  "$petlab" report table1 --db "$rehearsal" --format json |
    scripts/pictures/table_svg.py >"$work/table1.svg"
  "$petlab" report figure3 --db "$rehearsal" --out "$work" --format svg
fi
if chosen figure; then
  "$petlab" report quickstart --db "$quickstart" --out "$work" --format svg
fi
if chosen page; then
  "$browser" -B scripts/pictures/served_page.py "$programs" "$quickstart" "$work"
  "$pictures" -B scripts/pictures/shrink.py "$work"/page-*.png
fi
if chosen run; then
  say "Training until a third of a sweep is done, for some minutes"
  "$pictures" -B scripts/pictures/live_run.py "$programs" "$work"
fi

out=docs/pictures
mkdir -p "$out"
largest=200000
for picture in "$work"/*.*g; do
  size=$(stat -c %s "$picture")
  [ "$size" -le "$largest" ] || die "$picture has $size bytes, must have no more than $largest"
  mv "$picture" "$out/"
  say "$out/$(basename "$picture"): $size bytes"
done
