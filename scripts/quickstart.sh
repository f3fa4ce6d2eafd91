#!/usr/bin/env bash
# Sets everything up, builds petlab, runs a real sweep end to end, prints its table and draws its
# figure. Run again, it finds the trials done and prints the same.
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

scripts/setup.sh
scripts/build.sh release -DPETLAB_TESTS=OFF -DPETLAB_BENCH=OFF
out=build/quickstart
mkdir -p "$out"
say "Running sweeps/quickstart.yaml (some minutes; Ctrl-C stops it, the same command goes on)"
build/release/bin/petlab run sweeps/quickstart.yaml --db "$out/petlab.db" --runs "$out/runs"
say "The table, and the figure's points"
build/release/bin/petlab report quickstart --db "$out/petlab.db" --out "$out"
say "The page with both: $PWD/$out/quickstart.html"
