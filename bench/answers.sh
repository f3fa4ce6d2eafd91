#!/usr/bin/env bash
# How long the questions of docs/database.md take on large databases, which make_database makes.
#
#   bench/answers.sh [--bin FOLDER] [--sizes "TRIALSxMETRICS..."] [--folder DIR]
#
# --bin FOLDER    the programs: petlab and make_database (default build/release/bin)
# --sizes "…"     trials, and rows of metrics a trial ("10000x1000 100000x20")
# --folder DIR    a folder on the disk to be measured (default: the current one)
#
# One JSON line a question: seconds, processor seconds and the most memory in MiB, the median of five runs after one
# that reads the file into the page cache.
. "$(dirname "${BASH_SOURCE[0]}")/../scripts/common.sh"

bin=build/release/bin
sizes="10000x1000 100000x20"
folder=$PWD
while [ $# -gt 0 ]; do
  case "$1" in
    --bin) bin=$2 ;;
    --sizes) sizes=$2 ;;
    --folder) folder=$2 ;;
    *) die "unknown argument '$1'; the head of this script lists what there is" ;;
  esac
  shift 2
done
for program in petlab make_database; do
  [ -x "$bin/$program" ] || die "there is no program $bin/$program; build it, or name another folder (--bin)"
done
work=$(mktemp -d "$folder/petlab-answers.XXXXXX")
trap 'rm -rf "$work"' EXIT
PYTHONDONTWRITEBYTECODE=1 python3 bench/answers/questions.py --work "$work" --sizes "$sizes" --bin "$(realpath "$bin")"
