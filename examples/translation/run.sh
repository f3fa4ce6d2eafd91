#!/usr/bin/env bash
# A small T5, made from nothing, learns to translate Romanian; its BLEU beside that of the Romanian
# sentences themselves, and again from the predictions that were kept. Run again, it goes on where it
# was.
#   PETLAB_DATA=DATA examples/translation/run.sh [FOLDER]      (default: build/translation)
# DATA/ro-sts has RO-STS.train.ro, RO-STS.train.en, RO-STS.dev.ro, … (github.com/dumitrescustefan/RO-STS)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
source_dir=$(cd "$here/../.." && pwd)
out=${1:-$source_dir/build/translation}
PETLAB_DATA=$(cd "${PETLAB_DATA:?names the folder with ro-sts/}" && pwd)
export PETLAB_DATA PATH="$source_dir/build/release/bin:$PATH"
mkdir -p "$out"
cd "$out"

cp "$here"/*.yaml "$here/config.json" .
if [ ! -e own ]; then
  sed 's/^/translate Romanian to English: /' "$PETLAB_DATA/ro-sts/RO-STS.train.ro" |
    cat - "$PETLAB_DATA/ro-sts/RO-STS.train.en" >texts.txt
  petlab-trainer init --config config.json --texts texts.txt --vocabulary 4000 --out own
fi
petlab run ro-en.yaml --slots 1 --threads "$(nproc)"
petlab results
echo "The Romanian sentences as they are:"
petlab score bleu --hyp "$PETLAB_DATA/ro-sts/RO-STS.test.ro" --ref "$PETLAB_DATA/ro-sts/RO-STS.test.en"
echo "What the model made of them, from the predictions:"
predictions=$(dirname "$(find petlab.runs -name ro-sts.predicted.jsonl | head -1)")
petlab score bleu --json-lines --hyp "$predictions/ro-sts.predicted.jsonl" --ref "$predictions/ro-sts.gold.jsonl"
