#!/usr/bin/env bash
# Checks that the pages and help texts are in plain English: sentences of at most 30 words, none of
# the phrases in scripts/prose/phrases.tsv, no doubled words, no chains of passive verbs.
#
#   scripts/check_prose.sh                       the pages
#   scripts/check_prose.sh FOLDER_OF_PROGRAMS    the pages, and the help of the petlab in it
#
# Exits with 77 if the linter is not installed (scripts/setup.sh --dev installs it).
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

if ! python=$(scripts/prose_venv.sh --there); then
  say "SKIPPED: proselint is not in $PETLAB_HOME/python-prose; scripts/setup.sh --dev installs it"
  exit 77
fi
[ $# -eq 0 ] || set -- --petlab "$1/petlab"
mapfile -t pages < <(find README.md AGENTS.md docs -name '*.md' | sort)
"$python" -B scripts/prose/check.py "$@" "${pages[@]}"
say "The prose is plain"
