#!/usr/bin/env bash
# Makes a virtual environment with jsonschema and PyYAML, with which a test checks files by the schemas of
# `petlab schema`, and prints its Python. Does nothing twice.
#
#   scripts/schema_venv.sh           makes it where it is not there
#   scripts/schema_venv.sh --there   exit code 1 where it is not there
#
# PETLAB_HOME   as for setup.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
. scripts/pinned_venv.sh

pinned_venv python-schema "${1:-}" jsonschema==4.26.0 PyYAML==6.0.3
