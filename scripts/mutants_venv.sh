#!/usr/bin/env bash
# Creates a virtual environment with tree-sitter's C++ grammar, which scripts/mutate.py uses to find
# the function that a mutant changes, and prints its Python. Does nothing if it already exists.
#
#   scripts/mutants_venv.sh           creates it if it is missing
#   scripts/mutants_venv.sh --there   exits with 1 if it is missing
#
# PETLAB_HOME   as for setup.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
. scripts/pinned_venv.sh

pinned_venv python-mutants "${1:-}" tree-sitter==0.26.1 tree-sitter-cpp==0.23.4
