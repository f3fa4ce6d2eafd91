#!/usr/bin/env bash
# Creates a virtual environment with MLflow, trackio and W&B, with which a test reads petlab's
# exports, and prints its Python. A second call does nothing.
#
#   scripts/trackers_venv.sh           creates it if it is missing
#   scripts/trackers_venv.sh --there   exits with 1 if it is missing
#
# PETLAB_HOME   as for setup.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
. scripts/pinned_venv.sh

# mlflow-skinny has the same store of files as mlflow, which is ten times as large.
pip_options=(--no-compile)
pinned_venv python-trackers "${1:-}" mlflow-skinny==3.17.2 trackio==0.43.0 wandb==0.31.0
