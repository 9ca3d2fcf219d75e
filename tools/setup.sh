#!/bin/sh
# Makes the development environment. Usage: tools/setup.sh VENV. The stamp VENV/.ready is written last, so an
# interrupted run starts again from a clean folder.
set -eu
venv=$1
python=${PYTHON:-python3}

if [ ! -e "$venv/.ready" ]; then
    echo "mmguard: making $venv"
    "$python" -m venv --clear "$venv"
fi
rm -f "$venv/.ready"

wheels=${WHEELS:-../shared/wheels}
if [ -d "$wheels" ]; then
    PIP_FIND_LINKS="${PIP_FIND_LINKS:-} $wheels"
    export PIP_FIND_LINKS
fi
PIP_DISABLE_PIP_VERSION_CHECK=1
PIP_CONSTRAINT=constraints.txt
export PIP_DISABLE_PIP_VERSION_CHECK PIP_CONSTRAINT
pip() { "$venv/bin/python" -m pip "$@"; }

echo 'mmguard: installing torch and the build tools (under a minute once downloaded)'
pip install -q setuptools wheel ninja psutil torch

echo 'mmguard: installing mmcv with its compiled ops. Where no wheel is found this compiles 77 files:'
echo 'mmguard: about 8 minutes on 2 cores, once (pip keeps the wheel). Started' "$(date '+%H:%M:%S')"
# -O1 -g0 compiles more than twice as fast as the default; only tests and demo run on these ops.
CFLAGS="${CFLAGS:--O1 -g0}" CXXFLAGS="${CXXFLAGS:--O1 -g0}" pip install -q --no-build-isolation mmcv
echo 'mmguard: mmcv is there,' "$(date '+%H:%M:%S')"

echo 'mmguard: installing mmseg, mmdet and the tools (about a minute)'
pip install -q --no-build-isolation -e '.[seg,det,scan,dev]' tensorboard
"$venv/bin/python" -c 'import mmseg.models, mmdet.models, mmguard'
touch "$venv/.ready"
echo "mmguard: ready, $venv"
