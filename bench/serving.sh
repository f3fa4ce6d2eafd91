#!/usr/bin/env bash
# Times petlab serve under many requests, and a sweep with and without a server running.
#
#   bench/serving.sh [--bin FOLDER] [--rounds N] [--trials N] [--folder DIR]
#
# --bin FOLDER    the programs: petlab and bench-worker (default build/release/bin)
# --rounds N      rounds of each kind, in turn (default 5)
# --trials N      trivial trials per run of the sweep (default 5000)
# --folder DIR    a folder on the disk under test (default: the current one)
#
# Prints one JSON line per measurement. Requests: 200 at once for the whole page, while 64 pages
# listen for changes and 20 clients do not read the answer they requested; once with clients that
# accept compression, as browsers do, and once without. Runs: with two pages open, and without a
# server.
. "$(dirname "${BASH_SOURCE[0]}")/../scripts/common.sh"

bin=build/release/bin
rounds=5
trials=5000
folder=$PWD
while [ $# -gt 0 ]; do
  case "$1" in
    --bin) bin=$2 ;;
    --rounds) rounds=$2 ;;
    --trials) trials=$2 ;;
    --folder) folder=$2 ;;
    *) die "unknown argument '$1'; the head of this script lists what there is" ;;
  esac
  shift 2
done
for program in petlab bench-worker; do
  [ -x "$bin/$program" ] || die "there is no program $bin/$program; build it, or name another folder (--bin)"
done
work=$(mktemp -d "$folder/petlab-serving.XXXXXX")
export PETLAB_SLOTS=$work/slots PETLAB_HOME=$work/home
trap 'rm -rf "$work"' EXIT
python3 bench/serving/load.py "$(realpath "$bin")" "$work" "$rounds" "$trials"
