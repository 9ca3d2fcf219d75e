"""Assertions of mmguard.testing: right code passes, wrong code is named."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from mmguard.testing import (
    PropertyFailure,
    assert_full_marks,
    assert_ignores,
    assert_moves_together,
    assert_trains_on_empty,
    label_to_output,
)


def flip_at_random(image, mask):
    return (image[:, ::-1], mask[:, ::-1]) if random.random() < 0.5 else (image, mask)


def crop_and_pad(image, mask):
    return np.pad(image[40:, 60:], ((0, 40), (0, 60), (0, 0))), np.pad(mask[40:, 60:], ((0, 40), (0, 60)))


def halve(image, mask):
    return image[::2, ::2], mask[::2, ::2]


def invert_and_blur(image, mask):
    blurred = sum(np.roll(image.astype(int), shift, 1) for shift in (-1, 0, 1)) // 3
    return (255 - blurred).astype(np.uint8), mask


def as_tensors(image, mask):
    return torch.from_numpy(image).permute(2, 0, 1) / 255, torch.from_numpy(mask)


@pytest.mark.parametrize('transform', [flip_at_random, crop_and_pad, halve, invert_and_blur, as_tensors])
def test_what_moves_both_passes(transform):
    assert_moves_together(transform)


@pytest.mark.parametrize(
    'transform',
    [
        lambda image, mask: (image[::-1], mask),
        lambda image, mask: (image, mask[::-1, ::-1]),
        lambda image, mask: (np.roll(image, 9, 0), mask),
        lambda image, mask: (image, np.roll(mask, (5, -7), (0, 1))),
        lambda image, mask: (image[::2, ::2], mask),
        lambda image, mask: (image, sum(np.roll(mask.astype(int), shift, 1) for shift in (-1, 0, 1)) // 3),
        lambda image, mask: (image[:, ::-1] if random.random() < 0.3 else image, mask),
        lambda image, mask: (np.zeros_like(image), mask),
    ],
)
def test_what_moves_one_is_named(transform):
    with pytest.raises(AssertionError):
        assert_moves_together(transform)


def flip_boxes(image, boxes):
    return image[:, ::-1], np.stack(
        [image.shape[1] - boxes[:, 2], boxes[:, 1], image.shape[1] - boxes[:, 0], boxes[:, 3]], 1
    )


def test_boxes():
    assert_moves_together(flip_boxes, labels='boxes')
    with pytest.raises(AssertionError, match='left-right'):
        assert_moves_together(lambda image, boxes: (image, flip_boxes(image, boxes)[1]), labels='boxes')
    with pytest.raises(AssertionError, match='12 px'):
        assert_moves_together(lambda image, boxes: (image, boxes + np.float32([12, 0, 12, 0])), labels='boxes')


def test_losses():
    assert_ignores(nn.CrossEntropyLoss(ignore_index=255))
    assert_ignores(lambda scores, labels: F.cross_entropy(scores, labels, ignore_index=7), ignore_index=7)
    with pytest.raises(AssertionError):
        assert_ignores(lambda scores, labels: F.cross_entropy(scores, labels.clamp(max=3)))
    with pytest.raises(AssertionError):
        assert_ignores(lambda scores, labels: (scores * 0).sum())


def test_outputs():
    def batch(label):
        return torch.ones(2, 3, 8, 8), torch.full((2, 8, 8), label)

    model = nn.Conv2d(3, 5, 1)
    assert label_to_output(model, nn.CrossEntropyLoss(), batch, 5) == {label: label for label in range(5)}

    def shifted(scores, target):
        return F.cross_entropy(scores, (target - 1).clamp(min=0))

    found = label_to_output(model, shifted, batch, 5)
    assert [found[label] for label in (2, 3, 4)] == [1, 2, 3]
    constant = label_to_output(model, lambda scores, target: scores.square().mean(), batch, 5)
    assert set(constant.values()) == {None}


class TwoHeads(nn.Module):
    def __init__(self):
        super().__init__()
        self.classes, self.boxes = nn.Linear(4, 3), nn.Linear(4, 4)

    def losses(self, empty, attached=True):
        features = torch.ones(2, 4)
        found = {'loss_cls': F.cross_entropy(self.classes(features), torch.tensor([0, 1]))}
        boxes = self.boxes(features)
        if not empty:
            found['loss_box'] = boxes.square().mean()
        elif attached:
            found['loss_box'] = boxes.sum() * 0
        return found


def test_empty_batches():
    model = TwoHeads()
    assert_trains_on_empty(model.losses, model)
    with pytest.raises(AssertionError, match='loss_box'):
        assert_trains_on_empty(lambda empty: model.losses(empty, attached=False), model)

    def unreached(empty):
        return {**model.losses(False), **({'loss_box': torch.zeros(())} if empty else {})}

    with pytest.raises(AssertionError, match='boxes'):
        assert_trains_on_empty(unreached, model)

    def infinite(empty):
        return {name: loss / (0 if empty else 1) for name, loss in model.losses(empty).items()}

    with pytest.raises(AssertionError, match='for an empty'):
        assert_trains_on_empty(infinite, model)


def test_full_marks():
    def accuracy(found, wanted):
        return np.mean([np.mean(one == other) for one, other in zip(found, wanted)])

    truth = [np.array([[0, 1], [2, 3]]), np.array([[1, 1], [1, 1]])]
    assert_full_marks(accuracy, [(one, one) for one in truth])
    with pytest.raises(AssertionError, match='of 1'):
        assert_full_marks(accuracy, [(one, one + 1) for one in truth])
    with pytest.raises(AssertionError, match='is empty'):
        assert_full_marks(accuracy, [])


@pytest.mark.parametrize(
    ('wrong', 'outcome', 'data'),
    [
        (lambda: assert_moves_together(lambda image, mask: (image, mask[::-1])), 'broken', dict(seed=0)),
        (lambda: assert_moves_together(lambda image, mask: (image * 0, mask * 0)), 'not run', {}),
        (lambda: assert_full_marks(lambda found, wanted: 0.5, [(1, 1)]), 'broken', dict(value=0.5)),
        (lambda: assert_full_marks(lambda found, wanted: 1.0, []), 'not run', {}),
    ],
)
def test_what_was_not_run_is_not_called_broken(wrong, outcome, data):
    with pytest.raises(PropertyFailure) as raised:
        wrong()
    assert (raised.value.result.outcome, raised.value.result.data) == (outcome, data)


def test_an_assertion_says_what_was_run():
    model = TwoHeads()
    found = [
        assert_moves_together(halve, tries=3),
        assert_ignores(nn.CrossEntropyLoss(ignore_index=255)),
        assert_trains_on_empty(model.losses, model),
        assert_full_marks(lambda found, wanted: 1.0, [(1, 1)]),
    ]
    assert {one.outcome for one in found} == {'ran'}
    assert [one.data for one in found] == [dict(seen=3), dict(share=0.0), dict(parameters=4), dict(value=1.0)]
