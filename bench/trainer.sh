#!/usr/bin/env bash
# Times training, evaluation and start-up of petlab-trainer and of the usual Python programs in
# alternating rounds of one run, and measures memory.
#
#   bench/trainer.sh [--bench PROGRAM] [--rounds N] [--threads N] [--steps N] [--tasks NAME,NAME…]
#                    [--arms NAME,NAME…] [--parts start,memory,evaluate,train,products]
#                    [--compute float32|bf16]: precision of petlab's training steps
#                    [--libraries chosen,onednn,blas]: libraries whose products are timed alone;
#                        chosen: the one that a trial uses on this processor
#                    [--wide-mkl]: use MKL's kernels for Intel's AVX-512 throughout, on another
#                        processor with these instructions
#
# PETLAB_PEERS   folder with train_step_peers.py, eval_peers.py and startup_peers.py (default
#                ../shared/peers); their data is next to it
# PETLAB_HOME    where the Python packages are installed (default ~/.local/share/petlab)
#
# Only ratios within one run are meaningful. On a busy machine use those per processor second.
. "$(dirname "${BASH_SOURCE[0]}")/../scripts/common.sh"

arguments=(--bench build/release/bin/trainer_bench)
while [ $# -gt 0 ]; do
  case "$1" in
    --wide-mkl)
      LD_PRELOAD=$(realpath build/release/bin/wide-mkl.so) || die "build target wide-mkl first"
      export LD_PRELOAD
      shift
      continue
      ;;
    --bench | --rounds | --threads | --steps | --tasks | --arms | --parts | --compute | \
      --libraries)
      arguments+=("$1" "${2:?}")
      ;;
    *) die "unknown argument '$1'; the first comment of this file has all there are" ;;
  esac
  shift 2
done
peers=${PETLAB_PEERS:-../shared/peers}
[ -f "$peers/train_step_peers.py" ] ||
  die "there is no $peers/train_step_peers.py; PETLAB_PEERS names its folder"
python=$(scripts/library_venv.sh) || die "no Python libraries: nothing to compare with"
scratch=${TMPDIR:-/tmp}/petlab-trainer-bench
mkdir -p "$scratch"
"$python" bench/trainer/rounds.py --peers "$peers" --scratch "$scratch" "${arguments[@]}"
