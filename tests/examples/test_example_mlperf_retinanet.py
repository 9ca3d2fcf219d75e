"""The recipe for MLPerf's RetinaNet, beside what people do today: skip the whole image, divide by the images left."""

from __future__ import annotations

import re
from typing import Any, Callable, Dict, List, Tuple

import pytest
import torch
from example_scripts import output_of
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip('torchvision')

from mlperf_retinanet import NUM_CLASSES, SIZE, small_retinanet
from torch import Tensor, nn

from mmguard.detection import guard_batch, guard_targets

Batch = Tuple[List[Tensor], List[Dict[str, Tensor]]]


@pytest.mark.slow
def test_the_script_dies_and_trains_and_counts() -> None:
    said = output_of('mlperf_retinanet.py')
    assert re.search(r'^stock: .*IndexError.*\b600\b', said, re.M)
    first, last = map(float, re.findall(r'guarded: loss (\S+) -> (\S+) in 40 iterations', said)[0])
    assert last < 0.7 * first
    assert re.search(r'32 of 320.*\{600: 32\}', said)  # every fifth of 160 images has one


def batch(*labels: List[int]) -> Batch:
    """One image per list, one box per label."""
    generator = torch.Generator().manual_seed(len(labels))
    images, targets = [], []
    for one in labels:
        corner = torch.randint(0, 44, (len(one), 2), generator=generator).float()
        images.append(torch.rand(3, SIZE, SIZE, generator=generator))
        targets.append({'boxes': torch.cat([corner, corner + 18], 1), 'labels': torch.tensor(one, dtype=torch.int64)})
    return images, targets


def reference(images: List[Tensor], targets: List[Dict[str, Tensor]], net: nn.Module) -> Tensor:
    return sum(net(images, targets).values())


def workaround(images: List[Tensor], targets: List[Dict[str, Tensor]], net: nn.Module) -> Tensor:
    """An image with any invalid label adds no loss, and the sum is divided by how many did."""
    losses = [
        reference([image], [target], net)
        for image, target in zip(images, targets)
        if ((target['labels'] >= 0) & (target['labels'] < NUM_CLASSES)).all()
    ]
    return sum(losses) / len(losses)


def step(loss_of: Callable[..., Tensor], images: Any, targets: Any) -> Tensor:
    """The loss and the whole gradient, one behind the other."""
    torch.manual_seed(0)
    net = small_retinanet()
    loss = loss_of(list(images), targets, net)
    loss.backward()
    return torch.cat([loss.detach()[None], *(parameter.grad.flatten() for parameter in net.parameters())])


def guarded(*labels: List[int]) -> Any:
    images, targets, _ = guard_batch(*batch(*labels), NUM_CLASSES, box_format='xyxy', return_tally=True)
    return images, targets


def distance(left: Tensor, right: Tensor) -> float:
    assert left.isfinite().all()
    return float((left - right).abs().max() / right.abs().max())


INVALID = st.sampled_from([264, 600, -1, -300])
CLEAN_OR_ALL_INVALID = st.one_of(
    st.lists(st.integers(0, NUM_CLASSES - 1), max_size=3), st.lists(INVALID, min_size=1, max_size=3)
)


@given(st.lists(CLEAN_OR_ALL_INVALID, min_size=1, max_size=4), st.lists(st.integers(0, 5), min_size=1, max_size=3))
@settings(deadline=None, max_examples=15, derandomize=True)
def test_it_equals_the_workaround_where_every_label_of_an_image_is_invalid(
    labels: List[List[int]], clean: List[int]
) -> None:
    labels = [*labels, clean]  # the workaround divides by zero without one
    assert distance(step(reference, *guarded(*labels)), step(workaround, *batch(*labels))) < 1e-5


def test_it_keeps_the_good_instances_that_the_workaround_throws_away() -> None:
    ours = step(reference, *guarded([1, 2], [600, 5, 7]))
    images, targets = batch([1, 2], [600, 5, 7])
    theirs = step(workaround, images, targets)
    by_hand = [targets[0], {key: value[1:] for key, value in targets[1].items()}]
    assert torch.equal(ours, step(reference, images, by_hand))
    assert distance(ours, theirs) > 0.01

    # Classes that are wanted somewhere: the gradient of their bias is negative.
    def wanted(numbers: Tensor) -> List[int]:
        parameters = dict(small_retinanet().named_parameters())
        sizes = [1, *(parameter.numel() for parameter in parameters.values())]
        bias = dict(zip(['loss', *parameters], numbers.split(sizes)))['head.classification_head.cls_logits.bias']
        return (bias < 0).nonzero().flatten().tolist()

    assert wanted(ours) == [1, 2, 5, 7]
    assert wanted(theirs) == [1, 2]


def test_where_no_image_is_left_there_is_still_a_loss() -> None:
    with pytest.raises(ZeroDivisionError):
        step(workaround, *batch([600], [264, 300]))
    background = step(reference, *guarded([600], [264, 300]))
    images, _ = batch([600], [264, 300])
    _, nothing = batch([], [])
    assert torch.equal(background, step(reference, images, nothing))
    assert background.isfinite().all()


def test_without_leaving_images_out_they_are_background() -> None:
    """guard_targets keeps the batch as large as it was: the other choice."""
    images, targets = batch([1, 2], [600])
    kept, _ = guard_targets(targets, NUM_CLASSES, return_tally=True)
    assert [len(target['labels']) for target in kept] == [2, 0]
    with_background, without = step(reference, images, kept), step(reference, *guarded([1, 2], [600]))
    assert distance(with_background, without) > 0.01
