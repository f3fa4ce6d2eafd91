#!/usr/bin/env bash
# Installs a build with cmake --install and runs the copies: installed_programs.sh BUILD
set -euo pipefail

build=$1
prefix=$(mktemp -d)
trap 'rm -rf "$prefix"' EXIT
cmake --install "$build" --prefix "$prefix" >"$prefix/log"
[ "$("$prefix/bin/petlab" --version)" = "$("$build/bin/petlab" --version)" ]
"$prefix/bin/petlab-fetch" --version >/dev/null
printf '{"v": 1, "backbones": [], "tasks": [], "data_folders": []}' | "$prefix/bin/petlab-trainer-check"
if [ -e "$build/bin/petlab-trainer" ]; then
  # It finds the LibTorch that it was built with.
  [ "$("$prefix/bin/petlab-trainer" --describe)" = "$("$build/bin/petlab-trainer" --describe)" ]
fi
