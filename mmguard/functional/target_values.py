"""Values of a target: invalid ones, their likely cause, and what to write instead. All of it synchronises."""

from __future__ import annotations

from typing import Dict, List, Optional, Tuple

import torch
from torch import Tensor

from mmguard.functional.batch_messages import likely_cause
from mmguard.functional.distributions import sanitize_distributions
from mmguard.functional.sanitize import sanitize_binary_target
from mmguard.functional.target_checks import (
    TargetShapeError,
    TargetTypeError,
    both,
    check_probability_target,
    class_dim,
    holds_probabilities,
    number_of_classes,
)
from mmguard.labels.errors import LabelGuardError
from mmguard.labels.space import describe_values
from mmguard.labels.tally import Tally

HALF = 0.5
_WHOLE = 'All values are whole: target.long()'


def check_values(logits: Tensor, target: Tensor, ignore_index: int, squeezed: bool = False) -> None:
    """Check that class indices are integers, classes, and not all ignored; with one channel, 0 or 1."""
    if target.is_floating_point() or target.dtype.is_complex:
        words = _fractions(target)
        if not (squeezed and words == _WHOLE):  # MONAI's masks are floating point
            raise TargetTypeError(f'{both(logits, target)}; class indices are integers. {words}')
    classes = max(number_of_classes(logits), 2)
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
            f"{what}: the mean of nothing is NaN by PyTorch's rule, and so are all weights after the next step. If "
            f'every batch is so, a map from ids to classes (of another data set?) sends your values to the ignored '
            f'one, or ignore_index is a class: look at the values that the file holds. If single crops are, leave such '
            f'crops out, or take mmguard.functional.cross_entropy, which gives 0 with gradient 0',
            [Tally(total=target.numel())],
        )
    if not invalid.any():
        return
    values = _counts(target[invalid])
    cause = likely_cause(target, _counts(target[takes_part]), values, classes, ignore_index)
    raise LabelGuardError(
        f'{sum(values.values()):,} of {target.numel():,} targets are invalid: {describe_values(values)}; first at '
        f'{_listed(invalid)}; valid are 0..{classes - 1} or ignore_index={ignore_index}. {_ways(cause)}',
        [Tally(total=target.numel(), skipped=sum(values.values()), values=values)],
        _positions(invalid),
    )


def check_probabilities(logits: Tensor, target: Tensor) -> None:
    """Check that each row is a distribution over the classes."""
    if not holds_probabilities(logits, target):
        raise TargetShapeError(
            f'{both(logits, target)}; probabilities have the shape of the logits. Class indices need no kind; or make '
            f'them one-hot: torch.nn.functional.one_hot(target, {number_of_classes(logits)}).movedim(-1, 1).float()'
        )
    check_probability_target(logits, target)
    sanitize_distributions(target, class_dim(logits), on_invalid='raise')


def check_floats(logits: Tensor, target: Tensor) -> None:
    """Check that PyTorch's binary losses accept the dtype: their own message does not name the target."""
    if not target.is_floating_point():
        raise TargetTypeError(
            f'{both(logits, target)}; the values are right, but binary losses want floats: target.float(). '
            f'mmguard.functional.binary_cross_entropy_with_logits takes them as they are'
        )


def check_unit(target: Tensor, ignore_index: float) -> None:
    """Check that each element is in [0, 1], or is ignored."""
    values = target.detach()
    invalid = sanitize_binary_target(values, torch.float32, ignore_index, 'ignore').invalid
    if not invalid.any():
        return
    found = values[invalid]
    if found.is_floating_point() and found.isnan().any():
        advice = 'NaN for a missing label: ignore_index=float("nan") in the loss, or fill it in'
    elif (found == 255).all() and (values == 1).any():
        advice = 'If 255 is void, next to 0 and 1: ignore_index=255'
    elif (found == 255).all():
        advice = 'A 0/255 mask: (target > 0).float(); if 255 is void: ignore_index=255'
    elif found.min() > 0 and found.max() == 255 and (found > 127).double().mean() > HALF:
        advice = 'A 0/255 mask with values in between: (target > 127).float(), and resize masks only with nearest'
    elif (found == -1).all():
        advice = '-1 for a missing label: ignore_index=-1'
    elif (values == values.round()).all():
        advice = (
            'Whole numbers above 1 look like class indices, or counts: mmguard.functional.cross_entropy takes class '
            'indices; for counts, (target > 0).float() says whether there is any'
        )
    else:
        advice = 'Each target is the probability of one label; logits become some with target.sigmoid()'
    raise LabelGuardError(
        f'{found.numel():,} of {values.numel():,} multi-label targets are outside [0, 1], between '
        f'{found.min().item():g} and {found.max().item():g}; first at {_listed(invalid)}. {advice}',
        [Tally(total=values.numel(), skipped=found.numel())],
        _positions(invalid),
    )


def _fractions(target: Tensor) -> str:
    """Describe what floating point class indices look like, and how to convert them back."""
    values = target.detach().double()
    finite = values[values.isfinite()]
    if finite.numel() < values.numel():
        return f'{values.numel() - finite.numel():,} of {values.numel():,} are NaN or infinite: look at the loader'
    if (finite == finite.round()).all():
        return _WHOLE
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


def _ways(cause: Optional[str]) -> str:
    """Suggest what to write, and how to train on until then."""
    without = "train on without them: mmguard.functional.cross_entropy(..., on_invalid='ignore')"
    return f'To {without}' if cause is None else f'Likely cause: {cause.rstrip(".")} (to {without})'
