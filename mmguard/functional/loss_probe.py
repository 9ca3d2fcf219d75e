"""Whether a loss or a metric of somebody's own takes a valid target, and leaves out what is ignored."""

from __future__ import annotations

from typing import Any, Callable, Optional

import torch
from torch import Tensor

from mmguard.functional.target_checks import TargetShapeError, class_dim


def check_loss(
    loss: Callable[[Tensor, Tensor], Any], logits: Tensor, target: Tensor, ignored: Tensor, kind: str
) -> None:
    """Calls a loss once, and looks at the gradient of the scores of ignored elements: it must be zero.

    Args:
        loss (callable): ``loss(logits, target)``.
        logits, target (Tensor): That fit together.
        ignored (Tensor): bool, the shape of ``target``: takes no part.
        kind (str): One of ``mmguard.functional.check_target.KINDS``.

    Raises:
        ValueError: A loss that fails because of the ignored elements, or trains on them. The error of a loss that fails
            without them, too, is passed on.
    """
    scores = logits.detach().clone().requires_grad_()
    try:
        value = loss(scores, target)
    except Exception as error:  # of a loss that is not known
        if not ignored.any():
            raise
        loss(scores, target.masked_fill(ignored, 0))
        raise TargetShapeError(
            f'the targets are right, but {_name_of(loss)} fails where {_value(target, ignored)} is among them, and not '
            f'without: {type(error).__name__}: {error}. It makes one-hot vectors of the labels, or looks something up '
            f'by them, before the ignored ones are left out. Replace them first, and leave them out of the result: '
            f'valid = target != {_value(target, ignored)}; target.masked_fill(~valid, 0)'
        ) from error
    gradient = _gradient(value, scores)
    if gradient is None or not ignored.any():
        return
    if kind == 'classes':
        gradient = gradient.movedim(class_dim(logits), -1).abs().amax(-1)
    trained = int((gradient[ignored] != 0).count_nonzero())
    if trained:
        raise TargetShapeError(
            f'{_name_of(loss)} trains on {trained:,} of {int(ignored.count_nonzero()):,} ignored elements '
            f'({_value(target, ignored)}): its ignore_index does nothing here, or is another value. Give it the scores '
            f'and targets of the others alone, or take mmguard.functional.cross_entropy or '
            f'binary_cross_entropy_with_logits'
        )


def _gradient(value: Any, scores: Tensor) -> Optional[Tensor]:
    """Of the loss by the scores; ``None`` for a metric, which has none."""
    if not isinstance(value, Tensor) or not value.requires_grad:
        return None
    return torch.autograd.grad(value.sum(), scores, allow_unused=True)[0]


def _name_of(loss: Any) -> str:
    return getattr(loss, '__name__', None) or type(loss).__name__


def _value(target: Tensor, ignored: Tensor) -> str:
    return f'{target[ignored][0].item():g}'
