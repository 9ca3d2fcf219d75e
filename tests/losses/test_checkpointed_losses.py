"""A head and its loss under activation checkpointing: what is computed again is not counted again."""

from __future__ import annotations

import pytest
import torch
from torch.utils.checkpoint import checkpoint
from wrapped_cases import batch, build

from mmguard.losses.mmseg import GuardedCrossEntropyLoss, GuardedLoss


@pytest.mark.parametrize('use_reentrant', [False, True])
@pytest.mark.parametrize('name', ['ohem', 'lovasz', 'focal', 'dice, softmax', 'tversky', 'own class'])
def test_labels_are_counted_once(name: str, use_reentrant: bool) -> None:
    loss = GuardedCrossEntropyLoss() if name == 'own class' else GuardedLoss(build(name))
    scores, label = batch('ohem' if name == 'own class' else name)
    label[0] = 77

    def step(leaf: torch.Tensor) -> torch.Tensor:
        return (loss(leaf.sin(), label) * leaf.mean()).exp()

    for _ in range(2):
        checkpoint(step, scores.clone().requires_grad_(), use_reentrant=use_reentrant).backward()
        assert loss.take_counts().tolist() == [48, 24, 0]


@pytest.mark.parametrize('name', ['ohem', 'focal', 'dice, softmax', 'own class'])
def test_a_call_of_a_transform_leaves_the_counter_as_it_was(name: str) -> None:
    """A batched tensor in it would make the next ordinary call raise."""
    func = pytest.importorskip('torch.func')
    loss = GuardedCrossEntropyLoss() if name == 'own class' else GuardedLoss(build(name))
    scores, label = batch('ohem' if name == 'own class' else name)
    label[0] = 77
    loss(scores.requires_grad_(), label)
    if name == 'ohem':  # selects by value
        with pytest.raises(RuntimeError, match='vmap'):
            func.vmap(loss)(scores.unsqueeze(1), label.unsqueeze(1))
    else:
        func.vmap(loss)(scores.unsqueeze(1), label.unsqueeze(1))
    func.grad(loss)(scores, label)
    loss(scores, label).sum().backward()
    assert loss.take_counts().tolist() == [96, 48, 0]
