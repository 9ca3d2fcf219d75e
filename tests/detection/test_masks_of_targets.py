"""Masks of instances in guard_targets and guard_batch: their number, their size, and whether they hold a pixel."""

from __future__ import annotations

import warnings
from typing import Any, Dict, List

import pytest
import torch
from torch import Tensor

from mmguard.detection import guard_batch, guard_targets
from mmguard.detection import messages as of_warnings
from mmguard.detection import targets as of_targets


def target(masks: Any, number: int = 2, **more: Any) -> Dict[str, Any]:
    boxes = torch.tensor([0.0, 0.0, 4.0, 4.0] * number).reshape(number, 4)
    return {'boxes': boxes, 'labels': torch.ones(number, dtype=torch.int64), 'masks': masks, **more}


def drawn(number: int, height: int, width: int, empty: Any = (), dtype: torch.dtype = torch.uint8) -> Tensor:
    masks = torch.zeros(number, height, width, dtype=dtype)
    masks[:, 1:4, 1:4] = 1
    for place in empty:
        masks[place] = 0
    return masks


@pytest.fixture(autouse=True)
def _first_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(of_warnings, '_batches', {})
    monkeypatch.setattr(of_targets, '_batches_with_masks', 0)


@pytest.mark.parametrize('images', [[torch.zeros(3, 8, 16), torch.zeros(3, 8, 16)], [torch.zeros(1, 8, 16)] * 2])
@pytest.mark.parametrize('size', [(16, 8), (8, 15), (4, 9), (16, 32)])
def test_masks_of_another_size_than_their_image(images: List[Tensor], size: Any) -> None:
    targets = [target(drawn(2, 8, 16)), target(drawn(2, *size))]
    with pytest.warns(UserWarning, match=rf"targets\[1\]\['masks'\].*{size[0]} x {size[1]}.*8 x 16"):
        assert guard_batch(images, targets, 5)[1] is targets


def test_images_that_were_padded_into_one_tensor_may_be_larger_than_the_masks() -> None:
    stacked = torch.zeros(2, 3, 8, 16)
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        guard_batch(stacked, [target(drawn(2, 8, 16)), target(drawn(2, 6, 12))], 5)
    with pytest.warns(UserWarning, match='9 x 12.*8 x 16'):
        guard_batch(stacked, [target(drawn(2, 8, 16)), target(drawn(2, 9, 12))], 5)


def test_sizes_that_fit_and_masks_of_other_kinds_pass() -> None:
    images = [torch.zeros(3, 8, 16), torch.zeros(3, 10, 12)]
    warnings.simplefilter('error')
    for masks in (
        [drawn(2, 8, 16), drawn(2, 10, 12)],
        [drawn(2, 4, 8), drawn(2, 5, 6)],
        [['rle'] * 2] * 2,
        [drawn(0, 0, 0), drawn(2, 10, 12)],
    ):
        batch = [target(one, len(one)) for one in masks]
        assert guard_batch(images, batch, 5)[1] is batch


@pytest.mark.parametrize(
    'change',
    [dict(masks=drawn(3, 8, 16)), dict(boxes=torch.ones(3, 4)), dict(masks=[b'rle'], labels=torch.tensor([1, 2]))],
)
def test_counts_that_differ_blame_a_transform(change: Dict[str, Any], refuses: Any) -> None:
    with refuses(ValueError):
        guard_targets([{**target(drawn(2, 8, 16)), **change}], 5)


@pytest.mark.parametrize(
    'masks',
    [
        drawn(2, 8, 16, [1]),
        drawn(2, 7, 13, [1]),
        drawn(2, 8, 16, [1], torch.bool),
        drawn(2, 5, 5, [1], torch.float32),
        drawn(2, 16, 8, [1]).transpose(1, 2),
    ],
)
def test_a_mask_without_a_pixel_is_named_and_stays(masks: Tensor) -> None:
    batch = [target(drawn(2, 8, 16)), target(masks, image_id=torch.tensor([42]))]
    with pytest.warns(UserWarning, match='1 of 4.*image_id 42'):
        assert guard_targets(batch, 5) is batch


def test_masks_with_a_pixel_and_none_at_all_are_silent() -> None:
    corner = torch.zeros(2, 8, 16, dtype=torch.uint8)
    corner[:, 7, 15] = 1
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        guard_targets([target(corner), target(drawn(0, 8, 16), 0), target(drawn(2, 8, 16))], 5)


def test_what_is_dropped_is_not_counted_as_empty() -> None:
    batch = [{**target(drawn(2, 8, 16, [0])), 'labels': torch.tensor([600, 1])}]
    with pytest.warns(UserWarning, match='600') as caught:
        (guarded,) = guard_targets(batch, 5)
    assert len(guarded['masks']) == len(caught) == 1


def test_masks_are_read_in_the_first_batches_alone() -> None:
    whole, empty = [target(drawn(2, 8, 16))], [target(drawn(2, 8, 16, [1]))]
    for _ in range(63):
        guard_targets(whole, 5)
    for _ in range(100):
        guard_targets([target(drawn(0, 8, 16), 0)], 5)  # nothing is read
    with pytest.warns(UserWarning, match='1 of 2'):
        guard_targets(empty, 5)
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        guard_targets(empty, 5)
