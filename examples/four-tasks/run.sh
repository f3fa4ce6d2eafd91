#!/usr/bin/env bash
# Layer and task masks combined by OR, ADD and AND, and none, on four GLUE tasks as text: a small T5
# is made from nothing and taught two tasks, then adapters on its frozen weights learn four at once.
# Run again, it goes on where it was.
#   PETLAB_DATA=DATA examples/four-tasks/run.sh [FOLDER]      (default: build/four-tasks)
# DATA/glue has CoLA, SST-2, STS-B, MRPC and RTE as GLUE distributes them.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
source_dir=$(cd "$here/../.." && pwd)
out=${1:-$source_dir/build/four-tasks}
PETLAB_DATA=$(cd "${PETLAB_DATA:?names the folder with glue/}" && pwd)
export PETLAB_DATA PATH="$source_dir/build/release/bin:$PATH"
mkdir -p "$out"
cd "$out"

cp "$here"/*.yaml .
if [ ! -e own ]; then
  python3 "$here/make_texts.py" "$PETLAB_DATA/glue" .
  petlab-trainer init --config config.json --texts texts.txt --vocabulary 4000 --out own
fi
petlab run first.yaml
petlab results first.yaml
if [ ! -e taught ]; then
  artifact=$(petlab query "SELECT artifact FROM sweep_results WHERE sweep = 'first' LIMIT 1" --format jsonl |
    python3 -c 'import json, sys; print(json.load(sys.stdin)["artifact"])')
  petlab-trainer export --artifact "$artifact" --format huggingface --out taught
fi
petlab run combine.yaml
petlab report combine-table.yaml
