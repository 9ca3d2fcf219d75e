"""Beside ``F.cross_entropy`` nothing is allocated but the sanitized target and a mask."""

from __future__ import annotations

from typing import Any, Dict

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks.timing import memory_of
from mmguard.functional import cross_entropy

CLASSES = 19
LOGITS, LABELS = (2, CLASSES, 64, 64), (2, 64, 64)
ELEMENTS = 2 * 64 * 64
INDEX, MASK, FLOAT = 8, 1, 4
#: Scalars, in blocks of 64 bytes.
SCALARS = 4096


def forward_and_backward(loss: Any, logits: Tensor, target: Tensor, options: Dict[str, Any]) -> None:
    loss(logits, target, **options).backward()
    logits.grad = None


OPTIONS: Dict[str, Dict[str, Any]] = {
    'plain': {},
    'ignored class': {'ignore_index': 3},
    'smoothed': {'label_smoothing': 0.1},
    'weighted': {'weight': torch.ones(CLASSES)},
    'sum': {'reduction': 'sum'},
    'none': {'reduction': 'none'},
    'clip': {'on_invalid': 'clip'},
    'tally': {'return_tally': True},
}


@pytest.mark.parametrize('name', OPTIONS)
@pytest.mark.parametrize('share_invalid', [0.0, 0.3])
def test_the_sanitized_target_and_a_mask(name: str, share_invalid: float) -> None:
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(LOGITS, generator=generator).requires_grad_()
    clean = torch.randint(0, CLASSES, LABELS, generator=generator)
    target = clean.masked_fill(torch.rand(LABELS, generator=generator) < share_invalid, 77)
    ours = OPTIONS[name]
    theirs = {key: value for key, value in ours.items() if key not in ('on_invalid', 'return_tally')}

    def guarded(*args: Any, **kwargs: Any) -> Tensor:
        out = cross_entropy(*args, **kwargs)
        return (out[0] if isinstance(out, tuple) else out).sum()

    def stock(*args: Any, **kwargs: Any) -> Tensor:
        return F.cross_entropy(*args, **kwargs).sum()

    kept = (
        memory_of(lambda: guarded(logits, target, **ours)).kept - memory_of(lambda: stock(logits, clean, **theirs)).kept
    )
    assert kept <= INDEX * ELEMENTS + SCALARS, 'more than the sanitized target is kept for the backward pass'
    peak = (
        memory_of(lambda: forward_and_backward(guarded, logits, target, ours)).peak
        - memory_of(lambda: forward_and_backward(stock, logits, clean, theirs)).peak
    )
    assert peak <= (INDEX + MASK) * ELEMENTS + SCALARS
    # It is measured at all: the log-probabilities alone are CLASSES floats per element.
    assert memory_of(lambda: guarded(logits, target, **ours)).kept >= FLOAT * CLASSES * ELEMENTS
