#!/bin/sh
# Builds sdist and wheel into dist/, checks both, and runs the demo with the wheel, away from the checkout.
# Usage: tools/dist.sh VENV; the clean environment sees the packages of VENV, but no mmguard other than the wheel's.
set -eu
venv=$1
work=build/dist

rm -rf dist "$work"
mkdir -p "$work"
"$venv/bin/python" -m venv "$work/tools"
"$work/tools/bin/python" -m pip install --quiet build twine
"$work/tools/bin/python" -m build --outdir dist .
"$work/tools/bin/python" -m twine check --strict dist/*

"$venv/bin/python" -m venv "$work/clean"
purelib='import sysconfig; print(sysconfig.get_paths()["purelib"])'
# A path file within that folder is not read, so an editable mmguard there is not seen.
"$venv/bin/python" -c "$purelib" >"$work/stack.pth"
mv "$work/stack.pth" "$("$work/clean/bin/python" -c "$purelib")/stack.pth"
"$work/clean/bin/python" -m pip install --quiet --no-index --no-deps --force-reinstall dist/*.whl

cd "$work"
clean/bin/python -c 'import mmguard; assert "/dist/clean/" in mmguard.__file__, mmguard.__file__; print(mmguard.__file__)'
clean/bin/mmguard demo --iters 5
