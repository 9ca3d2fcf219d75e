"""One import, with torch and numpy alone: nothing of mmengine is loaded, and the parts are attributes."""

from __future__ import annotations

from warm import run_beside_torch

CODE = """
import sys
sys.modules['mmengine'] = sys.modules['mmcv'] = None  # not installed, as far as imports can see
import importlib.util
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, *args: None if name.startswith('mm') and '.' not in name else found(name, *args)
import torch
import mmguard
loss = mmguard.nn.CrossEntropyLoss()(torch.zeros(2, 3, requires_grad=True), torch.tensor([1, 7]))
loss.backward()
mmguard.functional.check_target(torch.zeros(2, 3), torch.tensor([1, 2]))
mmguard.distributed
loaded = {name.split('.')[0] for name in sys.modules} & {'mmseg', 'mmdet', 'torchvision', 'cv2', 'rich'}
print(round(loss.item(), 4), sorted(loaded))
"""


def test_torch_and_numpy_are_enough() -> None:
    ended = run_beside_torch(CODE)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.split('\n')[0] == '1.0986 []'


def test_installed_frameworks_are_not_loaded() -> None:
    """The parts for plain PyTorch, wherever they are used."""
    parts = 'mmguard.nn, mmguard.functional, mmguard.distributed, mmguard.detection'
    code = (
        f'import sys, torch, numpy\nbefore = set(sys.modules)\nimport {parts}\n'
        'files = {m: str(getattr(sys.modules[m], "__file__", "")) for m in set(sys.modules) - before}\n'
        'print(*(m for m, file in files.items() if "site-packages" in file))\n'
        'assert "mmguard.nn" in sys.modules'
    )
    ended = run_beside_torch(code)
    assert ended.returncode == 0, ended.stderr
    others = {name.split('.')[0] for name in ended.stdout.split()} - {'mmguard', 'torch', 'numpy'}
    assert not others, others
