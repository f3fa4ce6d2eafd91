#!/usr/bin/env bash
# Measures an installed wheel: its size, the seconds from `pip install` to the first trained step,
# and how long petlab takes to start next to the source build.
#
#   bench/installation.sh WHEEL [FOLDER]   FOLDER has the wheels that it needs (default: pip's index)
#
# Downloads MiniLM and the snippets, as petlab quickstart does.
. "$(dirname "${BASH_SOURCE[0]}")/../scripts/common.sh"

wheel=$(realpath "${1:?the wheel that scripts/wheels.sh wrote}")
links=()
[ $# -lt 2 ] || links=(--no-index --find-links "$(realpath "$2")")
built=$PWD/build/release/bin/petlab
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cd "$place" || exit
export PETLAB_HOME=$place/home
seconds() { awk -v a="$1" -v b="$(date +%s.%N)" 'BEGIN {printf "%.1f s", b - a}'; }

printf 'wheel: %.1f MB\n' "$(awk -v bytes="$(stat -c %s "$wheel")" 'BEGIN {print bytes / 1e6}')"
began=$(date +%s.%N)
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check "${links[@]}" "${wheel}[trainer]"
echo "new environment and pip install: $(seconds "$began")"

began=$(date +%s.%N)
env/bin/petlab quickstart >quickstart.log 2>&1 &
run=$!
until grep -qs '"type":"progress"' petlab-quickstart/petlab.runs/*/1/events.jsonl; do
  kill -0 "$run" 2>/dev/null || die "petlab quickstart ended: $(tail -n 1 quickstart.log)"
  sleep 0.05
done
echo "petlab quickstart to its first trained step, downloads included: $(seconds "$began")"
kill -TERM "$run"
wait "$run" || true

# Alternating, because the machine's speed changes.
starts() { # PROGRAM: milliseconds of one start, over 50
  local begin
  begin=$(date +%s%N)
  for _ in {1..50}; do "$1" --version >/dev/null; done
  awk -v a="$begin" -v b="$(date +%s%N)" 'BEGIN {printf "%.2f\n", (b - a) / 50 / 1e6}'
}
for _ in {1..7}; do
  starts env/bin/petlab >>wheel.ms
  starts "$built" >>source.ms
done
for name in wheel source; do
  echo "petlab --version from the $name: $(sort -n "$name.ms" | sed -n 4p) ms (median of 7)"
done
