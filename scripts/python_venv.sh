#!/usr/bin/env bash
# Creates a virtual environment with the test dependencies of the Python package, and prints its
# Python. A second call does nothing.
#
#   scripts/python_venv.sh           creates it if it is missing
#   scripts/python_venv.sh --there   exits with 1 if it is missing
#
# PETLAB_HOME   as for setup.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
. scripts/pinned_venv.sh

pinned_venv python-tests "${1:-}" \
  pandas==2.3.3 pandas-stubs==2.3.2.250926 pytest==8.4.2 mypy==1.18.2 ruff==0.14.2
