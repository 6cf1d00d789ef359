#!/usr/bin/env bash
# Builds the documentation site: build/site/index.html, which opens from a disk.
#   tools/docs/site.sh [--to FOLDER]
# Needs Python 3.11. Takes Sphinx, MyST and furo from build/venv or the system, where they are
# (Debian: apt-get install python3-sphinx python3-myst-parser furo), else from PyPI, once, into
# build/site-venv. Nothing is fetched while the site is built, and a warning is an error.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
case ${1:-} in -h | --help) sed -n '2,6s/^# \{0,1\}//p' "$0"; exit 0 ;; esac
needed='import sphinx, myst_parser, furo'
for python in build/site-venv/bin/python build/venv/bin/python /usr/bin/python3 python3; do
  if "$python" -c "$needed" 2>/dev/null; then exec "$python" -B tools/docs/site_builder.py "$@"; fi
done
python3 -m venv build/site-venv
sed -n '/^# the documentation site/,/^furo/p' tests/requirements-all.txt >build/site-venv/requirements.txt
build/site-venv/bin/pip install --quiet --requirement build/site-venv/requirements.txt
exec build/site-venv/bin/python -B tools/docs/site_builder.py "$@"
