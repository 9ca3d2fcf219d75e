"""Messages about the class indices of one batch, in words of plain PyTorch: their likely cause, and what they teach."""

from __future__ import annotations

import warnings
from typing import Dict, List, Optional

import torch
import torch.nn.functional as F
from torch import Tensor

from mmguard.text.words import plural


def likely_cause(
    target: Tensor, histogram: Dict[int, int], values: Dict[int, int], num_classes: int, ignore_index: int
) -> Optional[str]:
    """Return ``'MG115 The labels count from 1: ... Subtract one: target = target - 1.'``, or ``None``."""
    # Not before something is wrong: training needs nothing of it.
    from mmguard.findings import LabelFacts
    from mmguard.findings.engine import diagnose_for_pytorch
    from mmguard.findings.facts import MapFacts

    at_edges = _share_between(target, values) if target.dim() == 3 else None
    facts = LabelFacts(
        values=values,
        num_classes=num_classes,
        ignore_index=ignore_index,
        total=target.numel(),
        histogram=histogram,
        maps=None if at_edges is None else MapFacts(at_edges=at_edges),
    )
    found = diagnose_for_pytorch(facts)
    return f'{found[0].code} {found[0].title} {found[0].advice}' if found else None


def _share_between(target: Tensor, values: Dict[int, int]) -> Optional[float]:
    """Of the invalid pixels of (N, H, W) the share with a lower and a higher value among their eight neighbours.

    The least and the greatest value of all can have no such neighbours (the 255 of a 0/255 mask), and are left out.
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


#: Of maps that are ignored to this share next to nothing is trained.
NEARLY_ALL = 0.8

VOID = 255


def describe_classes(target: Tensor, classes: int, ignore_index: int) -> str:
    """``'All 4 targets are valid: classes 0..2 of 3.'``, and what the ignored ones ask of other code."""
    seen, ignored = _seen(target, ignore_index), int((target == ignore_index).count_nonzero())
    ends = '..'.join(str(end) for end in sorted({seen[0], seen[-1]}))
    words = f'All {target.numel():,} targets are valid: {plural(len(seen), "class")} {ends} of {classes}.'
    if ignored:
        words += (
            f' {ignored:,} of them ({_share(ignored, target)}) are {ignore_index} and ignored: what else reads these '
            f'labels must leave them out first, valid = target != {ignore_index} (own one-hot vectors of Dice or a '
            f'metric, class weights looked up by label, a confusion matrix).'
        )
    if 0 <= ignore_index < classes:
        words += (
            f' ignore_index={ignore_index} is one of the {classes} classes: it takes targets out, not the output: '
            f'its score stays in the softmax, and every other target pushes it down; if it is no class, give it no '
            f'output ({classes - 1} channels and an ignore_index outside of them).'
        )
    elif ignored and target.dim() > 2:
        words += f' If no file holds {ignore_index}, it is the fill value of padding or of a rotation, as it should be.'
    if target.dim() > 2 and len(target) > 1 and seen == [0, 1] and classes > 2:
        words += (
            f' Only 0 and 1 of {classes} classes occur: if every batch is so, look whether ToTensor and .long() were '
            f'applied to the masks, which makes 1 of 255 and 0 of all others.'
        )
    return words


def warn_of_classes(target: Tensor, classes: int, ignore_index: int) -> None:
    """Warns of label maps that are valid and teach next to nothing."""
    if target.dim() < 3 or classes < 2:
        return
    seen, ignored = _seen(target, ignore_index), int((target == ignore_index).count_nonzero())
    if seen == [0] and ignored and ignore_index == VOID:
        _warn(
            f'of {classes} classes only 0 occurs beside the ignored 255 ({_share(ignored, target)}). If these are '
            f'0/255 masks, 255 is the foreground and is never trained: target = (target > 0).long(). If 255 is void or '
            f'padding, these crops hold nothing but class 0'
        )
    elif seen == [0]:
        _warn(
            f'all {target.numel() - ignored:,} targets are class 0. If every batch is so: ToTensor divides masks by '
            f'255, and .long() then makes 0 of all; use torch.as_tensor(np.array(mask)).long(), or PILToTensor'
        )
    elif ignored >= NEARLY_ALL * target.numel():
        _warn(
            f'{_share(ignored, target)} of the targets are ignored (ignore_index={ignore_index}), and {len(seen)} of '
            f'{classes} classes are left. If every batch is so, a map from ids to classes (of another data set?) sends '
            f'most values there, or ignore_index is a class'
        )


def warn_of_swallowed(target: Tensor, ignore_index: float) -> None:
    """Warns of binary targets that hold 0 alone beside the ignored 255."""
    ignored = target == ignore_index
    if ignore_index == VOID and ignored.any() and not target.masked_fill(ignored, 0).any():
        _warn(
            f'only 0 occurs beside the ignored 255 ({_share(int(ignored.count_nonzero()), target)}). If these are '
            f'0/255 masks, 255 is the foreground and is never trained: (target > 0).float()'
        )


def _seen(target: Tensor, ignore_index: int) -> List[int]:
    found: List[int] = target[target != ignore_index].long().unique().tolist()
    return found


def _share(part: int, target: Tensor) -> str:
    return f'{100 * part / target.numel():.3g} %'


def _warn(words: str) -> None:
    warnings.warn(f'mmguard: {words}', stacklevel=4)
