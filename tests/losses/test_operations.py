"""The operations that a guard adds to a stock loss, by name: on a GPU each is a launch."""

from __future__ import annotations

from collections import Counter
from typing import Any, Dict, Tuple

import pytest
import torch
from loss_cases import CROSS_ENTROPY, scores_and_labels
from loss_checks import count_operations
from mmseg.registry import MODELS

CLASS_WEIGHT = [0.5, 1.0, 2.0, 1.0]
#: Labels in two steps, one comparison that finds the valid ones, and their number, which the average needs.
MARKED = {'clamp': 1, 'ne': 1, 'masked_fill_': 1, 'eq': 1, 'count_nonzero': 1}
LOOKED_UP = {'threshold': 1, 'clamp_': 1, 'ne': 1, 'eq': 1, 'bitwise_or': 1, 'count_nonzero': 1}
#: Arguments -> operations of the guarded loss that PyTorch's own loss, with its sum and its division, has not.
ADDED: Dict[str, Tuple[Dict[str, Any], Dict[str, int]]] = {
    'mean': ({}, {**MARKED, 'add': 1}),
    'mean of what is not ignored': ({'avg_non_ignore': True}, {**MARKED, 'ne': 2, 'count_nonzero': 2, 'add': 1}),
    'class weights': (
        {'class_weight': CLASS_WEIGHT},
        {**LOOKED_UP, 'constant_pad_nd': 1, 'index_select': 1, 'sum': 1, 'add': 1},
    ),
    'loss_weight': ({'loss_weight': 0.4}, {**MARKED, 'add': 1, 'mul': 2}),
}
BARE = {'_log_softmax', 'nll_loss2d_forward', 'nll_loss2d_backward', '_log_softmax_backward_data', 'ones_like'}


@pytest.mark.parametrize('name', ADDED)
def test_each_operation_of_mmsegs_cross_entropy(name: str) -> None:
    arguments, added = ADDED[name]
    guarded = CROSS_ENTROPY['mmseg'][1](**arguments)
    scores, label = scores_and_labels((2, 4, 6, 5))
    label[0, 0], label[1, 0] = 255, 19
    found = count_operations(lambda leaf: guarded(leaf, label, ignore_index=255), scores)
    assert found == Counter({**dict.fromkeys(BARE, 1), 'sum': 1, 'div': 2}) + Counter(added)
    assert sum(found.values()) <= (18 if 'class_weight' in arguments or 'avg_non_ignore' in arguments else 16)
    assert guarded.take_counts().tolist() == [60, 5, 0]


def test_the_bars() -> None:
    scores, label = scores_and_labels((2, 4, 6, 5))
    stock = MODELS.build(dict(type='mmseg.CrossEntropyLoss'))
    numbers = {}
    for name, loss in {
        'stock': stock,
        'guarded': CROSS_ENTROPY['mmseg'][1](),
        'weighted': CROSS_ENTROPY['mmseg'][1](class_weight=CLASS_WEIGHT),
    }.items():
        found = count_operations(lambda leaf, loss=loss: loss(leaf, label, ignore_index=255), scores)
        numbers[name] = sum(found.values())
    assert numbers['stock'] <= 10
    assert numbers['guarded'] <= 14
    assert numbers['weighted'] <= 18


#: Scope and arguments -> number of operations. mmdet averages by a factor of the caller, sigmoid needs one-hot rows.
MOST: Dict[str, Tuple[str, Dict[str, Any], Dict[str, Any], int]] = {
    'mmdet': ('mmdet', {}, {}, 18),
    'mmdet, avg_factor and weights': ('mmdet', {}, {'weight': torch.ones(60), 'avg_factor': 60.0}, 38),
    'mmdet, sigmoid': ('mmdet', {'use_sigmoid': True}, {}, 29),
    'mmseg, sigmoid': ('mmseg', {'use_sigmoid': True}, {}, 29),
    'mmseg, clip': ('mmseg', {'on_invalid': 'clip'}, {}, 18),
}


@pytest.mark.parametrize('name', MOST)
def test_the_other_modes(name: str) -> None:
    scope, arguments, given, most = MOST[name]
    guarded = CROSS_ENTROPY[scope][1](**arguments)
    scores = torch.randn(60, 4)
    label = torch.randint(0, 4, (60,))
    found = count_operations(lambda leaf: guarded(leaf, label, **given), scores)
    assert sum(found.values()) <= most, found


def test_a_loss_that_is_called_several_times_adds_one_operation() -> None:
    guarded = CROSS_ENTROPY['mmseg'][1]()
    scores, label = scores_and_labels((2, 4, 6, 5))
    first, second = (count_operations(lambda leaf: guarded(leaf, label), scores) for _ in range(2))
    assert second - first == Counter({'add': 1})
    assert torch.equal(guarded.take_counts(), torch.tensor([120, 0, 0]))
