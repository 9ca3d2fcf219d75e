"""Checks that raise an error if a target is invalid; use them before training, or if a loss has implausible values."""

from __future__ import annotations

from functools import partial
from typing import Any, Callable, List, Optional, Sequence

import torch
from torch import Tensor

from mmguard.functional.target_values import (
    check_floats,
    check_probabilities,
    check_unit,
    check_values,
    describe_classes,
    warn_of_classes,
    warn_of_swallowed,
)
from mmguard.functional.validate import (
    MULTILABEL,
    TargetShapeError,
    describe_pair,
    get_class_dim,
    get_num_classes,
    holds_probabilities,
    squeeze_channel,
    validate_class_shape,
    validate_class_weight,
    validate_dense_target,
    validate_logits,
    validate_tensors,
)
from mmguard.labels.rules import check_int


def check_loss(
    loss: Callable[[Tensor, Tensor], Any], logits: Tensor, target: Tensor, ignored: Tensor, kind: str
) -> None:
    """Raise ``ValueError`` if ``loss(logits, target)`` trains on ignored elements, or fails only because of them.

    ``ignored`` is a bool mask with the shape of ``target``; ``kind`` is one of :data:`KINDS`.
    """
    scores = logits.detach().clone().requires_grad_()
    try:
        value = loss(scores, target)
    except Exception as error:  # an unknown loss may raise anything
        if not ignored.any():
            raise
        loss(scores, target.masked_fill(ignored, 0))
        raise TargetShapeError(
            f'the targets are valid, but {_get_loss_name(loss)} fails because they contain '
            f'{_describe_value(target, ignored)}: {type(error).__name__}: {error}. The loss uses labels as indices '
            f'(one-hot vectors, a table) before it excludes ignored ones. Replace ignored labels first, then exclude '
            f'their loss: valid = target != {_describe_value(target, ignored)}; target.masked_fill(~valid, 0)'
        ) from error
    gradient = _compute_gradient(value, scores)
    if gradient is None or not ignored.any():
        return
    if kind == 'classes':
        gradient = gradient.movedim(get_class_dim(logits), -1).abs().amax(-1)
    trained = int((gradient[ignored] != 0).count_nonzero())
    if trained:
        raise TargetShapeError(
            f'{_get_loss_name(loss)} trains on {trained:,} of {int(ignored.count_nonzero()):,} ignored elements '
            f'({_describe_value(target, ignored)}): its ignore_index has no effect or a different value. Pass only '
            f'the scores and targets of elements that are not ignored, or use mmguard.functional.cross_entropy or '
            f'binary_cross_entropy_with_logits'
        )


def _compute_gradient(value: Any, scores: Tensor) -> Optional[Tensor]:
    """Return the gradient of a loss with respect to the scores, or ``None`` for a metric, which has no gradient."""
    if not isinstance(value, Tensor) or not value.requires_grad:
        return None
    return torch.autograd.grad(value.sum(), scores, allow_unused=True)[0]


def _get_loss_name(loss: Any) -> str:
    return getattr(loss, '__name__', None) or type(loss).__name__


def _describe_value(target: Tensor, ignored: Tensor) -> str:
    return f'{target[ignored][0].item():g}'


KINDS = ('classes', 'probabilities', 'multilabel')


def check_target(
    logits: Tensor,
    target: Tensor,
    weight: Optional[Tensor] = None,
    ignore_index: float = -100,
    *,
    kind: Optional[str] = None,
    loss: Optional[Callable[[Tensor, Tensor], Any]] = None,
) -> str:
    r"""Raise an error with a correction if a target does not fit the logits, else return a description of the target.

    Reads the target's values and so waits for the device: call it on the first batches, or in a test of the data.
    The losses (:func:`mmguard.functional.cross_entropy`) check shapes, dtypes and values in every step without waiting.

    Args:
        logits (Tensor): Scores, floating point, shape (C), (N, C) or (N, C, \*).
        target (Tensor): The target for the loss.
        weight (Tensor, optional): Weight per class, shape (C).
        ignore_index (float): The excluded class index; for ``'multilabel'`` it may be any target value, including NaN.
        kind (str, optional): ``'classes'`` (indices, (N, \*)), ``'probabilities'`` (rows that add up to 1, the shape of
            ``logits``) or ``'multilabel'`` (the shape of ``logits``, each in [0, 1] or ``ignore_index``). ``None``
            selects ``'classes'`` if the shapes differ, else ``'multilabel'`` for one channel, or ``'probabilities'``.
        loss (callable, optional): Your loss or metric, called as ``loss(logits, target)`` to check that it accepts
            this target and excludes ignored elements.

    Returns:
        str: A description of the target, if nothing is wrong.

    Raises:
        ValueError: Shapes that do not fit, a weight of the wrong length, class indices for a single channel, a loss
            that trains on ignored elements. One message may list several faults.
        TypeError: Dtypes that do not fit; for floating point class indices the message names their likely origin.
        LabelGuardError: Invalid values (the message has counts, first positions and the likely cause), or no target to
            train on, for which PyTorch's mean is NaN.

    Warns:
        UserWarning: Valid targets from which a model learns next to nothing: only class 0, or nearly all ignored.

    Example:
        >>> print(check_target(torch.zeros(4, 3), torch.tensor([0, 1, 2, 1])))
        All 4 targets are valid: classes 0..2 of 3.
        >>> check_target(torch.zeros(4, 3), torch.tensor([1, 2, 3, 1]))
        Traceback (most recent call last):
        ...
        mmguard.labels.tally.LabelGuardError: 1 of 4 targets are invalid: value 3 (1 time); first at (2,); ...
    """
    if kind not in (None, *KINDS):
        raise ValueError(f'kind must be one of {", ".join(map(repr, KINDS))} or None, got {kind!r}')
    validate_tensors(logits, target)
    if kind is None:
        same = holds_probabilities(logits, target) and logits.dim() > 0
        # Equal shapes with one channel are binary targets: a softmax of one channel is always 1.
        kind = 'classes' if not same else 'multilabel' if get_num_classes(logits) == 1 else 'probabilities'
    description = f'All {target.numel():,} targets are valid.'
    ignored = target.isnan() if ignore_index != ignore_index else target == ignore_index
    if kind == 'multilabel':
        validate_dense_target(logits, target)
        check_unit(target, ignore_index)
        check_floats(logits, target)
        warn_of_swallowed(target, ignore_index)
    elif kind == 'probabilities':
        weights = partial(validate_class_weight, weight, get_num_classes(logits))
        _raise_all([weights, partial(check_probabilities, logits, target)])
        ignored = torch.zeros_like(target, dtype=torch.bool)
    else:
        _raise_all(_list_class_checks(logits, target, weight, check_int('ignore_index', ignore_index)))
        description = describe_classes(target, get_num_classes(logits), int(ignore_index))
        warn_of_classes(target, get_num_classes(logits), int(ignore_index))
    if loss is not None:
        check_loss(loss, logits, target, ignored, kind)
    return description


def _list_class_checks(
    logits: Tensor, target: Tensor, weight: Optional[Tensor], ignore_index: int
) -> List[Callable[[], None]]:
    """Return the checks of class indices, in the order in which their messages appear."""
    validate_logits(logits)
    weights = partial(validate_class_weight, weight, get_num_classes(logits))
    structure = [weights, partial(_check_channels, logits, target)]
    shape, squeezed = partial(_check_shape, logits, target), squeeze_channel(logits, target)
    if squeezed is not None:  # some losses expect the extra channel, so a fault of the values is reported first
        return [*structure, partial(check_values, logits, squeezed, ignore_index, squeezed=True), shape]
    # The values of one-hot vectors or colors are not class indices.
    same_dims = target.dim() == max(logits.dim() - 1, 0)
    values = [partial(check_values, logits, target, ignore_index)] if same_dims else []
    return [*structure, shape, *values]


def _raise_all(checks: Sequence[Callable[[], None]]) -> None:
    """Run all checks; raise the first error with the messages of all errors."""
    found: List[Exception] = []
    for check in checks:
        try:
            check()
        except (ValueError, TypeError) as error:
            found.append(error)
    if found:
        found[0].args = ('. Also: '.join(str(error).rstrip('.') for error in found),)
        raise found[0] from None


def _check_channels(logits: Tensor, target: Tensor) -> None:
    if get_num_classes(logits) == 1:
        raise TargetShapeError(
            f'{describe_pair(logits, target)}: the softmax of a single channel is always 1, so the loss of class 0 is '
            f'always 0, and class 1 is out of range. Give the model two channels, or use {MULTILABEL} with '
            f'target.unsqueeze(1)'
        )


def _check_shape(logits: Tensor, target: Tensor) -> None:
    try:
        validate_class_shape(logits, target)
    except TargetShapeError as error:
        if squeeze_channel(logits, target) is not None:
            error.args = (
                f'{error}. This is right for F.cross_entropy, but MONAI losses with to_onehot_y=True expect the '
                f'channel, (N, 1, ...): keep it for those losses',
            )
        raise
