#!/usr/bin/env bash
# Sets up and builds petlab, runs a real sweep end to end, prints its table and draws its figure. A
# second call finds the trials done and prints the same.
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

scripts/setup.sh
scripts/build.sh release -DPETLAB_TESTS=OFF -DPETLAB_BENCH=OFF
build/release/bin/petlab quickstart --in build/quickstart
