#!/usr/bin/env bash
# Fails where a source is not as clang-format writes it, or a script has a fault that shellcheck sees.
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

git ls-files -z '*.h' '*.cpp' | xargs -0 -r clang-format --dry-run --Werror --style=file ||
  die "run: git ls-files '*.h' '*.cpp' | xargs clang-format -i"
git ls-files -z '*.sh' .ci/run | xargs -0 -r shellcheck --external-sources --exclude=SC1091
say "Formatting is clean"
