"""The likely cause of invalid class indices, from one batch of them, in words of plain PyTorch."""

from __future__ import annotations

from typing import Dict, Optional

import torch
import torch.nn.functional as F
from torch import Tensor

#: What to write in a PyTorch loop, where the causes' own advice names config keys of MMSegmentation. A cause that is
#: not here cannot be told from one batch (a class that is missing in it says nothing).
ADVICE: Dict[str, str] = {
    'MG101': "Use the *_gtFine_labelTrainIds.png files, or torchvision's Cityscapes.classes[i].train_id as a table.",
    'MG102': (
        'Either {num_classes} is void: ignore_index={num_classes}. Or the ids count from 1: target - 1. Or the model '
        'lacks a class (the background?): {more} outputs.'
    ),
    'MG103': 'Foreground is 255 here, and is to be 1: target = (target > 0).long().',
    'MG104': 'If 255 is void: ignore_index=255.',
    'MG105': 'If {least} means ignored: ignore_index={least}. If 1 was subtracted from ids that count from 0: do not.',
    'MG106': 'Load the masks as class indices: single-channel PNG, never JPEG; colours need a table to classes.',
    'MG107': 'Classes are 0..{last}: look at where these values come from, or give the model {beyond} outputs.',
    'MG115': 'Subtract one: target = target - 1.',
    'MG117': 'Renumber the ids: label_of = {{cat_id: i for i, cat_id in enumerate(sorted(cat_ids))}}.',
    'MG118': 'Renumber: target = target.masked_fill(target == 4, 3).',
    'MG119': 'Subtract one and ignore what was 0: target = target - 1, ignore_index=-1.',
    'MG125': 'Map each gray level to its class: target = torch.bucketize(target, torch.tensor({levels})).',
    'MG133': 'Subtract 1 from classes alone: target = torch.where(target == 255, 255, target - 1), ignore_index=255.',
    'MG136': (
        'Resize masks with nearest alone: torch.nn.functional.interpolate(mask, size, mode="nearest"), '
        'InterpolationMode.NEAREST in torchvision.'
    ),
    'MG137': 'Renumber the ids to 0..{last} when the data set is read.',
}


def likely_cause(
    target: Tensor, histogram: Dict[int, int], values: Dict[int, int], num_classes: int, ignore_index: int
) -> Optional[str]:
    """``'MG115 The labels count from 1: ... Subtract one: target = target - 1.'``, or ``None``.

    Args:
        target (Tensor): Class indices, any shape.
        histogram (dict[int, int]): Value -> count of all of them, ignored ones left out.
        values (dict[int, int]): Value -> count of the invalid ones.
        num_classes (int): Number of classes.
        ignore_index (int): The class index that takes no part.
    """
    # Not before something is wrong: training needs nothing of it.
    from mmguard.diagnosis import CAUSES, LabelFacts, diagnose
    from mmguard.diagnosis.facts import MapFacts

    known = [cause for cause in CAUSES if cause.code in ADVICE]
    at_edges = _share_between(target, values) if target.dim() == 3 else None
    facts = LabelFacts(
        values=values,
        num_classes=num_classes,
        ignore_index=ignore_index,
        total=target.numel(),
        histogram=histogram,
        maps=None if at_edges is None else MapFacts(at_edges=at_edges),
    )
    findings = diagnose(facts, known)
    if not findings:
        return None
    words = {
        'num_classes': num_classes,
        'last': num_classes - 1,
        'more': num_classes + 1,
        'least': min(values),
        'beyond': max(values) + 1,
        'levels': sorted(histogram),
    }
    return f'{findings[0].code} {findings[0].cause} {ADVICE[findings[0].code].format(**words)}'


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
