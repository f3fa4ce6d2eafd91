#!/usr/bin/env bash
# Creates a virtual environment with TensorBoard, whose reader a test uses to read petlab's exports,
# and prints its Python. A second call does nothing.
#
#   scripts/tensorboard_venv.sh           creates it if it is missing
#   scripts/tensorboard_venv.sh --there   exits with 1 if it is missing
#
# PETLAB_HOME   as for setup.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
. scripts/pinned_venv.sh

pinned_venv python-tensorboard "${1:-}" tensorboard==2.21.0
