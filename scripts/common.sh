# shellcheck shell=bash
# Shared by the scripts: messages, and the folders of downloaded tools. Sourced, never run.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
PETLAB_HOME=${PETLAB_HOME:-${XDG_DATA_HOME:-$HOME/.local/share}/petlab}
export PETLAB_HOME

say() { printf '== %s\n' "$*"; }
die() {
  printf '%s: %s\n' "$(basename "$0")" "$*" >&2
  exit 1
}
jobs_for_build() {
  # Compiling a file that includes LibTorch takes up to 2.5 GiB.
  local cores memory_kib by_memory
  cores=$(nproc)
  memory_kib=$(awk '/^MemAvailable:/ {print $2}' /proc/meminfo)
  by_memory=$((memory_kib / 2600000))
  [ "$by_memory" -ge 1 ] || by_memory=1
  [ "$by_memory" -lt "$cores" ] && cores=$by_memory
  printf '%s' "$cores"
}
# All clones and build folders share one compiler cache.
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
export CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
