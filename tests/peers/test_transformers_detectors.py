"""RT-DETR, DETR and Mask2Former of transformers: of a label that is no class they die; guarded it is deleted."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Callable, Dict, List

import pytest
import torch
from torch import Tensor, nn
from transformers_models import DETECTORS, NUM_CLASSES, Targets, batch, outputs_of

from mmguard.detection import guard_targets

RECIPES = (Path(__file__).parents[2] / 'docs/recipes.md').read_text(encoding='utf-8')


def by_the_recipe(model: nn.Module, pixels: Tensor, targets: Targets) -> Any:
    """What docs/recipes.md says to type, run."""
    blocks = re.findall(r'```python\n(targets = .*?)```', RECIPES, re.S)
    (block,) = [block for block in blocks if ('mask_labels' in block) == ('Mask2Former' in type(model).__name__)]
    apart = {'class_labels': [one['class_labels'] for one in targets], 'mask_labels': [one['masks'] for one in targets]}
    names = {
        'guard_targets': guard_targets,
        'model': model,
        'batch': {'pixel_values': pixels, 'labels': targets, **apart},
    }
    exec(block, names)
    return names['outputs']


def step(detector: str, pixels: Tensor, targets: Targets, run: Callable[..., Any] = outputs_of) -> Dict[str, Tensor]:
    """Losses and gradients of a fresh model, always the same one, with the same dropout and noise."""
    torch.manual_seed(0)
    model = DETECTORS[detector]().train()
    outputs = run(model, pixels, targets)
    outputs.loss.sum().backward()
    losses = {'loss': outputs.loss, **(outputs.get('loss_dict') or {})}
    gradients = {name: parameter.grad for name, parameter in model.named_parameters() if parameter.grad is not None}
    return {**{name: loss.detach() for name, loss in losses.items()}, **gradients}


def same(left: Dict[str, Tensor], right: Dict[str, Tensor]) -> bool:
    """Bit for bit."""
    assert all(value.isfinite().all() for value in (*left.values(), *right.values()))
    return left.keys() == right.keys() and all(torch.equal(left[name], right[name]) for name in left)


def picked(target: Dict[str, Tensor], places: List[int]) -> Dict[str, Tensor]:
    return {name: value[places] for name, value in target.items()}


@pytest.mark.parametrize('detector', DETECTORS)
@pytest.mark.parametrize('label', [7, -1])
def test_stock_dies_of_a_label_beyond_the_classes(detector: str, label: int) -> None:
    with pytest.raises(IndexError):
        step(detector, *batch([1, label], [0]))


def test_rt_detr_dies_where_it_embeds_labels_for_the_denoising() -> None:
    with pytest.raises(IndexError) as died:
        step('RT-DETR', *batch([1, 7], [0]))
    assert [entry.name for entry in died.traceback][-2:] == ['forward', 'embedding']


def test_one_beyond_the_classes_dies_in_rt_detr_and_is_trained_as_no_object_by_the_others_in_silence() -> None:
    pixels, targets = batch([1, NUM_CLASSES], [0])
    with pytest.raises(IndexError, match=r'\b5\b'):
        step('RT-DETR', pixels, targets)
    by_hand = [picked(targets[0], [0]), targets[1]]
    for detector in ('DETR', 'Mask2Former'):
        assert not same(step(detector, pixels, targets), step(detector, pixels, by_hand))


@pytest.mark.parametrize('detector', DETECTORS)
def test_guarded_targets_equal_deletion_by_hand_bit_for_bit(detector: str) -> None:
    pixels, targets = batch([1, 3], [7, 2, NUM_CLASSES], [], [-1])
    by_hand = [targets[0], picked(targets[1], [1]), targets[2], picked(targets[3], [])]
    assert same(step(detector, pixels, targets, by_the_recipe), step(detector, pixels, by_hand))


@pytest.mark.parametrize('detector', DETECTORS)
def test_where_nothing_is_left_it_trains_all_the_same(detector: str) -> None:
    pixels, targets = batch([7], [600, 7])
    by_hand = [picked(target, []) for target in targets]
    assert same(step(detector, pixels, targets, by_the_recipe), step(detector, pixels, by_hand))


def test_without_targets_rt_detr_lacks_the_losses_of_its_denoising_and_a_gradient() -> None:
    """What hangs DistributedDataParallel. The losses of the dictionary add up to the one that it returns."""
    found = [step('RT-DETR', *batch(*labels)) for labels in ([[1, 2], []], [[], []])]
    lacking = found[0].keys() - found[1].keys()
    embedding = {name for name in lacking if 'denoising_class_embed' in name}
    assert len(embedding) == 1
    assert lacking - embedding == {f'loss_{kind}_dn_{layer}' for kind in ('vfl', 'bbox', 'giou') for layer in (0, 1)}
    for one in found:
        parts = [value for name, value in one.items() if name.startswith('loss_')]
        torch.testing.assert_close(sum(parts), one['loss'])
