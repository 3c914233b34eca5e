#!/usr/bin/env bash
# Builds the documentation site to site/, or to the folder that is given, and fails on a link or an anchor that leads nowhere. Needs
# Python. mkdocs.yml is read by MkDocs with Material and by their successor Zensical.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/as-root.sh

if ! python3 -c 'import ensurepip' 2>/dev/null && command -v apt-get >/dev/null; then
	as_root apt-get update -q
	as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends python3 python3-venv
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work"
"$work/bin/pip" install --quiet --only-binary :all: mkdocs==1.6.1 mkdocs-material==9.8.1
NO_MKDOCS_2_WARNING=1 "$work/bin/mkdocs" build --quiet --strict --site-dir "$(realpath -m "${1:-site}")"
