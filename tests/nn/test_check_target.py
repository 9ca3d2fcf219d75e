"""check_target: what is wrong with a batch, where, why, and what to write instead."""

from __future__ import annotations

import re
from typing import Any, Dict, List

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch_cases import STABLE

from mmguard import LabelGuardError
from mmguard.functional import check_target, cross_entropy

GENERATOR = torch.Generator().manual_seed(0)
LABEL = torch.randint(0, 3, (2, 16, 16), generator=GENERATOR)
MASK = (torch.rand((2, 16, 16), generator=GENERATOR) > 0.5).long()


def scores(classes: int, like: Tensor = LABEL) -> Tensor:
    return torch.zeros(like.shape[0], classes, *like.shape[1:])


def refused(logits: Tensor, target: Tensor, error: Any = LabelGuardError, **options: Any) -> str:
    with pytest.raises(error) as caught:
        check_target(logits, target, **options)
    return str(caught.value)


def blob(top: float, size: int = 32) -> Tensor:
    """A round mask of 0 and ``top``, made larger by interpolation."""
    y, x = torch.meshgrid(torch.arange(8.0), torch.arange(8.0), indexing='ij')
    small = ((y - 4) ** 2 + (x - 4) ** 2 < 9).double() * top
    return F.interpolate(small[None, None], size=(size, size), mode='bilinear')[:, 0]


def test_valid_targets_pass() -> None:
    check_target(scores(3), LABEL)
    check_target(scores(3), LABEL.byte(), torch.ones(3))
    check_target(scores(3), LABEL.masked_fill(MASK == 1, 255), ignore_index=255)
    check_target(scores(3), torch.rand(2, 3, 16, 16).softmax(1))
    check_target(torch.zeros(3), torch.tensor(1))
    check_target(torch.zeros(4, 3), torch.rand(4, 3), kind='multilabel')
    check_target(torch.zeros(4, 3), torch.tensor([[0.0, 1.0, -1.0]] * 4), ignore_index=-1, kind='multilabel')
    nan = float('nan')
    check_target(torch.zeros(4, 3), torch.tensor([[0.0, 1.0, nan]] * 4), ignore_index=nan, kind='multilabel')


@pytest.mark.parametrize(
    ('classes', 'target', 'code'),
    [
        (3, LABEL + 1, 'MG115'),
        (2, MASK * 255, 'MG103'),
        (3, LABEL.masked_fill(MASK == 1, 255), 'MG104'),
        (3, LABEL - 1, 'MG105'),
        (3, LABEL.masked_fill(MASK == 1, 3), 'MG102'),
        (3, LABEL * 120, 'MG125'),
        (12, MASK * 128, 'MG121'),
        (21, LABEL * 64, 'MG121'),
        (4, MASK * 128, 'MG125'),
        (2, blob(255).round().long(), 'MG136'),
        (3, LABEL + 2 * MASK, 'MG107'),
        (3, LABEL + 90_000 * MASK, 'MG137'),
        (4, torch.tensor([0, 1, 2, 4])[torch.randint(0, 4, (2, 16, 16))], 'MG118'),
    ],
)
def test_causes(classes: int, target: Tensor, code: str) -> None:
    assert re.findall(r'\bMG\d+', refused(scores(classes, target), target))[0] == code


def test_what_the_error_holds() -> None:
    target = LABEL.clone()
    target[1, 3, 4:6] = 77
    with pytest.raises(LabelGuardError) as caught:
        check_target(scores(3), target)
    assert caught.value.positions == [(1, 3, 4), (1, 3, 5)]
    assert (caught.value.tallies[0].total, caught.value.tallies[0].values) == (512, {77: 2})


@pytest.mark.parametrize(
    ('target', 'error', 'options'),
    [
        (LABEL.float(), TypeError, {}),
        (LABEL.float() / 255, TypeError, {}),
        (LABEL.half() / 255, TypeError, {}),
        (blob(2, 16).expand(2, -1, -1), TypeError, {}),
        (LABEL.float().masked_fill(MASK == 1, float('nan')), TypeError, {}),
        (scores(3).long(), TypeError, {}),
        (LABEL, ValueError, {'weight': torch.ones(2)}),
        (scores(3).softmax(1), ValueError, {'weight': torch.ones(2)}),
        (LABEL, ValueError, {'kind': 'soft'}),
        (LABEL, ValueError, {'kind': 'probabilities'}),
        (LABEL, ValueError, {'kind': 'multilabel'}),
    ],
)
def test_dtypes_weights_and_kinds(target: Tensor, error: type, options: Dict[str, Any], refuses: Any) -> None:
    with refuses(error):
        check_target(scores(3), target, **options)


def test_every_target_is_ignored() -> None:
    target = torch.full_like(LABEL, 255)
    assert F.cross_entropy(scores(3), target, ignore_index=255).isnan()
    refused(scores(3), target, ignore_index=255)
    refused(torch.zeros(0, 3), torch.zeros(0).long())


def test_one_channel() -> None:
    refused(scores(1), MASK, ValueError)


@pytest.mark.parametrize('row', [[1.0, 1.0, 0.0], [0.0, 0.0, 0.0], [-1.0, 2.0, 0.5], [0.9, 0.9, 0.9]])
def test_probabilities(row: List[float], refuses: Any) -> None:
    with refuses(LabelGuardError) as caught:
        check_target(torch.zeros(2, 3), torch.tensor([[0.0, 1.0, 0.0], row]))
    assert (caught.value.positions, caught.value.tallies[0].total) == ([(1,)], 2)


@pytest.mark.parametrize('value', [255.0, -1.0, float('nan'), 3.0, 1.7])
def test_multilabel(value: float, refuses: Any) -> None:
    with refuses(LabelGuardError) as caught:
        check_target(torch.zeros(1, 3), torch.tensor([[0.0, 1.0, value]]), kind='multilabel')
    assert caught.value.positions == [(0, 2)]


@STABLE
@given(st.lists(st.integers(-3, 6) | st.sampled_from([255, 2**40]), min_size=1, max_size=8), st.integers(1, 5))
def test_it_raises_exactly_where_something_is_wrong(values: list, classes: int) -> None:
    """And says as many as the loss counts."""
    target = torch.tensor(values)
    logits = torch.zeros(len(values), classes)
    _, counts = cross_entropy(logits, target, ignore_index=255, return_tally=True)
    if classes == 1:
        refused(logits, target, ValueError, ignore_index=255)
    elif counts[1] or (target == 255).all():
        with pytest.raises(LabelGuardError) as caught:
            check_target(logits, target, ignore_index=255)
        assert caught.value.tallies[0].skipped == counts[1]
    else:
        check_target(logits, target, ignore_index=255)
        assert F.cross_entropy(logits, target, ignore_index=255).isfinite()
