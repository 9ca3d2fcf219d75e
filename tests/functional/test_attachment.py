"""Nothing to train on: the loss is 0, hangs on the graph and its gradient is 0."""

from __future__ import annotations

import torch
from batches import FAR, STABLE, Batch, batches
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
