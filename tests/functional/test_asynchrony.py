"""No operator that waits for the device, and none whose output shape depends on the data."""

from __future__ import annotations

import itertools
from typing import Any, Callable, Dict, Iterator, Tuple

import pytest
import torch
from no_wait import NoWait
from torch import Tensor

from mmguard.functional import mask_cross_entropy, sigmoid_cross_entropy, softmax_cross_entropy


def calls() -> Iterator[Tuple[str, Callable[[Tensor], Tensor]]]:
    label = torch.tensor([[[0, 7, 255], [2, 1, -1]]])
    weight = torch.tensor([[[1.0, 0, 1], [1, 1, 1]]])
    for on_invalid, reduction, weighted, class_weighted, avg_factor, avg_non_ignore, ignore_index in itertools.product(
        ('ignore', 'clip'), ('none', 'mean', 'sum'), (False, True), (False, True), (None, 4.0, torch.tensor(4.0)),
        (False, True), (255, 1),
    ):  # fmt: skip
        if reduction == 'sum' and avg_factor is not None:
            continue
        options: Dict[str, Any] = {
            'class_weight': torch.tensor([0.5, 1.0, 2.0]) if class_weighted else None,
            'reduction': reduction,
            'avg_factor': avg_factor,
            'avg_non_ignore': avg_non_ignore,
            'ignore_index': ignore_index,
            'on_invalid': on_invalid,
        }
        element_weight = weight if weighted else None
        for by_weight in (False, True):
            yield (
                'softmax',
                lambda x, w=element_weight, o=options, b=by_weight: softmax_cross_entropy(
                    x, label, w, average_by_class_weight=b, **o
                )[0],
            )
        for background in (False, True):
            yield (
                'sigmoid',
                lambda x, w=element_weight, o=options, b=background: sigmoid_cross_entropy(
                    x, label, w, background=b, **o
                )[0],
            )
        dense = torch.tensor([0.0, 1, 255, 3, float('nan'), 0.5]).repeat(3).view(1, 3, 2, 3)
        yield 'dense', lambda x, o=options, d=dense: sigmoid_cross_entropy(x, d, **o)[0]
    for on_invalid in ('ignore', 'clip'):
        yield (
            'mask',
            lambda x, o=on_invalid: mask_cross_entropy(
                x, torch.ones(1, 2, 3), torch.tensor([9]), class_weight=torch.ones(3), on_invalid=o
            )[0],
        )


def test_no_synchronisation_in_any_mode() -> None:
    number = 0
    for name, call in calls():
        leaf = torch.randn(1, 3, 2, 3, requires_grad=True)
        with NoWait() as mode:
            call(leaf).sum().backward()
        assert mode.seen > 5, name
        number += 1
    assert number > 600


@pytest.mark.parametrize('on_invalid', ['ignore', 'clip'])
@pytest.mark.parametrize('avg_factor', [None, 4.0, torch.tensor(4.0)])
@pytest.mark.parametrize('weight', [None, torch.tensor([1.0, 0, 1, 1])])
@pytest.mark.parametrize(
    ('loss', 'arguments', 'channels'),
    [
        ('EQLV2Loss', {'num_classes': 3}, 4),
        ('CrossEntropyCustomLoss', {'num_classes': 3}, 4),
        ('CrossEntropyCustomLoss', {'num_classes': 3, 'use_sigmoid': True}, 3),
    ],
)
def test_losses_of_mmdet_that_wait_for_nothing_themselves(
    loss: str, arguments: Dict[str, Any], channels: int, weight: Any, avg_factor: Any, on_invalid: str
) -> None:
    """FocalLoss waits off CUDA, in one_hot; tests/losses/test_fake_tensors.py shows that its guard does not."""
    pytest.importorskip('mmdet')
    from mmguard.losses.mmdet import GuardedLoss

    guarded = GuardedLoss(loss, **arguments, on_invalid=on_invalid)
    label = torch.tensor([0, 7, 3, -1])
    leaf = torch.rand(4, channels, requires_grad=True)
    with NoWait() as mode:
        guarded(leaf, label, weight, avg_factor=avg_factor).backward()
    assert mode.seen > 5


def test_the_check_itself_sees_a_synchronisation() -> None:
    values = torch.tensor([1.0, 2.0])
    with NoWait():
        for call in (
            lambda: values.sum().item(),
            lambda: values[values > 1],
            lambda: bool((values > 1).any()),
            # A debugging mode may.
            lambda: softmax_cross_entropy(torch.zeros(1, 2), torch.tensor([0]), on_invalid='raise'),
        ):
            with pytest.raises(AssertionError, match=r'aten\.'):
                call()
