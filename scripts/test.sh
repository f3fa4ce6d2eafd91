#!/usr/bin/env bash
# Sets everything up, builds petlab with its tests and runs all of them.
# Arguments go to CMake: scripts/test.sh -DPETLAB_WERROR=ON
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

scripts/setup.sh --dev
scripts/build.sh release -DPETLAB_TESTS=ON -DPETLAB_BENCH=ON "$@"
say "Running the tests"
# Two more than the number of cores, because several tests mostly wait.
ctest --preset release -j "$(($(nproc) + 2))"
