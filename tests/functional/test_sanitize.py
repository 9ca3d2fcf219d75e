"""Sanitized targets: dtypes, clipping, raising, and the table of values."""

from __future__ import annotations

from collections import Counter

import pytest
import torch
from batches import FAR, STABLE, Batch, batches
from hypothesis import given, settings
from hypothesis import strategies as st

from mmguard import LabelGuardError
from mmguard.functional import mask_cross_entropy, sanitize_target, sigmoid_cross_entropy, softmax_cross_entropy
from mmguard.functional.update import HIGHEST, LOWEST, count_values


@STABLE
@given(batches())
def test_skipped_and_remapped(batch: Batch) -> None:
    seen, number = batch.label.numel(), int(batch.invalid.sum())
    assert batch.run()[2] == [seen, number, 0]
    assert batch.run(on_invalid='clip')[2] == [seen, 0, number]


@STABLE
@given(batches())
def test_what_sanitize_target_returns(batch: Batch) -> None:
    num_classes, label = batch.num_classes, batch.label
    before = label.clone()
    sanitized = sanitize_target(label, num_classes, batch.ignore_index)
    assert label.equal(before), 'the labels of the caller were written to'
    fields = (label, sanitized.target, sanitized.keep, sanitized.invalid, sanitized.ignored)
    for value, target, keep, invalid, ignored in zip(*(field.tolist() for field in fields)):
        assert ignored == (value == batch.ignore_index)
        assert invalid == (not 0 <= value < num_classes and not ignored)
        assert keep == (not invalid and not ignored)
        assert 0 <= target < num_classes
        assert target == value or not keep
    assert sanitized.target.dtype == sanitized.counts.dtype == torch.int64


VALUES = st.integers(-3, 30) | st.sampled_from([LOWEST - 1, LOWEST, HIGHEST, HIGHEST + 1, 2**62, -(2**62)])


@given(st.lists(VALUES, max_size=60), st.sampled_from([(-1,), (-1, 1), (1, -1), (1, -1, 1)]))
@settings(derandomize=True, deadline=None)
def test_every_value_within_the_table_is_counted(values: list, shape: tuple) -> None:
    label = torch.tensor(values, dtype=torch.int64).view(shape if values else (0,))
    before = label.clone()
    table = count_values(label)
    assert label.equal(before)
    assert table.shape == (HIGHEST - LOWEST + 1,)
    found = {LOWEST + place: n for place, n in enumerate(table.tolist()) if n}
    assert found == {value: n for value, n in Counter(values).items() if LOWEST <= value <= HIGHEST}


@pytest.mark.parametrize('dtype', [torch.uint8, torch.int8, torch.int16, torch.int32])
def test_labels_of_other_dtypes_and_of_no_dimension(dtype: torch.dtype) -> None:
    assert count_values(torch.full((3, 5, 7), 7, dtype=dtype))[7 - LOWEST] == 105
    assert count_values(torch.tensor(7, dtype=dtype))[7 - LOWEST] == 1


def test_a_transposed_map_is_not_written_to() -> None:
    label = torch.arange(12).view(3, 4).t()
    assert count_values(label).sum() == 12
    assert label.equal(torch.arange(12).view(3, 4).t())


@STABLE
@given(batches())
def test_clip_equals_clamped_labels(batch: Batch) -> None:
    clamped = torch.where(batch.invalid, batch.label.clamp(0, batch.num_classes - 1), batch.label)
    loss, grad, _ = batch.run(on_invalid='clip')
    expected, expected_grad, counts = batch.with_labels(clamped).run()
    assert counts[1] == 0
    torch.testing.assert_close(loss, expected, rtol=0, atol=0)
    torch.testing.assert_close(grad, expected_grad, rtol=0, atol=0)


@STABLE
@given(batches())
def test_raise_carries_the_failure_as_data(batch: Batch) -> None:
    wrong = batch.label[batch.invalid].tolist()
    if not wrong:
        loss, grad, _ = batch.run(on_invalid='raise')
        expected, expected_grad, _ = batch.run()
        assert loss.equal(expected)
        assert grad.equal(expected_grad)
        return
    with pytest.raises(LabelGuardError) as caught:
        batch.run(on_invalid='raise')
    (tally,) = caught.value.tallies
    assert tally.values == {value: wrong.count(value) for value in wrong}
    assert (tally.total, tally.skipped) == (len(batch.label), len(wrong))
    places = batch.invalid.nonzero().flatten().tolist()[:5]
    assert caught.value.positions == [(0, 0, place) if batch.as_map else (place,) for place in places]


def test_clip_of_masks_and_dense_targets() -> None:
    scores = torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(0))
    target = torch.ones(2, 4)
    loss, counts = mask_cross_entropy(scores, target, torch.tensor([-5, FAR]), on_invalid='clip')
    assert loss.equal(mask_cross_entropy(scores, target, torch.tensor([0, 2]))[0])
    assert counts.tolist() == [2, 0, 2]
    dense = torch.tensor([[0.5, -3.0, 7.0], [float('nan'), 1.0, float('inf')]])
    loss, counts = sigmoid_cross_entropy(scores[..., 0], dense, on_invalid='clip')
    clamped = torch.tensor([[0.5, 0.0, 1.0], [0.0, 1.0, 1.0]])
    assert loss.equal(sigmoid_cross_entropy(scores[..., 0], clamped)[0])
    assert counts.tolist() == [6, 0, 4]


def test_raise_of_masks_and_dense_targets() -> None:
    with pytest.raises(LabelGuardError) as caught:
        mask_cross_entropy(torch.zeros(2, 3, 4), torch.ones(2, 4), torch.tensor([80, 1]), on_invalid='raise')
    assert caught.value.tallies[0].values == {80: 1}
    with pytest.raises(LabelGuardError) as caught:
        sigmoid_cross_entropy(torch.zeros(3), torch.tensor([0.0, 3.0, -1.0]), on_invalid='raise')
    assert caught.value.positions == [(1,), (2,)]
    assert caught.value.tallies[0].skipped == 2


def test_raise_names_the_range() -> None:
    with pytest.raises(LabelGuardError, match=r'0\.\.2\b.*ignore_index=255'):
        softmax_cross_entropy(torch.zeros(1, 3), torch.tensor([3]), ignore_index=255, on_invalid='raise')
    with pytest.raises(LabelGuardError, match=r'0\.\.3\b'):  # 3 is the background
        sigmoid_cross_entropy(torch.zeros(1, 3), torch.tensor([4]), background=True, on_invalid='raise')


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


def test_soft_targets_may_exceed_1_by_rounding() -> None:
    for dtype in (torch.float16, torch.bfloat16, torch.float32):
        target = torch.tensor([1.0], dtype=dtype) + torch.finfo(dtype).eps
        assert target > 1
        assert sigmoid_cross_entropy(torch.zeros(1), target)[1].tolist() == [1, 0, 0]


@STABLE
@given(batches(), st.sampled_from(['ignored', 'invalid', 'both']), st.sampled_from([None, 0.0, 5.0]))
def test_zero_and_attached(batch: Batch, kind: str, avg_factor: object) -> None:
    if batch.reduction == 'sum':
        avg_factor = None
    label = torch.full_like(batch.label, batch.ignore_index if kind == 'ignored' else FAR)
    if kind == 'both':
        label[::2] = batch.ignore_index
    loss, grad, _ = batch.with_labels(label).run(avg_factor)
    assert loss.eq(0).all()
    assert grad.eq(0).all()
