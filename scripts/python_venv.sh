#!/usr/bin/env bash
# Makes a virtual environment with what the Python package is tested with, and prints its Python.
# Does nothing twice.
#
#   scripts/python_venv.sh           makes it where it is not there
#   scripts/python_venv.sh --there   exit code 1 where it is not there
#
# PETLAB_HOME   as for setup.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
. scripts/pinned_venv.sh

pinned_venv python-tests "${1:-}" \
  pandas==2.3.3 pandas-stubs==2.3.2.250926 pytest==8.4.2 mypy==1.18.2 ruff==0.14.2
