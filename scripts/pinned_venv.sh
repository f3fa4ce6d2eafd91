# shellcheck shell=bash
# Creates virtual environments of pinned packages. Sourced after common.sh, never run.

# pinned_venv NAME ARGUMENT PACKAGE...: prints the Python of $PETLAB_HOME/NAME, which has exactly
# these packages; creates it under a lock if necessary. With the argument --there it creates nothing
# and returns 1 if the environment is missing. The caller may define prepare_venv SITE_PACKAGES,
# which is called before pip, and the array pip_options.
pinned_venv() {
  local name=$1 argument=$2
  shift 2
  local venv=$PETLAB_HOME/$name
  local stamp=$venv/.packages
  case "$argument" in
    "") ;;
    --there)
      [ "$(cat "$stamp" 2>/dev/null)" = "$*" ] || exit 1
      printf '%s\n' "$venv/bin/python3"
      exit 0
      ;;
    *) die "unknown argument '$argument'; expected nothing or --there" ;;
  esac
  mkdir -p "$PETLAB_HOME" || die "cannot make the folder $PETLAB_HOME; PETLAB_HOME names another"
  exec 9>"$PETLAB_HOME/.$name.lock"
  flock 9
  if [ "$(cat "$stamp" 2>/dev/null)" != "$*" ]; then
    say "installing $* in $venv" >&2
    rm -rf "$venv"
    python3 -m venv "$venv" >&2 || die "python3 -m venv $venv failed"
    if declare -F prepare_venv >/dev/null; then
      prepare_venv "$(find "$venv/lib" -maxdepth 2 -type d -name site-packages | head -n 1)"
    fi
    "$venv/bin/python3" -m pip install --quiet --disable-pip-version-check "${pip_options[@]}" \
      "$@" >&2 ||
      die "pip cannot install $*"
    printf '%s' "$*" >"$stamp"
  fi
  printf '%s\n' "$venv/bin/python3"
}
pip_options=()
