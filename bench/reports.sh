#!/usr/bin/env bash
# Times reports and pages of large databases.
#
#   bench/reports.sh [--bin FOLDER] [--rehearsal FILE] [--copies N] [--metrics N] [--folder DIR]
#
# --bin FOLDER      the programs: petlab and make_database (default build/release/bin)
# --rehearsal FILE  the database of scripts/rehearse_paper.sh (default build/rehearsal/published.db)
# --copies N        number of copies of each of its trials, with other seeds (8: 10,848 trials)
# --metrics N       metric rows per trial (1000)
# --folder DIR      a folder on the disk under test (default: the current one)
#
# Prints one JSON line per report: processor seconds and peak memory in MiB, the median of three
# runs after one that reads the file into the page cache; for pages also their size. The paper's
# reports show the rehearsal's trials, one in 100 of them failed and with a log; `sweep` is a table
# of a single sweep with the same number of trials, from make_database.
. "$(dirname "${BASH_SOURCE[0]}")/../scripts/common.sh"

bin=build/release/bin
rehearsal=build/rehearsal/published.db
copies=8
metrics=1000
folder=$PWD
while [ $# -gt 0 ]; do
  case "$1" in
    --bin) bin=$2 ;;
    --rehearsal) rehearsal=$2 ;;
    --copies) copies=$2 ;;
    --metrics) metrics=$2 ;;
    --folder) folder=$2 ;;
    *) die "unknown argument '$1'; the head of this script lists what there is" ;;
  esac
  shift 2
done
for program in petlab make_database; do
  [ -x "$bin/$program" ] || die "there is no program $bin/$program; build it, or name another folder (--bin)"
done
[ -f "$rehearsal" ] || die "there is no database $rehearsal; scripts/rehearse_paper.sh published makes it"
work=$(mktemp -d "$folder/petlab-reports.XXXXXX")
trap 'rm -rf "$work"' EXIT
PYTHONDONTWRITEBYTECODE=1 python3 bench/reports/pages.py --work "$work" --rehearsal "$rehearsal" \
  --copies "$copies" --metrics "$metrics" --bin "$(realpath "$bin")"
