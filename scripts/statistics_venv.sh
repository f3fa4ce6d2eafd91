#!/usr/bin/env bash
# Creates a virtual environment with numpy and scipy, which the rehearsal of the paper compares
# petlab's statistics with, and prints its Python. A second call does nothing.
#
#   scripts/statistics_venv.sh           creates it if it is missing
#   scripts/statistics_venv.sh --there   exits with 1 if it is missing
#
# PETLAB_HOME   as for setup.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
. scripts/pinned_venv.sh

pinned_venv python-statistics "${1:-}" numpy==2.3.4 scipy==1.16.2
