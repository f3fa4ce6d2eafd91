#!/usr/bin/env bash
# Creates a virtual environment with the prose linter and the Markdown parser that check_prose.sh
# uses, and prints its Python. A second call does nothing.
#
#   scripts/prose_venv.sh           creates it if it is missing
#   scripts/prose_venv.sh --there   exits with 1 if it is missing
#
# PETLAB_HOME   as for setup.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
. scripts/pinned_venv.sh

pinned_venv python-prose "${1:-}" proselint==0.16.0 markdown-it-py==4.3.0
