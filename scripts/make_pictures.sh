#!/usr/bin/env bash
# Redraws the pictures of docs/ and README.md: table 1 and figure 3 of the paper from its rehearsal,
# accuracy against storage from the quickstart. Run both first:
#
#   scripts/rehearse_paper.sh published && scripts/quickstart.sh && scripts/make_pictures.sh
#
#   scripts/make_pictures.sh [FOLDER_OF_PROGRAMS [REHEARSAL.db [QUICKSTART.db]]]
#
# FOLDER_OF_PROGRAMS is build/release/bin, else build/no-torch/bin. The default databases are those
# that the two scripts leave in build/.
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

programs=${1:-build/release/bin}
[ -n "${1:-}" ] || [ -x "$programs/petlab" ] || programs=build/no-torch/bin
petlab=$programs/petlab
rehearsal=${2:-build/rehearsal/published.db}
quickstart=${3:-build/quickstart/petlab.db}
[ -x "$petlab" ] || die "$programs: there is no program petlab in it; scripts/build.sh makes it"
[ -f "$rehearsal" ] || die "$rehearsal is missing; scripts/rehearse_paper.sh published creates it"
[ -f "$quickstart" ] || die "$quickstart is missing; scripts/quickstart.sh creates it"

out=docs/pictures
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out"
"$petlab" report table1 --db "$rehearsal" --format json | scripts/pictures/table_svg.py >"$work/table1.svg"
"$petlab" report figure3 --db "$rehearsal" --out "$work" --format svg
"$petlab" report quickstart --db "$quickstart" --out "$work" --format svg
largest=200000
for picture in "$work"/*.svg; do
  size=$(stat -c %s "$picture")
  [ "$size" -le "$largest" ] || die "$picture has $size bytes, must have no more than $largest"
  mv "$picture" "$out/"
  say "$out/$(basename "$picture"): $size bytes"
done
