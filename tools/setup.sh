#!/bin/sh
# Makes the environment of a stack. Usage: tools/setup.sh STACK VENV, STACK being openmmlab, onedl, nnunet or torch.
# The stamp VENV/.ready is written last: without one the folder is made anew, with an old one it is brought up to date.
set -eu
stack=$1
venv=$2
python=${PYTHON:-python3}

# compiled: built against the torch that is there, so before the rest; extras: of mmguard (pyproject.toml);
# absent: what a package asks for and does not need, taken out again; there: what must import in the end.
compiled='' absent=''
case $stack in
openmmlab)
    compiled=mmcv extras=openmmlab,scan,dask,dev
    there='import mmseg.models, mmdet.models, mmguard.losses' ;;
onedl)
    compiled=onedl-mmcv extras=onedl,scan,dask,dev
    there='import mmseg.models, mmdet.models, mmguard.losses' ;;
nnunet)
    # The torchvision of a package index wants CUDA's libraries, and does not import beside a torch for the CPU.
    absent=torchvision extras=nnunet,scan,test
    there='import nnunetv2.training.nnUNetTrainer.nnUNetTrainer, mmguard.functional' ;;
torch)
    extras=test
    there='import mmguard.functional, mmguard.distributed' ;;
*)
    echo "mmguard: no such stack: $stack. There are openmmlab, onedl, nnunet and torch" >&2
    exit 2 ;;
esac

if [ ! -e "$venv/.ready" ]; then
    echo "mmguard: making $venv"
    "$python" -m venv --clear "$venv"
fi

wheels=${WHEELS:-../shared/wheels}
if [ -d "$wheels" ]; then
    PIP_FIND_LINKS="${PIP_FIND_LINKS:-} $wheels"
    export PIP_FIND_LINKS
fi
PIP_DISABLE_PIP_VERSION_CHECK=1
PIP_CONSTRAINT=tools/stacks/$stack.txt
export PIP_DISABLE_PIP_VERSION_CHECK PIP_CONSTRAINT
pip() { "$venv/bin/python" -m pip "$@"; }

echo 'mmguard: installing torch and the build tools (under a minute once downloaded)'
pip install -q setuptools wheel ninja psutil torch

if [ -n "$compiled" ]; then
    echo "mmguard: installing $compiled with its compiled ops. Where no wheel is found this compiles 77 files:"
    echo 'mmguard: about 8 minutes on 2 cores, once (pip keeps the wheel). Started' "$(date '+%H:%M:%S')"
    # -O1 -g0 compiles more than twice as fast as the default; only tests and demo run on these ops.
    CFLAGS="${CFLAGS:--O1 -g0}" CXXFLAGS="${CXXFLAGS:--O1 -g0}" pip install -q --no-build-isolation "$compiled"
    echo "mmguard: $compiled is there," "$(date '+%H:%M:%S')"
fi

echo "mmguard: installing mmguard[$extras] (about a minute)"
pip install -q --no-build-isolation -e ".[$extras]"
[ -z "$absent" ] || pip uninstall -q -y "$absent"
"$venv/bin/python" -c "$there"
touch "$venv/.ready"
echo "mmguard: ready, $venv"
