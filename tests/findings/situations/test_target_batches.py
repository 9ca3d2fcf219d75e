"""Batches as people hand them to ``check_target``: its outcome, and the finding that it names."""

from __future__ import annotations

import re
import warnings
from typing import Any, Callable, Dict, List, Tuple, Type

import pytest
import torch
from torch import Tensor
from torch.nn.functional import one_hot

from mmguard.functional import check_target
from mmguard.functional.checks import TargetShapeError, TargetTypeError
from mmguard.labels.tally import LabelGuardError

pytest.importorskip('mmseg')

RANDOM = torch.Generator().manual_seed(16)
#: Makes the arguments of ``check_target``, options last.
Make = Callable[[], Tuple[Tensor, Tensor, Dict[str, Any]]]


def regions(values: Any, shape: Tuple[int, ...] = (2, 24, 32), cell: int = 8) -> Tensor:
    """Draw a label map of blocks of these values, each value at least once."""
    n, h, w = shape
    blocks = torch.randint(0, len(values), (n, h // cell, w // cell), generator=RANDOM)
    flat = blocks.flatten()
    flat[: len(values)] = torch.arange(len(values))[: len(flat)]
    table = torch.tensor(list(values))
    return table[flat.view_as(blocks)].repeat_interleave(cell, 1).repeat_interleave(cell, 2)


def batch(classes: int, target: Tensor, size: Any = None, **options: Any) -> Make:
    """Make scores (N, C, H, W) for a target of any shape."""

    def make() -> Tuple[Tensor, Tensor, Dict[str, Any]]:
        n, h, w = size or (target.shape[0], *target.shape[-2:])
        return torch.zeros(n, classes, h, w), target, options

    return make


def call(logits: Tensor, target: Tensor, **options: Any) -> Make:
    return lambda: (logits, target, options)


def channel(target: Tensor) -> Tensor:
    return target.unsqueeze(1)


def masks(top: float) -> Tensor:
    return channel(regions((0, 1)) * top)


def clamp_dice(scores: Tensor, target: Tensor) -> Tensor:
    """Compute a Dice loss as people write it: what does not fit one_hot is clamped first."""
    classes = scores.shape[1]
    wanted = one_hot(target.clamp(0, classes - 1), classes).movedim(-1, 1).float()
    found = scores.softmax(1)
    return 1 - 2 * (found * wanted).sum() / (found.sum() + wanted.sum())


SIX, FOUR, TWO = regions(range(6)), regions(range(4)), regions((0, 1))
VOID = SIX.masked_fill(regions((0, 1)) == 1, 255)
SEVEN = regions(range(7), (2, 48, 48))
COCO_STUFF = (254, 0, 2, 12, 52, 104, 158, 165, 176)

PASS: Dict[str, Make] = {
    'ToTensor and long, with void: void becomes 1': batch(19, (VOID / 255).long(), ignore_index=255),
    'PaddleSeg#1499: weights looked up by label': batch(10, VOID, ignore_index=255, weight=torch.ones(10)),
    'PaddleSeg#2270: Dice makes one-hot of 255': batch(19, VOID, ignore_index=255),
    'language models are trained on few tokens': call(
        torch.zeros(90, 19), torch.where(torch.arange(90) < 80, -100, torch.arange(90) % 5)
    ),
}
WARN: Dict[str, Make] = {
    'ToTensor, then .long(): all zeros': batch(5, (regions(range(5)) / 255).long()),
    'UniMatch#29: 0/255 masks where 255 is ignored': batch(2, regions((0, 255)), ignore_index=255),
    'a label map sends nearly all to 255': batch(19, torch.where(torch.arange(32) < 30, 255, SIX), ignore_index=255),
}
#: (call, what it raises, the code that it names first: shapes and dtypes are not findings).
RAISE: Dict[str, Tuple[Make, Type[Exception], str]] = {
    'Pytorch-UNet#258: n_classes counts the foreground': (batch(3, FOUR), LabelGuardError, 'MG102'),
    'pytorch#12670: -4 is not a label': (
        call(torch.zeros(6, 5), torch.tensor([0, -1, 4, -4, 2, 1]), ignore_index=-1),
        LabelGuardError,
        'MG105',
    ),
    'sizes differ, labels from one': (batch(6, SIX + 1, size=(2, 12, 16)), TargetShapeError, 'MG115'),
    'BCE of 0/255': (batch(1, masks(255.0)), LabelGuardError, ''),
    'a PNG per class, 0/255': (
        batch(3, one_hot(regions(range(3)), 3).movedim(-1, 1).float() * 255),
        LabelGuardError,
        '',
    ),
    'sigmoid scores (N, H, W)': (call(torch.zeros(2, 24, 32), TWO.float()), LabelGuardError, ''),
    'MONAI with a value too many': (batch(4, channel(regions(range(5)))), LabelGuardError, 'MG102'),
    'vision#2497: ToTensor on the masks': (batch(5, channel(regions(range(5))) / 255), TargetTypeError, ''),
    'a Dice that clamps what is ignored': (
        batch(4, regions((0, 1, 2, 3, 255)), ignore_index=255, loss=clamp_dice),
        TargetShapeError,
        '',
    ),
    'geti#3264: the padding is 255': (batch(7, VOID, ignore_index=6), LabelGuardError, 'MG104'),
    'FreeMask#4: ids minus one, 150 outputs': (
        batch(150, regions((*COCO_STUFF, 173, 167, 111)), ignore_index=255),
        LabelGuardError,
        'MG107',
    ),
    'FreeMask#4: 255 became 254, 183 outputs': (
        batch(183, regions(COCO_STUFF), ignore_index=255),
        LabelGuardError,
        'MG133',
    ),
}


def check(make: Make) -> List[Type[Warning]]:
    """Check a batch; return what it warns of."""
    logits, target, options = make()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter('always')
        check_target(logits, target, **options)
    return [warning.category for warning in caught]


@pytest.mark.parametrize('name', [*PASS, *WARN])
def test_a_usable_batch_passes(name: str) -> None:
    assert check({**PASS, **WARN}[name]) == [UserWarning] * (name in WARN)


@pytest.mark.parametrize('name', list(RAISE))
def test_an_unusable_batch_raises(name: str) -> None:
    make, kind, code = RAISE[name]
    with pytest.raises(kind) as raised:
        check(make)
    assert raised.type is kind
    assert re.findall(r'MG\d+', str(raised.value))[:1] == [code] * bool(code)
