#!/usr/bin/env bash
# Times the overhead per trial of petlab and of other tools, in alternating rounds of one run.
#
#   bench/orchestration.sh [--petlab PROGRAM] [--worker PROGRAM] [--rounds N] [--trials N] [--many N]
#                          [--scale X] [--only PEERS] [--folder DIR]
#
# --trials N     trivial trials in each round of petlab (default 2000; includes start and end of the
#                run)
# --many N       one more run of N trials, to compare its first and its last thousand (30000; 0:
#                none)
# --scale X      multiplies the peers' numbers of trials; --only selects peers by a part of their
#                names
# --folder DIR   a folder on the disk under test (default: the current one)
# PETLAB_PEERS   folder with orchestration_peers.py (default ../shared/peers)
# PETLAB_HOME    where the Python packages are installed (default ~/.local/share/petlab)
#
# Prints one JSON line per tool. A trial of petlab runs bench-worker, which writes `started` and a
# synced `finished`; a trial of a peer runs /bin/true. Only ratios within one run are meaningful,
# and only between tools that store the same data: petlab counts a trial once its files and its
# database row are on disk. Nothing is deleted before the end: ext4 creates files slowly for minutes
# after many deletions.
. "$(dirname "${BASH_SOURCE[0]}")/../scripts/common.sh"

petlab=build/release/bin/petlab
worker=
rounds=3
trials=2000
many=30000
scale=1
only=
folder=$PWD
while [ $# -gt 0 ]; do
  case "$1" in
    --petlab) petlab=$2 ;;
    --worker) worker=$2 ;;
    --rounds) rounds=$2 ;;
    --trials) trials=$2 ;;
    --many) many=$2 ;;
    --scale) scale=$2 ;;
    --only) only=$2 ;;
    --folder) folder=$2 ;;
    *) die "unknown argument '$1'; the head of this script lists what there is" ;;
  esac
  shift 2
done
worker=${worker:-$(dirname "$petlab")/bench-worker}
for program in "$petlab" "$worker"; do
  [ -x "$program" ] || die "there is no program $program; build it, or name one (--petlab, --worker)"
done
petlab=$(realpath "$petlab")
worker=$(realpath "$worker")
peers=$(realpath "${PETLAB_PEERS:-../shared/peers}")
[ -f "$peers/orchestration_peers.py" ] ||
  die "there is no $peers/orchestration_peers.py; PETLAB_PEERS names its folder"

venv=$PETLAB_HOME/orchestration-peers
if ! "$venv/bin/python" -c 'import submitit, optuna, mlflow, sacred, hydra, tensorboardX' 2>/dev/null; then
  say "installing submitit, Optuna, MLflow, Sacred, Hydra and tensorboardX in $venv"
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet submitit optuna sqlalchemy alembic mlflow-skinny sacred \
    hydra-core tensorboardX "setuptools<81" ||
    die "the Python packages cannot be installed: nothing to compare with"
fi

work=$(mktemp -d "$folder/petlab-orchestration.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir "$work/backbone" "$work/scratch"
cat >"$work/backbone/config.json" <<'JSON'
{"model_type": "bert", "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
 "intermediate_size": 64, "vocab_size": 100, "max_position_embeddings": 64, "type_vocab_size": 2}
JSON
echo weights >"$work/backbone/model.safetensors"
echo '[PAD]' >"$work/backbone/vocab.txt"
sweep_of() {
  printf 'sweep: trivial\nbase:\n  backbone: ./backbone\n  task: cola\n  module.kind: adapter\n'
  printf 'grid:\n  seed: [%s]\n' "$(seq -s, 1 "$1")"
}
sweep_of "$trials" >"$work/trials.yaml"
export PETLAB_SLOTS=$work/slots

load() { printf '{"load": [%s], "cores": %s}\n' "$(cut -d' ' -f1-3 /proc/loadavg | tr ' ' ,)" "$(nproc)"; }
run="$petlab run $work/trials.yaml --quiet --slots {jobs} --worker $worker --runs {folder}.runs --db {folder}.db"
load
"$venv/bin/python" "$peers/orchestration_peers.py" --scratch "$work/scratch" --rounds "$rounds" \
  --scale "$scale" --only "$only" --also-trials "$trials" \
  --also "petlab, a process for each trial=$run --fresh-workers" \
  --also "petlab, workers that stay=$run"
load
[ "$many" -gt 0 ] || exit 0
sweep_of "$many" >"$work/many.yaml"
for mode in "--fresh-workers" ""; do
  # shellcheck disable=SC2086
  "$petlab" run "$work/many.yaml" --quiet --worker "$worker" --runs "$work/many$mode.runs" \
    --db "$work/many$mode.db" $mode
  "$venv/bin/python" bench/orchestration/pace.py "$work/many$mode.db" "petlab ${mode:-(workers that stay)}"
done
load
