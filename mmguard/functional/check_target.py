"""The guard as a function that raises: once in front of a training, or when a loss looks odd."""

from __future__ import annotations

from typing import Dict, List, Optional, Tuple

import torch
from torch import Tensor

from mmguard.errors import LabelGuardError
from mmguard.functional.batch_cause import likely_cause
from mmguard.functional.binary_target import mend_binary_target
from mmguard.functional.distributions import mend_distributions
from mmguard.functional.target_checks import (
    MULTILABEL,
    TargetShapeError,
    TargetTypeError,
    both,
    check_class_target,
    check_loss_weight,
    check_multilabel_target,
    check_probability_target,
    check_tensors,
    class_dim,
    elements_of,
    holds_probabilities,
    number_of_classes,
)
from mmguard.labels import check_int, describe_values
from mmguard.tally import Tally

KINDS = ('classes', 'probabilities', 'multilabel')


def check_target(
    logits: Tensor,
    target: Tensor,
    weight: Optional[Tensor] = None,
    ignore_index: float = -100,
    *,
    kind: Optional[str] = None,
) -> None:
    r"""Raises where a target does not fit the logits, and says what to write instead.

    It looks at the values, so it waits for the device: call it on the first batches, or in a data loader's test. The
    losses (:func:`mmguard.functional.cross_entropy`) check shapes and dtypes in every step, and values without a wait.

    Args:
        logits (Tensor): Scores, floating point, shape (C), (N, C) or (N, C, \*).
        target (Tensor): What the loss is to be given.
        weight (Tensor, optional): Weight per class, shape (C).
        ignore_index (int): The class index that takes no part; with ``'multilabel'`` any value, also NaN.
        kind (str, optional): ``'classes'`` (indices, (N, \*)), ``'probabilities'`` (rows that add up to 1, the shape of
            ``logits``) or ``'multilabel'`` (the shape of ``logits``, each in [0, 1] or ``ignore_index``). ``None``: as
            ``F.cross_entropy`` decides, probabilities where the shapes are equal.

    Raises:
        ValueError: Shapes that do not fit, a weight of the wrong length, one output channel with class indices.
        TypeError: Dtypes that do not fit; for floating point class indices the message tells what the values look like.
        LabelGuardError: Invalid values, with counts, first positions and the likely cause; or no target to train on,
            where PyTorch's mean is NaN.

    Example:
        >>> check_target(torch.zeros(4, 3), torch.tensor([0, 1, 2, -100]))
        >>> check_target(torch.zeros(4, 3), torch.tensor([1, 2, 3, 1]))
        Traceback (most recent call last):
        ...
        mmguard.errors.LabelGuardError: 1 of 4 targets are invalid: value 3 (1 time); first at (2,). ...
    """
    if kind not in (None, *KINDS):
        raise ValueError(f'kind must be one of {", ".join(map(repr, KINDS))} or None, got {kind!r}')
    check_tensors(logits, target)
    if kind is None:
        kind = 'probabilities' if holds_probabilities(logits, target) else 'classes'
    if kind == 'multilabel':
        check_multilabel_target(logits, target)
        _check_unit(target, ignore_index)
        return
    if kind == 'probabilities':
        _check_probabilities(logits, target)
    else:
        _check_classes(logits, target, check_int('ignore_index', ignore_index))
    check_loss_weight(logits, weight)


def _check_classes(logits: Tensor, target: Tensor, ignore_index: int) -> None:
    if target.is_floating_point() and tuple(target.shape) == elements_of(logits):
        raise TargetTypeError(f'{both(logits, target)}; class indices are integers. {_fractions(target)}')
    check_class_target(logits, target)
    classes = number_of_classes(logits)
    if classes == 1:
        raise TargetShapeError(
            f'{both(logits, target)}: the softmax of a single channel is always 1, so class 0 has loss 0 for ever and '
            f'class 1 is out of range. Give the model two channels, or use {MULTILABEL} with target.unsqueeze(1)'
        )
    target = target.detach().long()
    takes_part = target != ignore_index
    invalid = takes_part & ((target < 0) | (target >= classes))
    if not takes_part.any():
        what = (
            f'all {target.numel():,} targets are ignored (ignore_index={ignore_index})'
            if target.numel()
            else 'no target'
        )
        raise LabelGuardError(
            f'{what}: the mean of nothing is NaN by '
            f"PyTorch's rule, and so are all weights after the next step. Leave such crops out, look whether "
            f'ignore_index swallows a class, or take mmguard.functional.cross_entropy, which gives 0 with gradient 0',
            [Tally(total=target.numel())],
        )
    if not invalid.any():
        return
    values = _counts(target[invalid])
    cause = likely_cause(target, _counts(target[takes_part]), values, classes, ignore_index)
    raise LabelGuardError(
        f'{sum(values.values()):,} of {target.numel():,} targets are invalid: {describe_values(values)}; first at '
        f'{_listed(invalid)}. Valid are 0..{classes - 1} or ignore_index={ignore_index}. {_sentence(cause)}To train '
        f"on without them: mmguard.functional.cross_entropy(..., on_invalid='ignore')",
        [Tally(total=target.numel(), skipped=sum(values.values()), values=values)],
        _positions(invalid),
    )


def _check_probabilities(logits: Tensor, target: Tensor) -> None:
    if not holds_probabilities(logits, target):
        raise TargetShapeError(
            f'{both(logits, target)}; probabilities have the shape of the logits. Class indices need no kind; or make '
            f'them one-hot: torch.nn.functional.one_hot(target, {number_of_classes(logits)}).movedim(-1, 1).float()'
        )
    check_probability_target(logits, target)
    mend_distributions(target, class_dim(logits), on_invalid='raise')


def _check_unit(target: Tensor, ignore_index: float) -> None:
    values = target.detach()
    invalid = mend_binary_target(values, torch.float32, ignore_index, 'ignore').invalid
    if not invalid.any():
        return
    found = values[invalid]
    if found.is_floating_point() and found.isnan().any():
        advice = 'NaN for a label that nobody gave: ignore_index=float("nan") in the loss, or fill it in'
    elif (found == 255).all():
        advice = 'A 0/255 mask: (target > 0).float(); if 255 is void: ignore_index=255'
    elif (found == -1).all():
        advice = '-1 for a label that nobody gave: ignore_index=-1'
    elif (values == values.round()).all():
        advice = (
            'Whole numbers above 1 look like class indices, or counts: mmguard.functional.cross_entropy takes the '
            'first, (target > 0).float() says of the others whether there is any'
        )
    else:
        advice = 'Each target is the probability of one label; logits become some with target.sigmoid()'
    raise LabelGuardError(
        f'{found.numel():,} of {values.numel():,} multi-label targets lie outside [0, 1], between '
        f'{found.min().item():g} and {found.max().item():g}; first at {_listed(invalid)}. {advice}',
        [Tally(total=values.numel(), skipped=found.numel())],
        _positions(invalid),
    )


def _fractions(target: Tensor) -> str:
    """What floating point class indices look like, and the way back."""
    values = target.detach().double()
    finite = values[values.isfinite()]
    if finite.numel() < values.numel():
        return f'{values.numel() - finite.numel():,} of {values.numel():,} are NaN or infinite: look at the loader'
    if (finite == finite.round()).all():
        return 'All values are whole: target.long()'
    shown = ', '.join(f'{value:.4g}' for value in finite[finite != finite.round()].unique()[:4].tolist())
    scaled = finite * 255
    if finite.min() >= 0 and finite.max() <= 1 and (scaled - scaled.round()).abs().max() < 0.02:
        return (
            f'The fractions ({shown}, ...) are k/255: ToTensor was applied to a mask, which is for images. Use '
            f'torch.as_tensor(np.array(mask)).long(), or PILToTensor; to go back: (target * 255).round().long()'
        )
    return (
        f'Fractions ({shown}, ...) come from a resize that averages: resize masks with nearest '
        f'(InterpolationMode.NEAREST, mode="nearest"), then target.long(). Rounding them makes labels up'
    )


def _counts(values: Tensor) -> Dict[int, int]:
    found, numbers = torch.unique(values, return_counts=True)
    return {int(value): int(number) for value, number in zip(found.tolist(), numbers.tolist())}


def _positions(invalid: Tensor) -> List[Tuple[int, ...]]:
    return [tuple(row) for row in invalid.nonzero()[:5].tolist()]


def _listed(invalid: Tensor) -> str:
    return ', '.join(map(str, _positions(invalid))) if invalid.dim() else 'the only element'


def _sentence(cause: Optional[str]) -> str:
    return '' if cause is None else f'Likely cause: {cause} '
