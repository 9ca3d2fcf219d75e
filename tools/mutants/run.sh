#!/bin/sh
# Draws mutants and runs the tests on them, in a copy of the tree. Usage: tools/mutants/run.sh VENV [--draw N] [--seed N];
# mutmut, which writes the mutants, gets its own environment that sees the packages of VENV.
set -eu
venv=$1
shift
work=build/mutants
if [ ! -e "$work/venv/.ready" ]; then
    mkdir -p "$work"
    "$venv/bin/python" -m venv --clear "$work/venv"
    "$work/venv/bin/python" -m pip install --quiet mutmut==3.8.1
    touch "$work/venv/.ready"
fi
# Last on the path: what is installed for mutmut comes first.
purelib=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
python="$PWD/$work/venv/bin/python"
here=$PWD
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
git ls-files -z | xargs -0 cp --parents -t "$copy"
cd "$copy"
PYTHONPATH="$copy:$purelib" OMP_NUM_THREADS=1 CI=1 nice -n 19 "$python" -m tools.mutants --results "$here/$work/fates.json" "$@"
