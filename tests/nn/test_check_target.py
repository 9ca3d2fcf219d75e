"""check_target: what is wrong with a batch, where, why, and what to write instead."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch_cases import STABLE

from mmguard import LabelGuardError
from mmguard.findings.advice import OF_BATCHES
from mmguard.findings.rules import RULES
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
    ('classes', 'target', 'code', 'line'),
    [
        (3, LABEL + 1, 'MG115', 'target = target - 1'),
        (2, MASK * 255, 'MG103', r'(target > 0).long()'),
        (3, LABEL.masked_fill(MASK == 1, 255), 'MG104', 'ignore_index=255'),
        (3, LABEL - 1, 'MG105', 'If -1 means ignored: ignore_index=-1'),
        (3, LABEL.masked_fill(MASK == 1, 3), 'MG102', '4 outputs'),
        (3, LABEL * 120, 'MG125', 'one table for all files'),
        (12, MASK * 128, 'MG121', 'np.array(Image.open(path)), neither cv2.imread'),
        (21, LABEL * 64, 'MG121', 'map no levels to classes'),
        (4, MASK * 128, 'MG125', 'one table for all files'),
        (2, blob(255).round().long(), 'MG136', 'mode="nearest"'),
        (2, blob(255).round().long(), 'MG136', '(target > 127).long()'),
        (3, LABEL + 2 * MASK, 'MG107', 'if all of them are classes: 5 outputs'),
        (3, LABEL + 90_000 * MASK, 'MG137', 'Renumber the ids to 0..2'),
        (4, torch.tensor([0, 1, 2, 4])[torch.randint(0, 4, (2, 16, 16))], 'MG118', 'masked_fill(target == 4, 3)'),
    ],
)
def test_causes(classes: int, target: Tensor, code: str, line: str) -> None:
    text = refused(scores(classes, target), target)
    assert f'Likely cause: {code} ' in text
    assert line in text


def test_an_ignored_class_keeps_its_output() -> None:
    assert 'score stays in the softmax' in check_target(scores(3), LABEL.clamp(min=1), ignore_index=0)
    assert 'softmax' not in check_target(scores(3), LABEL.masked_fill(MASK == 1, 255), ignore_index=255)


def test_what_the_error_holds() -> None:
    target = LABEL.clone()
    target[1, 3, 4:6] = 77
    with pytest.raises(LabelGuardError, match=r'2 of 512 targets are invalid: value 77 \(2 times\)') as caught:
        check_target(scores(3), target)
    assert caught.value.positions == [(1, 3, 4), (1, 3, 5)]
    assert caught.value.tallies[0].values == {77: 2}
    assert 'valid are 0..2 or ignore_index=-100' in str(caught.value)


def test_every_code_has_a_cause_and_its_advice_is_complete() -> None:
    assert set(OF_BATCHES) <= {cause.code for cause in RULES}
    words = dict.fromkeys(('num_classes', 'last', 'ways', 'marks', 'outputs', 'known', 'threshold'), 1)
    assert all(advice.format(**words) for advice in OF_BATCHES.values())


@pytest.mark.parametrize(
    ('target', 'words'),
    [
        (LABEL.float(), r'All values are whole: target\.long\(\)'),
        (LABEL.float() / 255, r'are k/255: ToTensor was applied to a mask.*\(target \* 255\)\.round\(\)\.long\(\)'),
        (LABEL.half() / 255, r'are k/255'),
        (blob(2, 16).expand(2, -1, -1), r'resize that averages: resize masks with nearest'),
        (LABEL.float().masked_fill(MASK == 1, float('nan')), r'are NaN or infinite'),
    ],
)
def test_floating_point_class_indices(target: Tensor, words: str) -> None:
    assert re.search(words, refused(scores(3), target, TypeError))


def test_every_target_is_ignored() -> None:
    target = torch.full_like(LABEL, 255)
    assert F.cross_entropy(scores(3), target, ignore_index=255).isnan()
    assert 'NaN by PyTorch' in refused(scores(3), target, ignore_index=255)
    assert refused(torch.zeros(0, 3), torch.zeros(0).long()).startswith('no target')


def test_one_channel() -> None:
    assert 'softmax of a single channel is always 1' in refused(scores(1), MASK, ValueError)


def test_weights_and_kinds() -> None:
    assert 'one number per class, here 3' in refused(scores(3), LABEL, ValueError, weight=torch.ones(2))
    assert 'one number per class' in refused(scores(3), scores(3).softmax(1), ValueError, weight=torch.ones(2))
    assert "'probabilities', 'multilabel' or None, got 'soft'" in refused(scores(3), LABEL, ValueError, kind='soft')
    assert 'one_hot(target, 3)' in refused(scores(3), LABEL, ValueError, kind='probabilities')
    assert 'look like class indices' in refused(scores(3), LABEL, ValueError, kind='multilabel')
    assert 'one-hot' in refused(scores(3), scores(3).long(), TypeError)


@pytest.mark.parametrize(
    ('rows', 'words'),
    [
        ([1.0, 1.0, 0.0], 'multi-label'),
        ([0.0, 0.0, 0.0], 'A row of zeros names no class'),
        ([-1.0, 2.0, 0.5], 'target.softmax(1)'),
        ([0.9, 0.9, 0.9], 'target / target.sum(1, keepdim=True)'),
    ],
)
def test_probabilities(rows: list, words: str) -> None:
    text = refused(torch.zeros(2, 3), torch.tensor([[0.0, 1.0, 0.0], rows]))
    assert words in text
    assert '1 of 2 soft targets' in text


@pytest.mark.parametrize(
    ('value', 'words'),
    [
        (255.0, 'If 255 is void, beside 0 and 1: ignore_index=255'),
        (-1.0, 'ignore_index=-1'),
        (float('nan'), 'ignore_index=float("nan")'),
        (3.0, 'class indices, or counts'),
        (1.7, 'target.sigmoid()'),
    ],
)
def test_multilabel(value: float, words: str) -> None:
    target = torch.tensor([[0.0, 1.0, value]])
    text = refused(torch.zeros(1, 3), target, kind='multilabel')
    assert words in text
    assert 'first at (0, 2)' in text


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
