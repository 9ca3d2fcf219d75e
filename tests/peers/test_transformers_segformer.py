"""SegFormer of transformers, by docs/recipes.md: its own cross entropy, and ours on its logits."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Callable, Dict

import pytest
import torch
from torch import Tensor
from transformers_models import NUM_CLASSES, SIZE, segformer

RECIPES = (Path(__file__).parents[2] / 'docs/recipes.md').read_text(encoding='utf-8')


@pytest.fixture
def recipe() -> Dict[str, Any]:
    """What its code block defines."""
    (block,) = [block for block in re.findall(r'```python\n(.*?)```', RECIPES, re.S) if 'compute_loss' in block]
    defined: Dict[str, Any] = {}
    exec(block[: block.index('\nloss = ')], defined)
    return defined


def label_map() -> Tensor:
    labels = torch.randint(0, NUM_CLASSES, (2, SIZE, SIZE), generator=torch.Generator().manual_seed(1))
    labels[:, :4] = 255
    return labels


def own_loss(model: Any, pixels: Tensor, labels: Tensor) -> Tensor:
    return model(pixel_values=pixels, labels=labels).loss


def step(loss_of: Callable[..., Tensor], labels: Tensor) -> Dict[str, Tensor]:
    torch.manual_seed(0)
    model, pixels = segformer().train(), torch.rand(2, 3, SIZE, SIZE)
    loss = loss_of(model, pixels, labels)
    loss.backward()
    return {'loss': loss.detach(), **{name: parameter.grad for name, parameter in model.named_parameters()}}


def guarded(recipe: Dict[str, Any]) -> Callable[..., Tensor]:
    return lambda model, pixels, labels: recipe['compute_loss'](model(pixel_values=pixels), labels)


def test_on_valid_labels_it_is_the_models_own_loss(recipe: Dict[str, Any]) -> None:
    torch.testing.assert_close(step(guarded(recipe), label_map()), step(own_loss, label_map()))
    assert not recipe['criterion'].tally().skipped


@pytest.mark.parametrize('label', [NUM_CLASSES, -1])
def test_one_pixel_ends_the_training_there_and_counts_as_ignored_here(recipe: Dict[str, Any], label: int) -> None:
    labels, ignored = label_map(), label_map()
    labels[0, 30, 5:9], ignored[0, 30, 5:9] = label, 255
    with pytest.raises(IndexError, match=str(label)):
        step(own_loss, labels)
    torch.testing.assert_close(step(guarded(recipe), labels), step(own_loss, ignored))
    assert recipe['criterion'].tally().skipped == 4


def test_without_a_pixel_to_train_its_loss_is_nan_and_ours_0(recipe: Dict[str, Any]) -> None:
    nothing = torch.full((2, SIZE, SIZE), 255)
    assert step(own_loss, nothing)['loss'].isnan()
    assert all((value == 0).all() for value in step(guarded(recipe), nothing).values())
