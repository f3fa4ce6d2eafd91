#!/usr/bin/env bash
# Builds the site from README.md and docs/, with a page for each command and for the Python package.
# Fails on warnings and on broken links or anchors.
#
#   scripts/build_site.sh [FOLDER_OF_PROGRAMS [FOLDER]]
#
# FOLDER_OF_PROGRAMS has the petlab whose help is shown (default build/release/bin); the site goes
# to FOLDER (default build/site). Exits with 77 if MkDocs is not installed (scripts/setup.sh --dev
# installs it).
caller=$PWD
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

absolute() { case "$1" in /*) printf '%s' "$1" ;; *) printf '%s' "$caller/$1" ;; esac; }
programs=$PWD/build/release/bin
[ $# -lt 1 ] || programs=$(absolute "$1")
site=$PWD/build/site
[ $# -lt 2 ] || site=$(absolute "$2")
[ -x "$programs/petlab" ] || die "$programs: no program petlab in it; scripts/build.sh builds it"
if ! python=$(scripts/site_venv.sh --there); then
  say "SKIPPED: MkDocs is not in $PETLAB_HOME/python-site; scripts/setup.sh --dev installs it"
  exit 77
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$python" -B scripts/site/pages.py "$programs/petlab" "$work/pages"
cat scripts/site/mkdocs.yml "$work/nav.yml" >"$work/mkdocs.yml"
# --quiet would also keep --strict from counting the warnings.
NO_MKDOCS_2_WARNING=1 "$python" -m mkdocs build --strict --clean \
  --config-file "$work/mkdocs.yml" --site-dir "$site" >"$work/log" 2>&1 ||
  die "the site has faults:
$(grep -v '^INFO' "$work/log")"
say "The site: $site/index.html"
