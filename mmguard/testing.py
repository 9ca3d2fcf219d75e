"""Assertions about a data pipeline, a loss, a model or a metric, for tests with pytest or in plain PyTorch code.

Like ``mmguard dry-run``, they test on small inputs what every valid training must do. Each assertion returns a
result that says what was run, or raises :class:`PropertyFailure` if a property is broken or could not be tested. See
``docs/testing.md``. OpenMMLab is not needed.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

import numpy as np
import torch
from torch import Tensor, nn

from mmguard.properties.alignment import describe_difference, draw_boxes, draw_field, fill_boxes
from mmguard.properties.datasets import seed_all
from mmguard.properties.result import Result, broken, not_run, ran
from mmguard.properties.scores import find_raised_outputs, measure_share, trace_backward
from mmguard.text import quantity

__all__ = [
    'PropertyFailure',
    'assert_full_marks',
    'assert_ignores',
    'assert_moves_together',
    'assert_trains_on_empty',
    'label_to_output',
]


class PropertyFailure(AssertionError):
    """Failure of a property that is broken or could not be tested.

    Args:
        result (Result): Result with the ``outcome`` ``'broken'`` or ``'not run'``, and the evidence in ``data``.
    """

    def __init__(self, result: Result) -> None:
        super().__init__(f'{result.outcome.upper()}: {result}')
        self.result = result


def assert_moves_together(
    transform: Callable[[np.ndarray, np.ndarray], Tuple[Any, Any]],
    labels: str = 'mask',
    size: Tuple[int, int] = (256, 320),
    tries: int = 16,
) -> Result:
    """Assert that a transform moves image and label together, by drawing the same figure into both.

    Args:
        transform (callable): Takes an image, uint8 of shape (H, W, 3), and its label; returns both, as arrays or
            tensors, the image of shape (H, W, C) or (C, H, W).
        labels (str): ``'mask'`` if the label is a uint8 array (H, W) of 0 and 20, ``'boxes'`` if it is a float array
            (N, 4) of x1, y1, x2, y2.
        tries (int): Number of seeds; ``random``, NumPy and PyTorch are seeded with each.

    Returns:
        Result: Gives the number of images in which the figure was seen.

    Raises:
        PropertyFailure: Image and label differ (see the message: seed, shift or flip), or no figure was found.

    Example:
        >>> print(assert_moves_together(lambda image, mask: (image[:, ::-1], mask[:, ::-1])))
        a figure in 16 of 16 images
        >>> assert_moves_together(lambda image, mask: (image[:, ::-1], mask))
        Traceback (most recent call last):
        mmguard.testing.PropertyFailure: BROKEN: seed 0: the image is flipped left-right against its mask
    """
    height, width = size
    seen = 0
    for seed in range(tries):
        rng = np.random.default_rng(seed)
        boxes = np.array(draw_boxes(rng, height, width), np.float32)
        figure = draw_field(rng, height, width) if labels == 'mask' else fill_boxes(boxes, height, width)
        image = np.where(figure > 0, 200, 50)[..., None].repeat(3, -1).astype(np.uint8)
        seed_all(seed)
        moved, label = transform(image, figure * np.uint8(20) if labels == 'mask' else boxes)
        shown = np.asarray(moved)
        if shown.ndim == 3 and shown.shape[0] in (1, 3, 4) and shown.shape[-1] not in (1, 3, 4):
            shown = shown.transpose(1, 2, 0)
        drawn = np.asarray(label).squeeze() if labels == 'mask' else fill_boxes(label, *shown.shape[:2])
        difference = describe_difference(shown, drawn, labels, labels == 'mask')
        _require(not difference, f'seed {seed}: {difference}', seed=seed)
        seen += difference is not None
    if not seen:
        raise PropertyFailure(not_run('', f'the figure was found in none of {quantity(tries, "image")}'))
    return ran('', f'a figure in {seen} of {quantity(tries, "image")}', dict(seen=seen))


def assert_ignores(loss: Callable[[Tensor, Tensor], Tensor], ignore_index: int = 255, num_classes: int = 4) -> Result:
    """Assert that a loss does not train the scores of ignored pixels.

    Args:
        loss (callable): Takes scores (N, C, H, W) and labels (N, H, W) of int64; returns a scalar.
        ignore_index (int): Label of ignored pixels.

    Raises:
        PropertyFailure: Ignored pixels have a gradient; the message compares the largest one with other pixels.

    Example:
        >>> print(assert_ignores(nn.CrossEntropyLoss(ignore_index=255)))
        half of 2 label maps ignored
    """
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn((2, num_classes, 16, 16), generator=generator).requires_grad_()
    labels = torch.randint(0, num_classes, (2, 16, 16), generator=generator)
    labels[..., :8] = ignore_index
    (gradient,) = torch.autograd.grad(loss(scores, labels), scores)
    _require(bool(gradient.any()), 'no score has a gradient')
    share = measure_share(gradient, labels == ignore_index)
    _require(not share, f'ignored pixels have up to {share:.2g} times the gradient of the others', share=share)
    return ran('', 'half of 2 label maps ignored', dict(share=share))


def label_to_output(
    model: nn.Module,
    loss: Callable[[Any, Any], Tensor],
    make_batch: Callable[[int], Tuple[Any, Any]],
    num_classes: int,
    scores: Optional[Callable[[Any], Tensor]] = None,
) -> Dict[int, Optional[int]]:
    """Return {class: output whose score a target of this class raises most}; ``None`` if no output is clearly first.

    Args:
        model (nn.Module): Model in training mode.
        loss (callable): Takes the model's result and the target; returns the classification loss.
        make_batch (callable): Takes a class; returns inputs, which are the same for each class, and a target of this
            class only.
        scores (callable, optional): Returns the scores, of shape (N, C, ...), from the model's result. By default the
            result itself is taken as the scores.

    Example:
        >>> batch = lambda label: (torch.ones(2, 4), torch.full((2,), label))
        >>> label_to_output(nn.Linear(4, 3), nn.CrossEntropyLoss(), batch, 3)
        {0: 0, 1: 1, 2: 2}
    """
    rows: List[Tensor] = []
    for label in range(num_classes):
        inputs, target = make_batch(label)
        seed_all(0)
        returned = model(inputs)
        found = returned if scores is None else scores(returned)
        (gradient,) = torch.autograd.grad(loss(returned, target), found)
        rows.append(gradient.sum([axis for axis in range(gradient.dim()) if axis != 1]))
    return dict(enumerate(find_raised_outputs(torch.stack(rows))))


def assert_trains_on_empty(step: Callable[[bool], Dict[str, Tensor]], model: nn.Module) -> Result:
    """Assert that a batch without targets gives finite losses that reach the same parameters as an ordinary batch.

    Args:
        step (callable): Takes ``True`` for a batch without targets, ``False`` for an ordinary one; returns the losses
            by name, before the backward pass.

    Raises:
        PropertyFailure: A loss is not finite, or parameters get no gradient; the message names them.
    """

    def add(losses: Mapping[str, Tensor]) -> Tensor:
        whole = sum(losses.values(), torch.zeros(()))
        _require(whole.requires_grad, 'the losses do not depend on the model: DistributedDataParallel fails')
        return whole

    usual, found = (trace_backward(model, partial(step, empty), add) for empty in (False, True))
    for one, batch in ((usual, 'a batch'), (found, 'an empty batch')):
        _require(not one.infinite, f'for {batch}: {one.describe_infinite()}')
    _require(not usual.describe_lack(found), usual.describe_lack(found))
    number = len(found.parameters)
    words = f'an empty batch gives {quantity(number, "parameter")} a gradient, as a batch with targets does'
    return ran('', words, dict(parameters=number))


def assert_full_marks(
    metric: Callable[[Sequence[Any], Sequence[Any]], float], dataset: Iterable[Tuple[Any, Any]], full: float = 1.0
) -> Result:
    """Assert that a metric gives the best value if the predictions are the ground truth.

    Args:
        metric (callable): Takes predictions and targets, and returns the value.
        dataset (iterable): Pairs (prediction, target). The prediction is the ground truth, read directly from the label
            file; the target is the same file, loaded by the pipeline.

    Raises:
        PropertyFailure: The ground truth does not get the best value (see the message), or ``dataset`` is empty.

    Example:
        >>> print(assert_full_marks(lambda found, wanted: float(found == wanted), [(1, 1), (2, 2)]))
        the ground truth of 2 samples as predictions
    """
    pairs = list(dataset)
    if not pairs:
        raise PropertyFailure(not_run('', 'the data set is empty'))
    value = float(metric([one for one, _ in pairs], [one for _, one in pairs]))
    _require(abs(value - full) <= 1e-3 * abs(full), f'the ground truth gets {value:g} of {full:g}', value=value)
    return ran('', f'the ground truth of {quantity(len(pairs), "sample")} as predictions', dict(value=value))


def _require(condition: Any, evidence: str, **data: Any) -> None:
    if not condition:  # not an assert, whose message pytest would change
        raise PropertyFailure(broken('', evidence, data))
