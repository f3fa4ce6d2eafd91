#!/usr/bin/env bash
# Fails where a source is not as clang-format and ruff write it, or where shellcheck sees a fault in
# a script.
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

git ls-files -z '*.h' '*.cpp' | xargs -0 -r clang-format --dry-run --Werror --style=file ||
  die "run: git ls-files '*.h' '*.cpp' | xargs clang-format -i"
git ls-files -z '*.sh' .ci/run | xargs -0 -r shellcheck --external-sources --exclude=SC1091
# Python's style, where ruff is there (scripts/setup.sh --dev).
if python=$(scripts/python_venv.sh --there); then
  folders=(. ../examples ../scripts/rehearsal ../scripts/pictures ../scripts/prose
    ../scripts/site)
  (cd python && "$python" -m ruff check --quiet --no-cache --config pyproject.toml "${folders[@]}" &&
    "$python" -m ruff format --quiet --no-cache --config pyproject.toml --check "${folders[@]}") ||
    die "run, in the folder python: $python -m ruff check --fix --config pyproject.toml" \
      "${folders[*]}, and the same with format"
else
  say "Python's style is not looked at: ruff is not there (scripts/setup.sh --dev installs it)"
fi
say "Formatting is clean"
