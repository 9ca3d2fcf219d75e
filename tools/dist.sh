#!/bin/sh
# Builds sdist and wheel into dist/, checks both, runs the demo with the wheel outside of the checkout, and compares its
# output with README's first screen.
# Usage: tools/dist.sh VENV; the clean environment sees the packages of VENV, but only the wheel's mmguard.
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
# Path files in VENV's folder are not read, so an editable mmguard in it is not seen.
"$venv/bin/python" -c "$purelib" >"$work/stack.pth"
mv "$work/stack.pth" "$("$work/clean/bin/python" -c "$purelib")/stack.pth"
"$work/clean/bin/python" -m pip install --quiet --no-index --no-deps --force-reinstall dist/*.whl

cd "$work"
clean/bin/python -c 'import mmguard; assert "/dist/clean/" in mmguard.__file__, mmguard.__file__; print(mmguard.__file__)'
test "$(clean/bin/mmguard --version)" = "mmguard $(sed -n "s/.*'\(.*\)'/\1/p" ../../mmguard/version.py)"
clean/bin/mmguard demo --iters 5 >demo.txt
cat demo.txt
clean/bin/python - ../../README.md demo.txt <<'EOF'
import re, sys
readme, shown = (open(name, encoding='utf-8').read() for name in sys.argv[1:])
screen = re.search(r'```\n(before .*?)```', readme, re.DOTALL).group(1)
lines = [re.sub(r'^(before|after)?\s+', '', line) for line in screen.splitlines() if '(on a GPU:' not in line]
missing = [line for line in lines if line and line not in shown]
sys.exit('\n'.join(['README shows lines that the demo does not print:', *missing]) if missing else 0)
EOF
