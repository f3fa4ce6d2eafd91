#!/usr/bin/env bash
# Configures and builds a preset: scripts/build.sh [PRESET [CMAKE-OPTIONS...]]   (default release)
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

preset=${1:-release}
[ $# -gt 0 ] && shift
say "Building preset $preset in build/$preset"
mkdir -p build
configure_log=build/configure-$preset.log
cmake --preset "$preset" "$@" >"$configure_log" 2>&1 || {
  tail -n 20 "$configure_log" >&2
  die "cmake --preset $preset failed (the whole output: $configure_log)"
}
cmake --build "build/$preset" -j "$(jobs_for_build)"
