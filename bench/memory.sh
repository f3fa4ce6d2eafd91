#!/usr/bin/env bash
# Compares the estimates of `petlab plan --memory` for RoBERTa-base and T5-base with the peak memory
# that petlab-trainer reports for training and evaluating them on a CPU.
#
#   bench/memory.sh [--bin FOLDER] [--threads N] [--shapes NAME,NAME…|all] [--gang N] [--folder DIR]
#
# --bin FOLDER     the programs, petlab and petlab-trainer (default build/release/bin)
# --threads N      threads of the trainer (2)
# --shapes …       rows of SHAPES in bench/memory/shapes.py (default: six of them); one or two
#                  minutes each
# --gang N         gangs of N equal trials of each shape instead of single trials
# --folder DIR     a folder with 10 GiB of free space, for two randomly initialized backbones and
#                  checkpoints (default: TMPDIR, or /tmp)
#
# Nothing is timed, so a busy machine gives the same numbers. A shape takes up to 10 GiB of memory.
. "$(dirname "${BASH_SOURCE[0]}")/../scripts/common.sh"

bin=build/release/bin
folder=${TMPDIR:-/tmp}
arguments=()
threads=2
while [ $# -gt 0 ]; do
  case "$1" in
    --bin) bin=${2:?} ;;
    --folder) folder=${2:?} ;;
    --threads) threads=${2:?} ;;
    --shapes | --gang) arguments+=("$1" "${2:?}") ;;
    *) die "unknown argument '$1'; the head of this script lists what there is" ;;
  esac
  shift 2
done
for program in petlab petlab-trainer; do
  [ -x "$bin/$program" ] || die "there is no program $bin/$program; build it, or name another folder (--bin)"
done
work=$(mktemp -d "$folder/petlab-memory.XXXXXX")
trap 'rm -rf "$work"' EXIT
export PETLAB_SLOTS=$work/slots
grep -m1 '^model name' /proc/cpuinfo || true
python3 bench/memory/shapes.py --work "$work" --bin "$(realpath "$bin")" --threads "$threads" \
  "${arguments[@]}"
