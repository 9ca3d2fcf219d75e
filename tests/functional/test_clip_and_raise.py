"""on_invalid='clip' is the loss of clamped labels; 'raise' tells values, counts and positions."""

from __future__ import annotations

import pytest
import torch
from batches import FAR, STABLE, Batch, batches
from hypothesis import given

from mmguard import LabelGuardError
from mmguard.functional import mask_cross_entropy, sigmoid_cross_entropy, softmax_cross_entropy


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
