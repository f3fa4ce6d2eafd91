#!/usr/bin/env bash
# Tests petlab on a machine with a GPU: compares its numbers with the CPU's, times training next to
# eager PyTorch, compares planned memory with measured memory, and runs a sweep. Prints Markdown for
# docs/internals/benchmarks.md.
#
#   scripts/first_gpu_hour.sh [FOLDER_OF_PROGRAMS] [--rounds N]
#
# FOLDER_OF_PROGRAMS   build/release/bin, with trainer_bench and device_tests
# PETLAB_PEERS         folder with train_step_peers.py (default ../shared/peers); without it, nothing
#                      is timed
# PYTHON               a Python with PyTorch for CUDA, transformers and peft (default python3)
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

programs=build/release/bin
rounds=3
while [ $# -gt 0 ]; do
  case "$1" in
    --rounds)
      rounds=${2:?}
      shift 2
      ;;
    -*) die "unknown option '$1'; the first comment of this file has all there are" ;;
    *)
      programs=$1
      shift
      ;;
  esac
done
programs=$(realpath "$programs")
[ -x "$programs/petlab" ] || die "$programs has no petlab; scripts/build.sh makes it"
peers=${PETLAB_PEERS:-../shared/peers}
python=${PYTHON:-python3}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0

printf '## Machine\n\n'
nvidia-smi --query-gpu=name,memory.total,driver_version --format=csv,noheader | sed 's/^/    /' ||
  die "nvidia-smi lists no GPU"
"$programs/petlab" doctor | grep -E "gpus|libtorch" | sed 's/^ */    /; s/ in .*//'

printf "\n## The CPU's numbers\n\n"
if PETLAB_TEST_DEVICE=cuda "$programs/device_tests" "~[pretend]~[counted]" \
  >"$scratch/tests.txt" 2>&1; then
  grep "tests passed" "$scratch/tests.txt" | sed 's/^/    /'
else
  failed=1
  { grep -A12 "FAILED:" "$scratch/tests.txt" | head -n 60; tail -n 3 "$scratch/tests.txt"; } |
    sed 's/^/    /'
fi

printf '\n## Training steps\n'
if [ -f "$peers/train_step_peers.py" ]; then
  "$python" bench/gpu/steps.py --peers "$peers" --bench "$programs/trainer_bench" \
    --scratch "$scratch" --rounds "$rounds" || failed=1
else
  printf 'Not timed: %s has no train_step_peers.py.\n' "$peers"
fi

printf '\n## Memory\n'
python3 bench/gpu/memory.py "$programs" "$scratch/memory" || failed=1

printf '\n## A sweep\n'
if [ -d "$PETLAB_HOME/models/minilm" ]; then
  began=$SECONDS
  "$programs/petlab" run sweeps/quickstart.yaml --db "$scratch/sweep.db" --device gpu --pack 4 \
    --quiet >/dev/null || failed=1
  printf '    petlab run sweeps/quickstart.yaml --device gpu --pack 4    # %s s\n\n' \
    $((SECONDS - began))
  "$programs/petlab" results --db "$scratch/sweep.db" --format markdown || failed=1
else
  printf 'Not run: there is no %s/models/minilm.\n' "$PETLAB_HOME"
fi
exit $failed
