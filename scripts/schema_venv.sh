#!/usr/bin/env bash
# Creates a virtual environment with jsonschema and PyYAML, which a test uses to check files against
# the schemas of `petlab schema`, and prints its Python. A second call does nothing.
#
#   scripts/schema_venv.sh           creates it if it is missing
#   scripts/schema_venv.sh --there   exits with 1 if it is missing
#
# PETLAB_HOME   as for setup.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
. scripts/pinned_venv.sh

pinned_venv python-schema "${1:-}" jsonschema==4.26.0 PyYAML==6.0.3
