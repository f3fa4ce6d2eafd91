#!/usr/bin/env bash
# Sets up and builds petlab, runs a real sweep end to end, prints its table and draws its figure. A
# second call finds the trials done and prints the same.
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

scripts/setup.sh
scripts/build.sh release -DPETLAB_TESTS=OFF -DPETLAB_BENCH=OFF
sweep=$PWD/sweeps/quickstart.yaml
petlab=$PWD/build/release/bin/petlab
mkdir -p build/quickstart
cd build/quickstart || exit  # petlab.db and petlab.runs go here
say "Running sweeps/quickstart.yaml (a few minutes; Ctrl-C stops it, the same command resumes it)"
"$petlab" run "$sweep"
say "The table, and the figure's points"
"$petlab" report quickstart --out .
say "The page with both: $PWD/quickstart.html"
