#!/bin/sh
# Makes the environment of a stack. Usage: tools/setup.sh STACK VENV; tools/stacks/STACK.txt lists all its packages.
# The stamp VENV/.ready is written last: without it the folder is recreated, with an old one it is updated.
set -eu
stack=$1
venv=$2
pins=tools/stacks/$stack.txt

# compiled: a package to build against the installed torch; there: modules that must import in the end.
compiled=''
case $stack in
openmmlab)
    compiled=mmcv there='import mmseg.models, mmdet.models, mmguard.losses' ;;
lab)
    compiled=mmcv
    there='import mmseg.models, mmdet.models, torchvision, nnunetv2.training.nnUNetTrainer.nnUNetTrainer, mmguard.losses' ;;
onedl)
    compiled=onedl-mmcv there='import mmseg.models, mmdet.models, mmguard.losses' ;;
nnunet)
    # Without torchvision, which timm requires: the wheel of a package index needs CUDA's libraries, and does not import
    # with a newer torch for the CPU.
    there='import nnunetv2.training.nnUNetTrainer.nnUNetTrainer, mmguard.functional' ;;
newest)
    there='import mmengine.runner, torchvision, transformers, mmguard.hooks' ;;
torch)
    there='import mmguard.functional, mmguard.distributed' ;;
*)
    echo "mmguard: no such stack: $stack. There are openmmlab, lab, newest, onedl, nnunet and torch" >&2
    exit 2 ;;
esac

if [ ! -e "$venv/.ready" ]; then
    echo "mmguard: making $venv"
    "${PYTHON:-python3}" -m venv --clear "$venv"
fi

PIP_DISABLE_PIP_VERSION_CHECK=1
PIP_CONSTRAINT=$pins
export PIP_DISABLE_PIP_VERSION_CHECK PIP_CONSTRAINT
pip() { "$venv/bin/python" -m pip "$@"; }

echo 'mmguard: installing torch and the build tools (under a minute once downloaded)'
pip install -q setuptools wheel torch

echo "mmguard: installing the other packages of $pins (about a minute)"
# --no-deps, since the list is complete: resolving would add the packages that it leaves out.
grep -v "^$compiled==" "$pins" | pip install -q --no-deps --no-build-isolation -r /dev/stdin

if [ -n "$compiled" ]; then
    sh tools/compiled.sh "$venv" "$(grep "^$compiled==" "$pins")" "$(sed -n 's/^torch==//p' "$pins")" \
        'import torch; from mmcv.ops import nms; nms(torch.rand(4, 4), torch.rand(4), 0.5)'
fi

pip install -q --no-deps --no-build-isolation -e .
"$venv/bin/python" -c "$there"
touch "$venv/.ready"
echo "mmguard: ready, $venv"
