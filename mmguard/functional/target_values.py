"""Checks that find invalid values in a target, their likely cause and a correction. All checks wait for the device."""

from __future__ import annotations

import warnings
from typing import Dict, List, Optional, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor

from mmguard.functional.format import sanitize_binary_target
from mmguard.functional.soft import sanitize_distributions
from mmguard.functional.validate import (
    TargetShapeError,
    TargetTypeError,
    describe_pair,
    get_class_dim,
    get_num_classes,
    holds_probabilities,
    validate_probability_target,
)
from mmguard.labels import VOID
from mmguard.labels.rules import describe_values
from mmguard.labels.tally import LabelGuardError, Tally
from mmguard.text import plural


def find_likely_cause(
    target: Tensor, histogram: Dict[int, int], values: Dict[int, int], num_classes: int, ignore_index: int
) -> Optional[str]:
    """Return rule code, likely cause and advice in one text, ``'MG115 The labels ...'``, or ``None`` if unknown."""
    # Imported only after a label was invalid: training does not need these modules.
    from mmguard.facts.labels import MapFacts
    from mmguard.findings import LabelFacts
    from mmguard.findings.engine import diagnose_for

    at_edges = _compute_share_between(target, values) if target.dim() == 3 else None
    facts = LabelFacts(
        values=values,
        num_classes=num_classes,
        ignore_index=ignore_index,
        total=target.numel(),
        histogram=histogram,
        maps=None if at_edges is None else MapFacts(at_edges=at_edges),
    )
    found = diagnose_for('pytorch', facts)
    return f'{found[0].code} {found[0].title} {found[0].advice}' if found else None


def _compute_share_between(target: Tensor, values: Dict[int, int]) -> Optional[float]:
    """Return the fraction of the invalid pixels in maps (N, H, W) that have both a lower and a higher neighbor.

    Pixels with the least or the greatest value in the maps, such as 255 in a 0/255 mask, are not counted, because they
    cannot have both neighbors. Return ``None`` if fewer than two different invalid values remain.
    """
    maps = target.unsqueeze(1).double()
    least, greatest = int(target.min()), int(target.max())
    inner = [value for value in values if least < value < greatest]
    if len(inner) < 2:  # a single value in between may be a class of its own
        return None
    high = F.max_pool2d(maps, 3, stride=1, padding=1)
    low = -F.max_pool2d(-maps, 3, stride=1, padding=1)
    asked = torch.isin(maps, torch.tensor(inner, dtype=maps.dtype, device=maps.device))
    between = (low < maps) & (maps < high) & asked
    return int(between.count_nonzero()) / int(asked.count_nonzero())


#: Fraction of ignored pixels from which a model learns next to nothing, so that a warning is given.
NEARLY_ALL_IGNORED = 0.8


def describe_classes(target: Tensor, classes: int, ignore_index: int) -> str:
    """Describe valid targets: ``'All 4 targets are valid: classes 0..2 of 3.'``, and how to treat ignored ones."""
    seen, ignored = _list_classes(target, ignore_index), int((target == ignore_index).count_nonzero())
    ends = '..'.join(str(end) for end in sorted({seen[0], seen[-1]}))
    words = f'All {target.numel():,} targets are valid: {plural(len(seen), "class")} {ends} of {classes}.'
    if ignored:
        words += (
            f' {ignored:,} of them ({_format_share(ignored, target)}) are {ignore_index} and ignored. Other code that '
            f'indexes by label (one-hot vectors for Dice, class weights, a confusion matrix) must exclude them first: '
            f'valid = target != {ignore_index}.'
        )
    if 0 <= ignore_index < classes:
        words += (
            f' ignore_index={ignore_index} is one of the {classes} classes. Targets of this class are excluded, but '
            f'all others push its score in the softmax down. If this value is not a class, use {classes - 1} '
            f'channels and an ignore_index outside of the classes.'
        )
    elif ignored and target.dim() > 2:
        words += f' If your label files do not contain {ignore_index}, padding or a rotation added it, as expected.'
    if target.dim() > 2 and len(target) > 1 and seen == [0, 1] and classes > 2:
        words += (
            f' Only 0 and 1 of {classes} classes occur: if every batch looks like this, were ToTensor and .long() '
            f'applied to the masks? That turns 255 into 1 and all else into 0.'
        )
    return words


def warn_of_classes(target: Tensor, classes: int, ignore_index: int) -> None:
    """Warn of valid label maps from which a model learns next to nothing."""
    if target.dim() < 3 or classes < 2:
        return
    seen, ignored = _list_classes(target, ignore_index), int((target == ignore_index).count_nonzero())
    if seen == [0] and ignored and ignore_index == VOID:
        _warn(
            f'only class 0 of {classes} and the ignored 255 ({_format_share(ignored, target)}) occur. In 0/255 masks '
            f'255 is the foreground, and is never trained: use target = (target > 0).long(). If 255 marks unlabeled '
            f'pixels or padding, check that other batches hold other classes'
        )
    elif seen == [0]:
        _warn(
            f'all {target.numel() - ignored:,} targets are class 0. If every batch looks like this, was ToTensor '
            f'applied to masks? It divides by 255, and .long() then turns all into 0. Use '
            f'torch.as_tensor(np.array(mask)).long(), or PILToTensor'
        )
    elif ignored >= NEARLY_ALL_IGNORED * target.numel():
        _warn(
            f'{_format_share(ignored, target)} of the targets are ignored (ignore_index={ignore_index}), and only '
            f'{len(seen)} of {classes} classes occur. If every batch looks like this, a map from ids to classes (of '
            f'another data set?) converts most values to ignore_index, or ignore_index is a class'
        )


def warn_of_swallowed(target: Tensor, ignore_index: float) -> None:
    """Warn of binary targets that contain only 0 and 255 although 255 is ignored."""
    ignored = target == ignore_index
    if ignore_index == VOID and ignored.any() and not target.masked_fill(ignored, 0).any():
        _warn(
            f'only 0 and the ignored 255 ({_format_share(int(ignored.count_nonzero()), target)}) occur. In 0/255 masks '
            f'255 is the foreground, and is never trained: use (target > 0).float()'
        )


def _list_classes(target: Tensor, ignore_index: int) -> List[int]:
    found: List[int] = target[target != ignore_index].long().unique().tolist()
    return found


def _format_share(part: int, target: Tensor) -> str:
    return f'{100 * part / target.numel():.3g} %'


def _warn(text: str) -> None:
    warnings.warn(f'mmguard: {text}', stacklevel=4)


HALF = 0.5
_WHOLE_ADVICE = 'All values are whole numbers: use target.long()'


def check_values(logits: Tensor, target: Tensor, ignore_index: int, squeezed: bool = False) -> None:
    """Check that class indices are integers in [0, C) (0 or 1 for one channel), and that not all are ignored."""
    if target.is_floating_point() or target.dtype.is_complex:
        words = _describe_fractions(target)
        if not (squeezed and words == _WHOLE_ADVICE):  # MONAI's masks are floating point
            raise TargetTypeError(f'{describe_pair(logits, target)}; class indices are integers. {words}')
    classes = max(get_num_classes(logits), 2)
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
            f"{what}: PyTorch's mean over no targets is NaN, and so are all weights after the next step. If every "
            f'batch looks like this, look at the values in a file: a map from ids to classes (of another data set?) '
            f'converts them to ignore_index, or ignore_index is a class. If only some crops do, skip these crops, or '
            f'use mmguard.functional.cross_entropy, which returns 0 with gradient 0',
            [Tally(total=target.numel())],
        )
    if not invalid.any():
        return
    values = _count_values(target[invalid])
    cause = find_likely_cause(target, _count_values(target[takes_part]), values, classes, ignore_index)
    raise LabelGuardError(
        f'{sum(values.values()):,} of {target.numel():,} targets are invalid: {describe_values(values)}; first at '
        f'{_list_positions(invalid)}; valid targets are 0..{classes - 1} or ignore_index={ignore_index}. '
        f'{_suggest_ways(cause)}',
        [Tally(total=target.numel(), skipped=sum(values.values()), values=values)],
        _find_positions(invalid),
    )


def check_probabilities(logits: Tensor, target: Tensor) -> None:
    """Check that each row is a distribution over the classes."""
    if not holds_probabilities(logits, target):
        raise TargetShapeError(
            f'{describe_pair(logits, target)}; expected probabilities of the shape of the logits. For class indices, '
            f'leave out kind, or make them one-hot: torch.nn.functional.one_hot(target, {get_num_classes(logits)})'
            f'.movedim(-1, 1).float()'
        )
    validate_probability_target(logits, target)
    sanitize_distributions(target, get_class_dim(logits), on_invalid='raise')


def check_floats(logits: Tensor, target: Tensor) -> None:
    """Check that a binary target is floating point; PyTorch's own error does not name the target."""
    if not target.is_floating_point():
        raise TargetTypeError(
            f'{describe_pair(logits, target)}; the values are valid, but PyTorch expects floats: use target.float(). '
            f'mmguard.functional.binary_cross_entropy_with_logits also accepts integers'
        )


def check_unit(target: Tensor, ignore_index: float) -> None:
    """Check that each element is in [0, 1], or is ignored."""
    values = target.detach()
    invalid = ~sanitize_binary_target(values, torch.float32, ignore_index, 'ignore').is_valid
    if not invalid.any():
        return
    found = values[invalid]
    if found.is_floating_point() and found.isnan().any():
        advice = 'If NaN marks missing labels, pass ignore_index=float("nan") to the loss, or fill in the labels'
    elif (found == 255).all() and (values == 1).any():
        advice = 'If 255 marks unlabeled pixels, pass ignore_index=255'
    elif (found == 255).all():
        advice = 'For a 0/255 mask, use (target > 0).float(); if 255 marks unlabeled pixels, pass ignore_index=255'
    elif found.min() > 0 and found.max() == 255 and (found > 127).double().mean() > HALF:
        advice = 'For a 0/255 mask with values in between, use (target > 127).float(), and resize masks with nearest'
    elif (found == -1).all():
        advice = 'If -1 marks missing labels, pass ignore_index=-1'
    elif (values == values.round()).all():
        advice = (
            'Whole numbers above 1 look like class indices or counts. Pass class indices to '
            'mmguard.functional.cross_entropy; turn counts into 0 or 1 with (target > 0).float()'
        )
    else:
        advice = 'Each target must be a probability: convert logits with target.sigmoid()'
    raise LabelGuardError(
        f'{found.numel():,} of {values.numel():,} multi-label targets are outside [0, 1] (from '
        f'{found.min().item():g} to {found.max().item():g}), first at {_list_positions(invalid)}. {advice}',
        [Tally(total=values.numel(), skipped=found.numel())],
        _find_positions(invalid),
    )


def _describe_fractions(target: Tensor) -> str:
    """Describe the likely origin of floating point class indices, and how to convert them to integers."""
    values = target.detach().double()
    finite = values[values.isfinite()]
    if finite.numel() < values.numel():
        return f'{values.numel() - finite.numel():,} of {values.numel():,} are NaN or infinite: check the data loader'
    if (finite == finite.round()).all():
        return _WHOLE_ADVICE
    shown = ', '.join(f'{value:.4g}' for value in finite[finite != finite.round()].unique()[:4].tolist())
    scaled = finite * 255
    if finite.min() >= 0 and finite.max() <= 1 and (scaled - scaled.round()).abs().max() < 0.02:
        return (
            f'The fractions ({shown}, ...) are k/255: ToTensor, which is for images, was applied to a mask. Use '
            f'torch.as_tensor(np.array(mask)).long(), or PILToTensor; to go back: (target * 255).round().long()'
        )
    return (
        f'Fractions ({shown}, ...) come from a resize that averages: resize masks with nearest '
        f'(InterpolationMode.NEAREST, mode="nearest"), then use target.long(). Rounding fractions would invent labels'
    )


def _count_values(values: Tensor) -> Dict[int, int]:
    found, numbers = torch.unique(values, return_counts=True)
    return {int(value): int(number) for value, number in zip(found.tolist(), numbers.tolist())}


def _find_positions(invalid: Tensor) -> List[Tuple[int, ...]]:
    return [tuple(row) for row in invalid.nonzero()[:5].tolist()]


def _list_positions(invalid: Tensor) -> str:
    return ', '.join(map(str, _find_positions(invalid))) if invalid.dim() else 'the only element'


def _suggest_ways(cause: Optional[str]) -> str:
    """Describe the likely cause, if any, and how to train without the invalid targets."""
    without = "train without them: mmguard.functional.cross_entropy(..., on_invalid='ignore')"
    return f'To {without}' if cause is None else f'Likely cause: {cause.rstrip(".")} (to {without})'
