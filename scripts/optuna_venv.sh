#!/usr/bin/env bash
# Creates a virtual environment with Optuna, with which a test searches by TPE, and prints its Python. A second call
# does nothing.
#
#   scripts/optuna_venv.sh           creates it if it is missing
#   scripts/optuna_venv.sh --there   exits with 1 if it is missing
#
# PETLAB_HOME   as for setup.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
. scripts/pinned_venv.sh

pinned_venv python-optuna "${1:-}" optuna==5.0.0
