#!/usr/bin/env bash
# Creates a virtual environment with Playwright and axe-core, which the tests use to test report
# pages in a real Chromium, and prints its Python. A second call does nothing. No browser is
# downloaded: the tests use the distribution's chromium.
#
#   scripts/browser_venv.sh           creates it if it is missing
#   scripts/browser_venv.sh --there   exits with 1 if it or chromium is missing
#
# PETLAB_HOME   as for setup.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
. scripts/pinned_venv.sh

if [ "${1:-}" = --there ]; then command -v chromium >/dev/null || exit 1; fi
pinned_venv python-browser "${1:-}" playwright==1.65.2 axe-playwright-python==0.1.8
