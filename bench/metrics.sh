#!/usr/bin/env bash
# Times `petlab score` and the usual Python packages in alternating rounds of one run.
#
#   bench/metrics.sh [--petlab PROGRAM] [--rounds N] [--lines N] [--only ROW,ROW…]
#
# PETLAB_PEERS   folder with metrics_peers.py and make_corpus.py (default ../shared/peers)
# PETLAB_HOME    where the Python packages are installed (default ~/.local/share/petlab)
#
# Only ratios within one run are meaningful. The comparison favours the packages: they are timed on
# lists in memory (without start, imports, reading and parsing), petlab as a whole process (with all
# of these). Memory is the peak of either process.
. "$(dirname "${BASH_SOURCE[0]}")/../scripts/common.sh"

petlab=build/release/bin/petlab
rounds=5
lines=100000
only=
while [ $# -gt 0 ]; do
  case "$1" in
    --petlab) petlab=$2 ;;
    --rounds) rounds=$2 ;;
    --lines) lines=$2 ;;
    --only) only=$2 ;;
    *) die "unknown argument '$1'; expected --petlab PROGRAM, --rounds N, --lines N or --only ROWS" ;;
  esac
  shift 2
done
[ -x "$petlab" ] || die "there is no program $petlab; build it, or name one with --petlab"
peers=${PETLAB_PEERS:-../shared/peers}
[ -f "$peers/metrics_peers.py" ] || die "there is no $peers/metrics_peers.py; PETLAB_PEERS names its folder"

venv=$PETLAB_HOME/metrics-peers
if ! "$venv/bin/python" -c 'import sacrebleu, rouge_score, scipy, sklearn' 2>/dev/null; then
  say "installing sacrebleu, rouge-score, scipy and scikit-learn in $venv"
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet sacrebleu==2.6.0 rouge-score==0.1.2 scipy scikit-learn ||
    die "the Python packages cannot be installed: nothing to compare with"
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 "$peers/make_corpus.py" --out "$work/corpus" --lines "$lines"
"$venv/bin/python" bench/metrics/rounds.py --petlab "$petlab" --peers "$peers" --work "$work" \
  --rounds "$rounds" --only "$only"
