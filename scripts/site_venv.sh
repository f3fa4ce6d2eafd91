#!/usr/bin/env bash
# Creates a virtual environment with MkDocs Material, which builds the site from docs/, and prints
# its Python. A second call does nothing.
#
#   scripts/site_venv.sh           creates it if it is missing
#   scripts/site_venv.sh --there   exits with 1 if it is missing
#
# PETLAB_HOME   as for setup.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
. scripts/pinned_venv.sh

pinned_venv python-site "${1:-}" mkdocs==1.6.1 mkdocs-material==9.8.2
