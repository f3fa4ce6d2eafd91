#!/usr/bin/env bash
# Makes a virtual environment with the Python libraries that petlab is tested and timed beside, and
# prints its Python. Does nothing twice. LibTorch's wheel serves as its torch where it is there.
#
#   scripts/library_venv.sh           makes it where it is not there
#   scripts/library_venv.sh --there   exit code 1 where it is not there
#
# PETLAB_HOME, PETLAB_TORCH_INDEX   as for setup.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
. scripts/pinned_venv.sh

prepare_venv() {
  local wheel
  wheel=$(find "$PETLAB_HOME/venv/lib" -maxdepth 2 -type d -name site-packages 2>/dev/null |
    head -n 1) || true
  [ -z "$wheel" ] || printf '%s\n' "$wheel" >"$1/libtorch.pth"
}
[ -z "${PETLAB_TORCH_INDEX:-}" ] || pip_options=(--extra-index-url "$PETLAB_TORCH_INDEX")

pinned_venv python-libraries "${1:-}" \
  torch==2.13.0 transformers==4.57.6 peft==0.21.2 adapters==1.3.0
