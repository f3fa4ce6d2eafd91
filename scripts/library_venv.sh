#!/usr/bin/env bash
# Makes a virtual environment with the Python libraries that petlab is tested and timed beside, and
# prints its Python. Does nothing twice. LibTorch's wheel serves as its torch where it is there.
#
#   scripts/library_venv.sh           makes it where it is not there
#   scripts/library_venv.sh --there   exit code 1 where it is not there
#
# PETLAB_HOME, PETLAB_TORCH_INDEX   as for setup.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

packages=(torch==2.13.0 transformers==4.57.6 peft==0.21.2 adapters==1.3.0)
venv=$PETLAB_HOME/python-libraries
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
exec 9>"$PETLAB_HOME/.python-libraries.lock"
flock 9
if [ "$(cat "$stamp" 2>/dev/null)" != "${packages[*]}" ]; then
  say "installing ${packages[*]} in $venv" >&2
  rm -rf "$venv"
  python3 -m venv "$venv" >&2 || die "python3 -m venv $venv failed"
  wheel=$(find "$PETLAB_HOME/venv/lib" -maxdepth 2 -type d -name site-packages 2>/dev/null |
    head -n 1) || true
  own=$(find "$venv/lib" -maxdepth 2 -type d -name site-packages | head -n 1)
  index=()
  [ -n "${PETLAB_TORCH_INDEX:-}" ] && index=(--extra-index-url "$PETLAB_TORCH_INDEX")
  [ -n "$wheel" ] && printf '%s\n' "$wheel" >"$own/libtorch.pth"
  "$venv/bin/python3" -m pip install --quiet --disable-pip-version-check "${index[@]}" \
    "${packages[@]}" >&2 ||
    die "pip cannot install ${packages[*]}"
  printf '%s' "${packages[*]}" >"$stamp"
fi
printf '%s\n' "$venv/bin/python3"
