#!/usr/bin/env bash
# Makes a virtual environment with numpy and scipy, which the rehearsal of the paper compares
# petlab's statistics with, and prints its Python. Does nothing twice.
#
#   scripts/statistics_venv.sh           makes it where it is not there
#   scripts/statistics_venv.sh --there   exit code 1 where it is not there
#
# PETLAB_HOME   as for setup.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
. scripts/pinned_venv.sh

pinned_venv python-statistics "${1:-}" numpy==2.3.4 scipy==1.16.2
