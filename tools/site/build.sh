#!/bin/sh
# Builds the site into build/site/html, in a separate environment without torch; a warning is an error.
# Usage: tools/site/build.sh [PYTHON]; Python 3.11 or newer.
set -eu
work=build/site
if [ ! "$work/venv/.ready" -nt tools/site/requirements.txt ]; then
    mkdir -p "$work"
    "${1:-python3}" -m venv --clear "$work/venv"
    "$work/venv/bin/python" -m pip install --quiet -r tools/site/requirements.txt
    touch "$work/venv/.ready"
fi
rm -rf "$work/html"
"$work/venv/bin/python" -m tools.site.sources "$work/source"
"$work/venv/bin/python" -m sphinx -E -W --keep-going -q -b html "$work/source" "$work/html"
echo "mmguard: $work/html/index.html"
