"""The caller's mistakes: PyTorch's kind of exception, and words that say what to write."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from mmguard.functional import binary_cross_entropy_with_logits, cross_entropy

MAP = torch.zeros(2, 3, 4, 5)
LABEL = torch.zeros(2, 4, 5, dtype=torch.long)
ROWS, CLASSES = torch.zeros(6, 3), torch.zeros(6, dtype=torch.long)


def raised(call: Any) -> Exception:
    with pytest.raises(Exception) as caught:
        call()
    return caught.value


@pytest.mark.parametrize(
    ('logits', 'target', 'words'),
    [
        (MAP, torch.zeros(2, 3, 4, 5).long(), r'one-hot.*target\.argmax\(dim=1\).*target\.float\(\).*multi-label'),
        (torch.zeros(6), torch.zeros(6).long(), r'scores \(C\) of one element.*binary_cross_entropy_with_logits'),
        (MAP, LABEL.unsqueeze(1), r'extra channel, target\.squeeze\(1\)'),
        (MAP, LABEL.unsqueeze(-1), r'extra channel, target\.squeeze\(-1\)'),
        (MAP, LABEL.float(), r'torch\.float32.*target\.long\(\).*nearest.*ToTensor'),
        (MAP, torch.zeros(2, 4, 5, 3).long(), r'one-hot with the classes last.*movedim\(-1, 1\)\.float\(\)'),
        (MAP, torch.zeros(2, 4, 5, 4).long(), 'looks like colours'),
        (MAP, torch.zeros(2, 4, 5, 2).long(), r'gray and alpha .*LA.*target\[\.\.\., 0\]'),
        (MAP, torch.zeros(2, 7, 4, 5), 'has 7 channels, as if one-hot, but the logits know 3 classes'),
        (MAP, torch.zeros(2, 8, 10).long(), r'sizes differ: resize .*nearest'),
        (MAP, torch.zeros(2, 5, 4).long(), r'swapped, target\.transpose\(-1, -2\)'),
        (MAP, torch.zeros(3, 4, 5).long(), 'batches differ, 3 targets for 2 rows'),
        (ROWS, torch.zeros(7).long(), 'batches differ, 7 targets for 6 rows'),
        (MAP.movedim(1, -1), LABEL, r'classes stand last in the logits: logits\.movedim\(-1, 1\).*flatten'),
        (torch.zeros(3), torch.zeros(6).long(), r'scores \(C\) of one element'),
        (MAP, torch.tensor(0), 'one class index per element'),
        (torch.tensor(1.0), torch.tensor(0), 'with at least one class'),
        (MAP.long(), LABEL, r'must be floating point scores, got shape \(2, 3, 4, 5\) of torch\.int64\.$'),
        (LABEL, MAP, 'wrong order: the logits come first'),
    ],
)
def test_shapes_and_dtypes(logits: torch.Tensor, target: torch.Tensor, words: str) -> None:
    error = raised(lambda: cross_entropy(logits, target))
    theirs = raised(lambda: F.cross_entropy(logits, target))
    wanted = RuntimeError if isinstance(theirs, RuntimeError) else type(theirs)  # NotImplementedError is one
    assert isinstance(error, wanted)
    assert isinstance(error, (TypeError, ValueError))
    text = str(error)
    assert re.search(words, text), text
    assert f'({", ".join(map(str, logits.shape))})' in text


@pytest.mark.parametrize(
    ('options', 'words'),
    [
        ({'weight': torch.ones(4)}, r'weight has shape \(4\), the logits \(2, 3, 4, 5\).*one number per class, here 3'),
        ({'label_smoothing': 1.5}, 'between 0 and 1, got 1.5'),
        ({'reduction': 'avg'}, 'avg is not a valid value for reduction'),
        ({'ignore_index': 255.0}, 'ignore_index must be an int, got 255.0'),
    ],
)
def test_arguments(options: dict, words: str) -> None:
    error = raised(lambda: cross_entropy(MAP, LABEL, **options))
    assert isinstance(error, type(raised(lambda: F.cross_entropy(MAP, LABEL, **options))))
    with pytest.raises((TypeError, ValueError), match=words):
        cross_entropy(MAP, LABEL, **options)


def test_ignore_index_with_probabilities() -> None:
    soft = MAP.softmax(1)
    error = raised(lambda: cross_entropy(MAP, soft, ignore_index=255))
    assert isinstance(error, type(raised(lambda: F.cross_entropy(MAP, soft, ignore_index=255))))
    assert 'ignore_index=255 goes with class indices' in str(error)
    cross_entropy(MAP, soft, ignore_index=-1)  # PyTorch lets it pass


@pytest.mark.parametrize('wrong', [None, [1, 2], 3])
def test_no_tensor(wrong: Any) -> None:
    with pytest.raises(TypeError, match=rf'target must be a Tensor, got {type(wrong).__name__}'):
        cross_entropy(MAP, wrong)


@pytest.mark.parametrize(
    ('logits', 'target', 'words'),
    [
        (ROWS, CLASSES, r'look like class indices: mmguard\.functional\.cross_entropy.*one_hot\(target, 3\)'),
        (MAP, LABEL, r'look like class indices.*movedim\(-1, 1\)'),
        (torch.zeros(6, 1), torch.zeros(6), r'target\.unsqueeze\(1\).*logits\.squeeze\(1\)'),
        (MAP, MAP.movedim(1, -1), r'classes stand last in it: target\.movedim\(-1, 1\)'),
        (MAP, MAP[:1], 'one target in .0, 1. per logit'),
    ],
)
def test_multilabel(logits: torch.Tensor, target: torch.Tensor, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        binary_cross_entropy_with_logits(logits, target)
    assert isinstance(raised(lambda: F.binary_cross_entropy_with_logits(logits, target)), ValueError)


def test_unknown_modes() -> None:
    with pytest.raises(ValueError, match='skip'):
        binary_cross_entropy_with_logits(MAP, MAP, on_invalid='skip')


def test_raise_names_rows_that_are_no_distribution() -> None:
    target = torch.tensor([[0.2, 0.3, 0.5], [1, 1, 0], [0, 0, 0], [float('nan'), 0, 1], [-1, 1, 1], [0, 1, 0]])
    with pytest.raises(ValueError, match='4 of 6 soft targets are no distribution over the 3 classes') as caught:
        cross_entropy(ROWS, target, on_invalid='raise')
    assert caught.value.positions == [(1,), (2,), (3,), (4,)]
    assert caught.value.tallies[0].skipped == 4
