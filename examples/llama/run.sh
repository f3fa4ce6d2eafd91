#!/usr/bin/env bash
# LoRA, IA³ and prompt tuning on a small random Llama, trained by worker.py, which declares these
# kinds, their fields and its metrics. Run again, it goes on where it was.
#   PYTHON=PYTHON_WITH_PEFT examples/llama/run.sh [FOLDER]      (default: build/llama)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
source_dir=$(cd "$here/../.." && pwd)
out=${1:-$source_dir/build/llama}
python=${PYTHON:-python3}
export PYTHONPATH="$source_dir/python/src" PATH="$source_dir/build/release/bin:$PATH"
mkdir -p "$out"
cd "$out"

cp "$here/sweep.yaml" .
[ -e llama ] || "$python" "$here/make_llama.py" llama
petlab run sweep.yaml --worker "'$python' '$here/worker.py'"
petlab results
petlab best --metric perplexity
petlab compare lora ia3 prompt --metric perplexity
