#!/usr/bin/env bash
# Fails if clang-format or ruff would change a source, or if shellcheck finds a problem in a script.
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

git ls-files -z '*.h' '*.cpp' | xargs -0 -r clang-format --dry-run --Werror --style=file ||
  die "run: git ls-files '*.h' '*.cpp' | xargs clang-format -i"
git ls-files -z '*.sh' .ci/run | xargs -0 -r shellcheck --external-sources --exclude=SC1091
# Checks Python style only if ruff is installed (scripts/setup.sh --dev).
if python=$(scripts/python_venv.sh --there); then
  folders=(. ../examples ../scripts/portable ../scripts/rehearsal ../scripts/pictures
    ../scripts/prose ../scripts/site)
  (cd python && "$python" -m ruff check --quiet --no-cache --config pyproject.toml "${folders[@]}" &&
    "$python" -m ruff format --quiet --no-cache --config pyproject.toml --check "${folders[@]}") ||
    die "run, in the folder python: $python -m ruff check --fix --config pyproject.toml" \
      "${folders[*]}, and the same with format"
  # Tests have longer lines; only unused and undefined names are looked for.
  "$python" -m ruff check --quiet --no-cache --isolated --select F tests bench ||
    die "run: $python -m ruff check --isolated --select F --fix tests bench"
else
  say "Python's style is not checked: ruff is missing (scripts/setup.sh --dev installs it)"
fi
say "Formatting is clean"
