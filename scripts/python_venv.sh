#!/usr/bin/env bash
# Makes a virtual environment with what the Python package is tested with, and prints its Python.
# Does nothing twice.
#
#   scripts/python_venv.sh           makes it where it is not there
#   scripts/python_venv.sh --there   exit code 1 where it is not there
#
# PETLAB_HOME   as for setup.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

packages=(pandas==2.3.3 pandas-stubs==2.3.2.250926 pytest==8.4.2 mypy==1.18.2 ruff==0.14.2)
venv=$PETLAB_HOME/python-tests
stamp=$venv/.packages
case "${1:-}" in
  "") ;;
  --there)
    [ "$(cat "$stamp" 2>/dev/null)" = "${packages[*]}" ] || exit 1
    printf '%s\n' "$venv/bin/python3"
    exit 0
    ;;
  *) die "unknown argument '$1'; wanted nothing or --there" ;;
esac

mkdir -p "$PETLAB_HOME" || die "cannot make the folder $PETLAB_HOME; PETLAB_HOME names another"
exec 9>"$PETLAB_HOME/.python-tests.lock"
flock 9
if [ "$(cat "$stamp" 2>/dev/null)" != "${packages[*]}" ]; then
  say "installing ${packages[*]} in $venv" >&2
  rm -rf "$venv"
  python3 -m venv "$venv" >&2 || die "python3 -m venv $venv failed"
  "$venv/bin/python3" -m pip install --quiet --disable-pip-version-check "${packages[@]}" >&2 ||
    die "pip cannot install ${packages[*]}"
  printf '%s' "${packages[*]}" >"$stamp"
fi
printf '%s\n' "$venv/bin/python3"
