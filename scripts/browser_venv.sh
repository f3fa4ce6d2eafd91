#!/usr/bin/env bash
# Makes a virtual environment with Playwright and axe-core, by which the tests drive a real Chromium
# through report pages, and prints its Python. Does nothing twice. No browser is downloaded: the
# distribution's chromium is driven.
#
#   scripts/browser_venv.sh           makes it where it is not there
#   scripts/browser_venv.sh --there   exit code 1 where it, or chromium, is not there
#
# PETLAB_HOME   as for setup.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
. scripts/pinned_venv.sh

if [ "${1:-}" = --there ]; then command -v chromium >/dev/null || exit 1; fi
pinned_venv python-browser "${1:-}" playwright==1.65.2 axe-playwright-python==0.1.8
