#!/usr/bin/env bash
# Creates a virtual environment with the Python libraries that petlab is compared with in tests and
# benchmarks, and prints its Python. A second call does nothing. Uses LibTorch's wheel as torch if
# it is installed.
#
#   scripts/library_venv.sh           creates it if it is missing
#   scripts/library_venv.sh --there   exits with 1 if it is missing
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
