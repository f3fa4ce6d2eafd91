#!/usr/bin/env bash
# Creates a virtual environment with NVRTC (58 MB), with which a test compiles the kernels for GPUs,
# and prints its Python. It needs no GPU. A second call does nothing.
#
#   scripts/nvrtc_venv.sh           creates it if it is missing
#   scripts/nvrtc_venv.sh --there   exits with 1 if it is missing
#
# PETLAB_HOME   as for setup.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
. scripts/pinned_venv.sh

pinned_venv python-nvrtc "${1:-}" nvidia-cuda-nvrtc==13.0.88
