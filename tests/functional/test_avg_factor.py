"""Invalid elements leave an explicit avg_factor, which never falls below min(avg_factor, 1)."""

from __future__ import annotations

import math
from typing import Union

import pytest
import torch
from batches import STABLE, Batch, batches
from factors import factor_left
from hypothesis import assume, given
from hypothesis import strategies as st

from mmguard.functional import (
    binary_cross_entropy_with_logits,
    check_target,
    cross_entropy,
    scale_avg_factor,
    sigmoid_cross_entropy,
    soft_cross_entropy,
    softmax_cross_entropy,
)
from mmguard.functional.reduction import EPS
from mmguard.labels.errors import LabelGuardError
from mmguard.labels.tally import Tally


@STABLE
@given(batches(reduction='mean'), st.sampled_from([0.0, 0.25, 1.0, 2.5, 3.0, 40.0]), st.booleans())
def test_the_rule(batch: Batch, avg_factor: float, as_tensor: bool) -> None:
    counted = torch.ones(len(batch.label), dtype=torch.bool) if batch.weight is None else batch.weight != 0
    number, kept = int(counted.sum()), int((counted & ~batch.invalid).sum())
    expected = factor_left(avg_factor, kept, number)
    assume(expected > 0 or kept == 0)  # stock divides what is there by eps, too
    total = Batch(**dict(batch.__dict__, reduction='sum')).run()[0]
    loss = batch.run(torch.tensor(avg_factor) if as_tensor else avg_factor)[0]
    torch.testing.assert_close(loss, total / (expected + EPS), rtol=1e-5, atol=1e-5)


@STABLE
@given(batches(reduction='mean'), st.sampled_from([0.5, 2.5]))
def test_clipped_elements_stay_counted(batch: Batch, avg_factor: float) -> None:
    total = Batch(**dict(batch.__dict__, reduction='sum')).run(on_invalid='clip')[0]
    loss = batch.run(avg_factor, on_invalid='clip')[0]
    torch.testing.assert_close(loss, total / (avg_factor + EPS), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize('avg_factor', [3, 3.0, torch.tensor(3), torch.tensor(3.0), torch.tensor(3, dtype=torch.half)])
def test_unchanged_without_invalid_elements(avg_factor: Union[float, torch.Tensor]) -> None:
    assert scale_avg_factor(avg_factor, torch.tensor(7), torch.tensor(7)).item() == 3
    assert scale_avg_factor(avg_factor, torch.tensor(0), torch.tensor(0)).item() == 3


def test_no_blow_up_of_a_factor_averaged_over_ranks() -> None:
    """Lowered by the number of invalid elements, 5.0 would be -3 here."""
    scores = torch.zeros(10, 2)
    label = torch.tensor([0, 1] + [9] * 8)
    loss, _ = softmax_cross_entropy(scores, label, avg_factor=5.0)
    assert loss.item() == pytest.approx(2 * 0.693147, abs=1e-5)


def test_examples_worked_out_by_hand() -> None:
    """Every element has the loss log 3, log 2 per channel."""
    scores, label = torch.zeros(4, 3), torch.tensor([0, 1, 255, 7])
    for avg_non_ignore, kept in ((True, 2), (False, 3)):
        loss, counts = softmax_cross_entropy(scores, label, ignore_index=255, avg_non_ignore=avg_non_ignore)
        assert loss.item() == pytest.approx(2 * math.log(3) / kept)
        assert counts.tolist() == [4, 1, 0]
    factor = scale_avg_factor(100, torch.tensor(1), torch.tensor(4))
    assert (factor.item(), factor.dtype) == (97, torch.float32)
    maps, weight = torch.zeros(1, 2, 1, 4), torch.tensor([1.0, 2, 3, 4])
    of_maps = [
        sigmoid_cross_entropy(maps, label.clamp(max=1)[None, None], one)[0].item()
        for one in (weight.reshape(1, 1, 4), weight.reshape(1, 1, 1, 4))
    ]
    assert of_maps == pytest.approx([10 * math.log(2) / 4] * 2)
    one = cross_entropy(torch.zeros(3), torch.tensor(1))
    assert one.item() == pytest.approx(math.log(3))
    loss = binary_cross_entropy_with_logits(torch.zeros(2), torch.tensor([0.0, 255]).double())
    assert (loss.item(), loss.dtype) == (pytest.approx(math.log(2)), torch.float64)
    with pytest.raises(LabelGuardError) as caught:
        binary_cross_entropy_with_logits(torch.zeros(3), torch.tensor([0.0, 255, 7]), on_invalid='raise')
    assert caught.value.tallies == [Tally(3, 2)]
    with pytest.raises(LabelGuardError) as caught:
        check_target(scores, torch.tensor([0, 1, 2, 7]))
    assert caught.value.tallies == [Tally(4, 1, values={7: 1})]
    soft = torch.tensor([[1.0, 0, 0], [0.5, 0.5, 0], [1, 1, 1], [0, 0, 1]])
    for avg_factor, divisor in ((None, 3), (40, 39)):
        loss, counts = soft_cross_entropy(scores, soft, torch.tensor([1.0, 2, 3, 4]), avg_factor=avg_factor)
        assert loss.item() == pytest.approx(7 * math.log(3) / divisor)
        assert counts.tolist() == [4, 1, 0]
    # A factor of the elements that weigh anything: the invalid one weighs nothing, so it was not counted.
    loss, _ = softmax_cross_entropy(scores, label, torch.tensor([1.0, 2, 1, 0]), ignore_index=255, avg_factor=40)
    assert loss.item() == pytest.approx(3 * math.log(3) / 40)
