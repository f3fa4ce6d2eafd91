#!/usr/bin/env bash
# Shows how time and memory of each step grow with the number of trials of a sweep, for two builds
# in the same run.
#
#   bench/scale.sh [--bin FOLDER] [--beside FOLDER] [--trials "N..."] [--planned "N..."]
#                  [--folder DIR]
#
# --bin FOLDER     the programs under test, petlab and bench-worker (default build/release/bin)
# --beside FOLDER  an older build's programs, measured in turn with them
# --trials "N..."  sizes of the sweeps to plan, run, query and report ("1000 10000 100000")
# --planned "N..." sizes of the sweeps that are only planned ("100000 1000000")
# --folder DIR     a folder on the disk under test (default: the current one)
# --limit SECONDS  steps that take longer are stopped and reported as such (1800)
#
# Prints one JSON line per step: wall seconds, processor seconds and petlab's peak memory in MiB. A
# trial runs bench-worker, which writes `started`, a synced `finished` and no metric. The last step,
# a report with a row for each training step, uses one trial with that many steps.
. "$(dirname "${BASH_SOURCE[0]}")/../scripts/common.sh"

bin=build/release/bin
beside=
trials="1000 10000 100000"
planned="100000 1000000"
folder=$PWD
limit=1800
while [ $# -gt 0 ]; do
  case "$1" in
    --bin) bin=$2 ;;
    --beside) beside=$2 ;;
    --trials) trials=$2 ;;
    --planned) planned=$2 ;;
    --folder) folder=$2 ;;
    --limit) limit=$2 ;;
    *) die "unknown argument '$1'; the head of this script lists what there is" ;;
  esac
  shift 2
done
for place in "$bin" ${beside:+"$beside"}; do
  for program in petlab bench-worker; do
    [ -x "$place/$program" ] || die "there is no program $place/$program; build it, or name another (--bin, --beside)"
  done
done
work=$(mktemp -d "$folder/petlab-scale.XXXXXX")
trap 'rm -rf "$work"' EXIT
export PETLAB_SLOTS=$work/slots
exec python3 bench/scale/steps.py --work "$work" --limit "$limit" --trials "$trials" \
  --planned "$planned" --bin "$(realpath "$bin")" ${beside:+--beside "$(realpath "$beside")"}
