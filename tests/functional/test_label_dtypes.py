"""Labels of every integer dtype, with values far outside of the classes."""

from __future__ import annotations

import pytest
import torch
from batches import FAR

from mmguard.functional import mask_cross_entropy, sigmoid_cross_entropy, softmax_cross_entropy

DTYPES = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
#: ends of the dtypes, and labels that wrap to a class when they are cast to a narrower one
ODD = {
    torch.uint8: (3, 200, 254),
    torch.int8: (3, 127, -128),
    torch.int16: (256, 32767, -32768),
    torch.int32: (65536, 2**31 - 1, -(2**31)),
    torch.int64: (FAR, -FAR, 2**63 - 1, -(2**63), 2**32, 2**32 + 1),
}


@pytest.mark.parametrize('dtype', DTYPES)
@pytest.mark.parametrize('function', [softmax_cross_entropy, sigmoid_cross_entropy])
def test_class_indices(function: object, dtype: torch.dtype) -> None:
    ignore_index = 255 if dtype is torch.uint8 else -1
    scores = torch.randn(20, 3, generator=torch.Generator().manual_seed(0))
    valid = [0, 1, 2, 2, ignore_index]
    label = torch.tensor([*valid, *ODD[dtype]], dtype=dtype)
    loss, counts = function(scores[: len(label)], label, ignore_index=ignore_index)
    expected, _ = function(scores[: len(valid)], torch.tensor(valid), ignore_index=ignore_index)
    torch.testing.assert_close(loss, expected)
    assert counts.tolist() == [len(label), len(ODD[dtype]), 0]


@pytest.mark.parametrize('dtype', DTYPES)
def test_clip(dtype: torch.dtype) -> None:
    scores = torch.randn(20, 3, generator=torch.Generator().manual_seed(0))[: len(ODD[dtype])]
    clamped = torch.tensor([min(max(value, 0), 2) for value in ODD[dtype]])
    loss, _ = softmax_cross_entropy(scores, torch.tensor(ODD[dtype], dtype=dtype), on_invalid='clip')
    assert loss.equal(softmax_cross_entropy(scores, clamped)[0])


def test_bool_labels_are_the_classes_0_and_1() -> None:
    scores = torch.randn(3, 2)
    label = torch.tensor([True, False, True])
    for function in (softmax_cross_entropy, sigmoid_cross_entropy):
        assert function(scores, label)[0].equal(function(scores, label.long())[0])
    dense = scores > 0
    assert sigmoid_cross_entropy(scores, dense)[0].equal(sigmoid_cross_entropy(scores, dense.float())[0])


@pytest.mark.parametrize('dtype', DTYPES)
def test_dense_targets(dtype: torch.dtype) -> None:
    scores = torch.randn(2, 2)
    target = torch.tensor([[0, 1], [1, 77]], dtype=dtype)
    loss, counts = sigmoid_cross_entropy(scores, target)
    expected = torch.nn.functional.binary_cross_entropy_with_logits(scores.flatten()[:3], torch.tensor([0.0, 1.0, 1.0]))
    torch.testing.assert_close(loss, expected)
    assert counts.tolist() == [4, 1, 0]


@pytest.mark.parametrize('dtype', DTYPES)
def test_classes_of_masks(dtype: torch.dtype) -> None:
    scores, target = torch.randn(2, 3, 4), torch.ones(2, 4)
    loss, counts = mask_cross_entropy(scores, target, torch.tensor([1, ODD[dtype][0]], dtype=dtype))
    assert counts.tolist() == [2, 1, 0]
    torch.testing.assert_close(loss, mask_cross_entropy(scores[:1], target[:1], torch.tensor([1]))[0])


def test_soft_targets_may_exceed_1_by_rounding() -> None:
    for dtype in (torch.float16, torch.bfloat16, torch.float32):
        target = torch.tensor([1.0], dtype=dtype) + torch.finfo(dtype).eps
        assert target > 1
        assert sigmoid_cross_entropy(torch.zeros(1), target)[1].tolist() == [1, 0, 0]
