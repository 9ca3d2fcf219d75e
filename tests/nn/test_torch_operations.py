"""The number of operations of the losses for PyTorch, forward and backward: on a GPU each is a launch."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any, Callable, Dict, Tuple

import pytest
import torch
from loss_checks import count_operations
from torch import Tensor

from mmguard.functional import binary_cross_entropy_with_logits, cross_entropy
from mmguard.nn import BCEWithLogitsLoss, CrossEntropyLoss

LABEL = torch.tensor([[[0, 7, 255], [2, 1, -1]]])
WEIGHT = torch.tensor([0.5, 1.0, 2.0])
SOFT = torch.rand(1, 3, 2, 3).softmax(1)
BINARY = torch.tensor([0.0, 1, 255, 3, float('nan'), 0.5]).repeat(3).view(1, 3, 2, 3)
#: Loss, target, and the most operations it may take; PyTorch's own take 5, 6 and 10.
MOST: Dict[str, Tuple[Callable[..., Any], Tensor, int]] = {
    'cross_entropy': (cross_entropy, LABEL, 12),
    'cross_entropy, class weights': (lambda x, y: cross_entropy(x, y, WEIGHT), LABEL, 14),
    'nn, which counts values': (CrossEntropyLoss(), LABEL, 30),
    'nn, class weights': (CrossEntropyLoss(WEIGHT), LABEL, 34),
    'probabilities': (cross_entropy, SOFT, 35),
    'binary': (binary_cross_entropy_with_logits, BINARY, 23),
    'nn, binary': (BCEWithLogitsLoss(ignore_index=3), BINARY, 31),
}


@pytest.mark.parametrize('name', MOST)
def test_no_operation_comes_unseen(name: str) -> None:
    loss, target, most = MOST[name]
    found = count_operations(lambda leaf: loss(leaf, target), torch.randn(1, 3, 2, 3))
    assert sum(found.values()) <= most, found


@pytest.mark.parametrize('missing', ["sys.modules['triton'] = None", 'del torch.library.custom_op'])
def test_without_triton_the_switch_says_so_and_the_loss_is_the_same(missing: str) -> None:
    code = (
        f'import sys, torch\n{missing}\nfrom mmguard.functional import cross_entropy\n'
        'print(cross_entropy(torch.zeros(3, 2), torch.tensor([0, 7, 1])).item())'
    )
    if 'custom_op' in missing:
        pytest.importorskip('triton')
        pytest.importorskip('torch', minversion='2.4')
    ran = subprocess.run(
        [sys.executable, '-c', code],
        env={**os.environ, 'MMGUARD_TRITON': '1'},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert ran.stdout == f'{cross_entropy(torch.zeros(3, 2), torch.tensor([0, 7, 1])).item()}\n'
    assert ran.stderr.count('MMGUARD_TRITON=1') == 1
