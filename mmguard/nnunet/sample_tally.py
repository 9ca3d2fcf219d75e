"""What the guard found in a sample, on its way through nnU-Net's data loader.

The loader hands on ``data``, ``target`` and ``keys``, nothing else, but the target may be a list of tensors of any
dtype (deep supervision). So the counts travel as its last entry: from the worker to the trainer, without a file or a
queue of their own, in the order of the samples.
"""

from __future__ import annotations

from typing import Any, List, Optional, Tuple

import torch
from torch import Tensor

from mmguard.labels.space import LabelRule
from mmguard.labels.tally import VALUES, Tally

_WIDTH = 4 + 2 * VALUES


def to_tensor(tally: Tally, several: bool = True) -> Tensor:
    """int64, shape (4 + 2 * VALUES,): whether the segmentation has several resolutions, what was seen, skipped and
    remapped, then value and count in turn, count 0 behind the last.

    Example:
        >>> from_tensor(to_tensor(Tally(total=9, skipped=2, values={7: 2})), 'case_001')
        Tally(total=9, skipped=2, remapped=0, values={7: 2}, source='case_001', reasons={}, mapped=0, other_values=0)
    """
    numbers = [int(several), tally.total, tally.skipped, tally.remapped]
    for value, count in tally.values.items():
        numbers += [value, count]
    return torch.tensor(numbers + [0] * (_WIDTH - len(numbers)))


def from_tensor(numbers: Tensor, source: Optional[str]) -> Tally:
    _, total, skipped, remapped, *pairs = numbers.tolist()
    values = {value: count for value, count in zip(pairs[::2], pairs[1::2]) if count}
    others = skipped + remapped - sum(values.values())
    return Tally(total, skipped, remapped, values, source, other_values=others)


def append_tally(segmentation: Any, tally: Tally) -> List[Tensor]:
    """A sample's segmentation, one tensor or a list of resolutions, and its counts behind."""
    several = isinstance(segmentation, (list, tuple))
    return [*(segmentation if several else [segmentation]), to_tensor(tally, several)]


def take_tallies(batch: dict) -> Tuple[dict, Optional[List[Tally]]]:
    """Parts a batch from the counts that it carries.

    Args:
        batch (dict): Of nnU-Net's data loader: ``data``, ``target`` and ``keys``, the names of the cases.

    Returns:
        tuple: the batch as nnU-Net knows it, and a tally per sample; ``None`` where the batch carries none, as it did
        not come through the guarded transforms.
    """
    target = batch['target']
    if not isinstance(target, list) or not _is_tally(target[-1]):
        return batch, None
    *resolutions, counts = target
    tallies = [from_tensor(row, key) for row, key in zip(counts, case_names(batch))]
    several = bool(counts[0, 0])
    return {**batch, 'target': resolutions if several else resolutions[0]}, tallies


def sanitize_batch(batch: dict, rule: LabelRule) -> Tuple[dict, List[Tally]]:
    """Sanitizes a batch of labels (no regions) that came another way, on the host.

    Args:
        batch (dict): ``data``, ``target`` (shape (B, 1, *), or a list of those), and ``keys``, if it has names.
        rule (LabelRule): What is valid, and what becomes of the rest.

    Returns:
        tuple: a new batch, and a tally per sample, of the target or the first of the list.
    """
    target, cases = batch['target'], case_names(batch)
    sanitized = [_sanitize(part, rule, cases) for part in (target if isinstance(target, list) else [target])]
    targets = [part for part, _ in sanitized]
    return {**batch, 'target': targets if isinstance(target, list) else targets[0]}, sanitized[0][1]


def _sanitize(target: Tensor, rule: LabelRule, cases: List[Optional[str]]) -> Tuple[Tensor, List[Tally]]:
    found = [rule.sanitize(labels.long().cpu().numpy(), case) for labels, case in zip(target, cases)]
    if not any(tally for _, tally in found):
        return target, [tally for _, tally in found]
    sanitized = torch.stack([torch.from_numpy(labels) for labels, _ in found])
    return sanitized.to(target.device, target.dtype), [tally for _, tally in found]


def case_names(batch: dict) -> List[Optional[str]]:
    """The case of each sample of a batch; ``None`` where the batch does not say."""
    keys = batch.get('keys')
    return [None] * len(batch['data']) if keys is None else [str(key) for key in keys]


def _is_tally(tensor: Any) -> bool:
    return isinstance(tensor, Tensor) and tensor.dtype == torch.int64 and tensor.shape[1:] == (_WIDTH,)
