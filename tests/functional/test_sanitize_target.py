"""Counts are exact, whatever else is asked for."""

from __future__ import annotations

import torch
from batches import STABLE, Batch, batches
from hypothesis import given

from mmguard.functional import sanitize_target


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
