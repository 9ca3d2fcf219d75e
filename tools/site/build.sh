#!/bin/sh
# Builds the site into build/site/html; a warning is an error. Usage: tools/site/build.sh VENV; Sphinx is installed beside
# the packages of VENV, not into it.
set -eu
venv=$1
work=build/site
if [ ! -e "$work/venv/.ready" ]; then
    mkdir -p "$work"
    "$venv/bin/python" -m venv --clear "$work/venv"
    "$work/venv/bin/python" -m pip install --quiet sphinx myst-parser furo
    touch "$work/venv/.ready"
fi
# Last on the path: what is installed for Sphinx comes first.
purelib=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
export PYTHONPATH="$PWD:$purelib"
"$work/venv/bin/python" -m tools.site.sources "$work/source"
"$work/venv/bin/python" -m sphinx -W --keep-going -q -b html "$work/source" "$work/html"
echo "mmguard: $work/html/index.html"
