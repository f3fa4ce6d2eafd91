#!/usr/bin/env bash
# Creates a virtual environment with a terminal emulator (pyte), rich, which draws its screen, and
# Pillow, which compresses pictures, and prints its Python. A second call does nothing.
#
#   scripts/pictures_venv.sh           creates it if it is missing
#   scripts/pictures_venv.sh --there   exits with 1 if it is missing
#
# PETLAB_HOME   as for setup.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
. scripts/pinned_venv.sh

pinned_venv python-pictures "${1:-}" pyte==0.8.2 rich==15.0.0 pillow==13.0.0
