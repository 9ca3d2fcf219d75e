"""Whether the labels of a sample are valid, at one point of its way into training."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Dict, List, Mapping, Optional

import numpy as np

from mmguard.labels.boxes import corner_faults
from mmguard.labels.instances import BOX_REASONS, InstanceRule, describe_reasons
from mmguard.labels.space import LabelRule, LabelSpace
from mmguard.labels.tally import Tally
from mmguard.tools.trace.snapshot import Snapshot

_INF = float('inf')


@dataclass
class Judged:
    """What is invalid in a sample.

    Args:
        kind (str): ``'pixels'`` or ``'instances'``.
        num_classes (int): Valid labels are below.
        ignore_index (int, optional): Of pixels, the label that is valid, too.
        tally (Tally): Counts of invalid values and boxes.
        examples (list[str]): The first invalid instances.
    """

    kind: str
    num_classes: int
    ignore_index: Optional[int]
    tally: Tally
    examples: List[str] = field(default_factory=list)

    @property
    def is_invalid(self) -> bool:
        return bool(self.tally.values or self.tally.reasons)

    def __str__(self) -> str:
        ignored = '' if self.ignore_index is None else f' or {self.ignore_index} (ignored)'
        shown = f'; {", ".join(self.examples)}' if self.examples else ''
        return f'{describe_reasons(self.tally)}; valid labels are 0..{self.num_classes - 1}{ignored}{shown}'


def judge(shot: Snapshot, spaces: Mapping[str, LabelSpace], source: str) -> Dict[str, Judged]:
    """Kind -> what is invalid in a sample; kinds that it does not hold are left out."""
    judged: Dict[str, Judged] = {}
    pixels, instances = spaces.get('pixels'), spaces.get('instances')
    if isinstance(pixels, LabelRule) and shot.label is not None:
        label = shot.label
        if label.dtype.kind == 'f':  # the loss, too, cuts fractions off, or refuses them itself
            label = np.nan_to_num(label, nan=-1, posinf=2**31, neginf=-(2**31)).astype(np.int64)
        judged['pixels'] = Judged('pixels', pixels.num_classes, pixels.ignore_index, pixels.sanitize(label, source)[1])
    if isinstance(instances, InstanceRule) and shot.instances is not None:
        judged['instances'] = _judge_instances(shot, instances, source)
    return judged


def _judge_instances(shot: Snapshot, rule: InstanceRule, source: str) -> Judged:
    found = shot.instances or []
    labels = np.array([instance.label for instance in found], dtype=np.int64)
    ignored = np.array([instance.ignored for instance in found], dtype=bool)
    boxes = np.array([instance.box for instance in found], dtype=np.float64).reshape(-1, 4)
    faults = corner_faults(boxes, shot.size or (_INF, _INF))
    tally = rule.sanitize(labels, ignored, faults, source).tally
    examples = []
    for instance, fault in zip(found, faults.tolist()):
        invalid = not instance.ignored and not rule.min_label <= instance.label < rule.num_classes
        if fault or invalid:
            examples.append(f'{instance} ({BOX_REASONS[fault].replace("_", " ")})' if fault else str(instance))
    return Judged('instances', rule.num_classes, None, tally, examples[:3])
