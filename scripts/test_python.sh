#!/usr/bin/env bash
# Checks the Python package: its style, its types, and its tests on the built programs.
#
#   scripts/test_python.sh FOLDER_OF_PROGRAMS [PYTEST-ARGUMENTS...]
#
# Exits with 77 and a message if its tools are not installed (scripts/setup.sh --dev).
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

[ $# -ge 1 ] || die "found nothing, expected the folder of the built programs"
[ -x "$1/petlab" ] || die "$1: there is no program petlab in it; scripts/build.sh makes it"
PETLAB_PROGRAMS=$(cd "$1" && pwd)
export PETLAB_PROGRAMS
shift
if ! python=$(scripts/python_venv.sh --there); then
  say "SKIPPED: pandas, pytest, mypy and ruff are not in $PETLAB_HOME/python-tests;" \
    "scripts/setup.sh --dev installs them"
  exit 77
fi
cd python || exit 1
"$python" -m ruff check --no-cache --config pyproject.toml . ../examples
"$python" -m ruff format --no-cache --config pyproject.toml --check . ../examples
# Checks for this Python version: type stubs of the installed libraries may use newer syntax.
"$python" -m mypy --cache-dir /dev/null \
  --python-version "$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')"
exec "$python" -m pytest -q -p no:cacheprovider "$@"
