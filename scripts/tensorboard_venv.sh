#!/usr/bin/env bash
# Makes a virtual environment with TensorBoard, with whose own reader a test reads what petlab exports
# for it, and prints its Python. Does nothing twice.
#
#   scripts/tensorboard_venv.sh           makes it where it is not there
#   scripts/tensorboard_venv.sh --there   exit code 1 where it is not there
#
# PETLAB_HOME   as for setup.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
. scripts/pinned_venv.sh

pinned_venv python-tensorboard "${1:-}" tensorboard==2.21.0
