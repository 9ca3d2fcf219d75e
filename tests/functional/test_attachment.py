"""Nothing to train on: the loss is 0, hangs on the graph and its gradient is 0."""

from __future__ import annotations

import itertools

import pytest
import torch
from batches import FAR, MODES, STABLE, Batch, batches
from hypothesis import given
from hypothesis import strategies as st


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


@pytest.mark.parametrize('reduction', ['none', 'mean', 'sum'])
@pytest.mark.parametrize('mode', MODES)
def test_on_maps_with_every_option(mode: str, reduction: str) -> None:
    for value, weighted, class_weighted, avg_non_ignore in itertools.product(
        (255, 19, -FAR), (False, True), (False, True), (False, True)
    ):
        batch = Batch(
            mode=mode,
            scores=torch.randn(6, 3, generator=torch.Generator().manual_seed(0)),
            label=torch.full((6,), value),
            weight=torch.zeros(6) if weighted else None,
            class_weight=torch.tensor([0.1, 0.0, 3.0]) if class_weighted else None,
            ignore_index=255,
            avg_non_ignore=avg_non_ignore,
            reduction=reduction,
            as_map=True,
        )
        loss, grad, counts = batch.run()
        assert loss.eq(0).all()
        assert grad.eq(0).all()
        assert counts == [6, 0 if value == 255 else 6, 0]
