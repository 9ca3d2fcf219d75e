"""Arguments and targets that cannot be guarded: the error names image and field."""

from __future__ import annotations

from typing import Any, Dict, List

import numpy as np
import pytest
import torch

from mmguard.detection import guard_targets

GOOD = [1.0, 2.0, 30.0, 40.0]


def target(labels: List[int]) -> Dict[str, Any]:
    number = len(labels)
    boxes, masks = torch.tensor([GOOD] * number), torch.zeros(number, 4, 4)
    return {'boxes': boxes, 'labels': torch.tensor(labels), 'masks': masks, 'image_id': 7}


@pytest.mark.parametrize(
    ('key', 'value', 'error'),
    [
        ('labels', None, TypeError),
        ('labels', [1, 2], TypeError),
        ('labels', torch.ones(2), TypeError),
        ('labels', torch.zeros(0), TypeError),
        ('labels', torch.ones(2, 5).long(), ValueError),
        ('boxes', torch.zeros(0), ValueError),
        ('boxes', torch.zeros(2, 5), ValueError),
        ('boxes', np.zeros((2, 4)), TypeError),
        ('boxes', torch.ones(3, 4), ValueError),
        ('masks', torch.ones(1, 4, 4), ValueError),
    ],
)
def test_wrong_shapes_and_types_name_image_and_field(key: str, value: Any, error: type, refuses: Any) -> None:
    with refuses(error, match=rf"targets\[1\]\['{key}'\]"):
        guard_targets([target([1]), {**target([1, 2]), key: value}], 5, box_format='xyxy')


LABELS_ONLY = {'labels': torch.tensor([1])}
ROTATED = {**LABELS_ONLY, 'boxes': torch.zeros(1, 5)}


@pytest.mark.parametrize(
    ('targets', 'arguments', 'error'),
    [
        (None, {}, TypeError),
        ([torch.zeros(3)], {}, TypeError),
        (target([1]), {}, TypeError),
        ([{'boxes': torch.zeros(0, 4)}], {}, ValueError),
        ([target([1]), LABELS_ONLY], {}, ValueError),
        ([LABELS_ONLY, target([1])], {}, ValueError),
        ([ROTATED, {**LABELS_ONLY, 'boxes': torch.zeros(1, 4)}], {}, ValueError),
        ([target([1])], dict(box_format='xxyy'), ValueError),
        ([target([1])], dict(on_invalid='ignore'), ValueError),
        ([target([1])], dict(on_invalid='skip'), ValueError),
        ([target([1])], dict(min_label=5), ValueError),
        ([target([1])], dict(label_map={1: 0}, min_label=1), ValueError),
        ([target([1])], dict(sources=[]), ValueError),
        ([target([1])], dict(instance_keys='track_ids'), TypeError),
    ],
)
def test_wrong_arguments_are_reported(targets: Any, arguments: Dict[str, Any], error: type, refuses: Any) -> None:
    with refuses(error, match=next(iter(arguments), None)):
        guard_targets(targets, 5, **arguments)


@pytest.mark.parametrize(
    'change',
    [
        dict(masks=torch.ones(3, 8, 16)),
        dict(masks=torch.ones(2, 8, 16), boxes=torch.ones(3, 4)),
        dict(masks=[b'rle'], labels=torch.tensor([1, 2])),
    ],
)
def test_counts_that_differ_blame_a_transform(change: Dict[str, Any], refuses: Any) -> None:
    one = {'boxes': torch.tensor([[0.0, 0, 4, 4]] * 2), 'labels': torch.tensor([1, 1])}
    with refuses(ValueError):
        guard_targets([{**one, **change}], 5)
