#!/usr/bin/env bash
# Times the questions of docs/guides/explore-results.md on large databases from make_database.
#
#   bench/answers.sh [--bin FOLDER] [--sizes "TRIALSxMETRICS..."] [--mlflow "TRIALSxMETRICS..."] [--folder DIR]
#
# --bin FOLDER    the programs: petlab and make_database (default build/release/bin)
# --sizes "…"     numbers of trials and of metric rows per trial ("10000x1000 100000x20")
# --mlflow "…"    sizes at which MLflow's SQLite store answers the same questions (10000x20; "":
#                 none)
# --folder DIR    a folder on the disk under test (default: the current one)
# PETLAB_HOME     where MLflow is installed (default ~/.local/share/petlab)
#
# Prints one JSON line per question: wall and processor seconds and peak memory in MiB, each the
# median of five runs. A first run reads the file into the page cache; cold_seconds is its time.
# MLflow runs once, after its store was filled. MLflow's "start" is the time its client needs before
# its first query; MLflow has no compare and no diff.
. "$(dirname "${BASH_SOURCE[0]}")/../scripts/common.sh"

bin=build/release/bin
sizes="10000x1000 100000x20"
mlflow=10000x20
folder=$PWD
while [ $# -gt 0 ]; do
  case "$1" in
    --bin) bin=$2 ;;
    --sizes) sizes=$2 ;;
    --mlflow) mlflow=$2 ;;
    --folder) folder=$2 ;;
    *) die "unknown argument '$1'; the head of this script lists what there is" ;;
  esac
  shift 2
done
for program in petlab make_database; do
  [ -x "$bin/$program" ] || die "there is no program $bin/$program; build it, or name another folder (--bin)"
done
venv=$PETLAB_HOME/answers-peers
if [ -n "$mlflow" ] && ! "$venv/bin/python" -c 'import mlflow, pandas, sqlalchemy' 2>/dev/null; then
  say "installing MLflow and pandas in $venv" >&2
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet mlflow-skinny sqlalchemy alembic pandas ||
    die "MLflow cannot be installed: --mlflow \"\" leaves it out"
fi
load() { printf '{"load": [%s], "cores": %s}\n' "$(cut -d' ' -f1-3 /proc/loadavg | tr ' ' ,)" "$(nproc)"; }
work=$(mktemp -d "$folder/petlab-answers.XXXXXX")
trap 'rm -rf "$work"' EXIT
load
PYTHONDONTWRITEBYTECODE=1 python3 bench/answers/questions.py --work "$work" --sizes "$sizes" --mlflow "$mlflow" \
  --bin "$(realpath "$bin")" --python "$venv/bin/python"
load
