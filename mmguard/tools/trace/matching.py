"""Which instance after a step is which before it, and what became of the others."""

from __future__ import annotations

from typing import Any, List, Optional, Sequence, Tuple

import numpy as np

from mmguard.labels.instances import describe_boxes
from mmguard.tools.trace.recorder import Run
from mmguard.tools.trace.snapshot import Instance, Snapshot

#: what, label, count, origin, label that it becomes
InstanceChange = Tuple[str, int, int, str, Optional[int]]

#: Corners may be off by so many pixels, plus this share of the image: rounding, clipping, masks that shrink boxes.
_PIXELS, _SHARE = 2.0, 0.03


def instance_changes(before: Snapshot, after: Snapshot, transform: Any, mixed: Sequence[Run]) -> List[InstanceChange]:
    """What a step did to instances."""
    if after.instances is None:
        if after.note:
            return []
        return [('vanishes', i.label, 1, f'{after.step} keeps no instances', None) for i in before.instances or ()]
    if before.instances is None:
        return [('appears', i.label, 1, f'{i} loaded by {after.step}', None) for i in after.instances]
    moved = _projected(before, after)
    pairs = matches(before.instances, moved, after.instances, after.size, _is_recorded(before, after))
    found: List[InstanceChange] = []
    kept, made = set(), set()
    for old, new in pairs:
        kept.add(old)
        made.add(new)
        was, now = before.instances[old], after.instances[new]
        if was.label != now.label:
            found.append(('becomes', was.label, 1, f'{after.step} maps it: {was}', now.label))
        if was.ignored != now.ignored:
            what = 'is ignored' if now.ignored else 'is trained'
            found.append((what, now.label, 1, f'by {_reason(after, was) if now.ignored else after.step}: {was}', None))
    for index, instance in enumerate(before.instances):
        if index not in kept:
            why = _why_gone(before, after, transform, instance, moved[index])
            found.append(('vanishes', instance.label, 1, f'{instance}: {why}', None))
    for index, instance in enumerate(after.instances):
        if index not in made:
            origin = f'made by {after.step}'
            for run in mixed:
                if run.steps and any(one.label == instance.label for one in run.steps[-1].after.instances or ()):
                    origin = f'mixed in from {run.image}'
            found.append(('appears', instance.label, 1, f'{instance}: {origin}', None))
    return found


def matches(
    old: Sequence[Instance],
    moved: Sequence[Tuple[float, ...]],
    new: Sequence[Instance],
    size: Optional[Tuple[int, int]],
    recorded: bool,
) -> List[Tuple[int, int]]:
    """Pairs of places, each used once.

    Args:
        old (sequence of Instance): Before the step.
        moved (sequence of tuple): Where their boxes should be after it.
        new (sequence of Instance): After it.
        size (tuple, optional): (height, width) of the image after it.
        recorded (bool): Whether ``moved`` is known. Else what is left is matched by label.
    """
    allowed = _PIXELS + _SHARE * (max(size) if size else 0)
    ranked = []
    for i, was in enumerate(old):
        for j, now in enumerate(new):
            distance = _distance(moved[i], now.box)
            if distance <= allowed or _overlap(moved[i], now.box) > 0.6:
                # The same label first; of equals the order of the sample, which transforms keep.
                ranked.append((was.label != now.label, distance, abs(i - j), i, j))
    pairs: List[Tuple[int, int]] = []
    left, right = set(range(len(old))), set(range(len(new)))
    for *_, i, j in sorted(ranked):
        if i in left and j in right:
            left.discard(i)
            right.discard(j)
            pairs.append((i, j))
    if not recorded:
        # By label, in order: transforms leave instances out, and keep the order of the others.
        for i in sorted(left):
            same = [j for j in sorted(right) if new[j].label == old[i].label]
            if same:
                right.discard(same[0])
                pairs.append((i, same[0]))
    return pairs


def _is_recorded(before: Snapshot, after: Snapshot) -> bool:
    """Whether mmdet's homography says where boxes went, or nothing moved."""
    unmoved = before.size == after.size and before.homography is None and after.homography is None
    if before.step == 'annotation file' or unmoved:
        return True
    if before.homography is None or after.homography is None:
        return after.homography is not None
    return not np.array_equal(before.homography, after.homography)


def _distance(box: Sequence[float], other: Sequence[float]) -> float:
    worst = max(0.0 if a == b or (a != a and b != b) else abs(a - b) for a, b in zip(box, other))
    return worst if worst == worst else float('inf')


def _overlap(box: Sequence[float], other: Sequence[float]) -> float:
    width = min(box[2], other[2]) - max(box[0], other[0])
    height = min(box[3], other[3]) - max(box[1], other[1])
    if not (width > 0 and height > 0):
        return 0.0
    areas = [(b[2] - b[0]) * (b[3] - b[1]) for b in (box, other)]
    return width * height / (sum(areas) - width * height)


def _projected(before: Snapshot, after: Snapshot) -> List[Tuple[float, ...]]:
    """Where the boxes should be after the step, clipped to the image."""
    boxes = [instance.box for instance in before.instances or ()]
    if after.homography is not None and before.step != 'annotation file':
        start = np.eye(3) if before.homography is None else before.homography
        try:
            matrix = after.homography @ np.linalg.inv(start)
        except np.linalg.LinAlgError:
            return [tuple(box) for box in boxes]
        boxes = [_project(box, matrix) for box in boxes]
    moved_image = before.size != after.size or after.homography is not None
    return [_clipped(box, after.size) if moved_image else tuple(box) for box in boxes]


def _project(box: Sequence[float], matrix: np.ndarray) -> Any:
    x1, y1, x2, y2 = box
    corners = matrix @ np.array([[x1, x2, x2, x1], [y1, y1, y2, y2], [1, 1, 1, 1]], dtype=np.float64)
    with np.errstate(all='ignore'):
        x, y = corners[:2] / corners[2]
    return float(x.min()), float(y.min()), float(x.max()), float(y.max())


def _clipped(box: Sequence[float], size: Optional[Tuple[int, int]]) -> Tuple[float, ...]:
    if size is None:
        return tuple(box)
    height, width = size
    x1, y1, x2, y2 = box
    return min(max(x1, 0), width), min(max(y1, 0), height), min(max(x2, 0), width), min(max(y2, 0), height)


def _why_gone(before: Snapshot, after: Snapshot, transform: Any, instance: Instance, moved: Sequence[float]) -> str:
    width, height = moved[2] - moved[0], moved[3] - moved[1]
    if getattr(transform, 'rule', None) is not None:
        return f'taken out by {_reason(after, instance)}'
    if before.size != after.size and not (width > 0 and height > 0):
        return f'wholly outside of what {after.step} leaves'
    for name in ('min_gt_bbox_wh', 'min_bbox_size', 'min_gt_mask_area'):
        least = getattr(transform, name, None)
        if least is not None:
            return f'{after.step} left it out: {width:.3g} x {height:.3g} pixels, {name}={least}'
    if after.step == 'LoadAnnotations' or 'Load' in after.step:
        return f'not loaded by {after.step}'
    return f'{after.step} left it out'


def _reason(after: Snapshot, instance: Instance) -> str:
    """``GuardInstanceLabels (label 600)``."""
    tally = after.guard.get('instances')
    if tally is None:
        return after.step
    if instance.label in tally.values:
        return f'{after.step} (label {instance.label} is no class)'
    boxes = describe_boxes(tally.reasons)
    return f'{after.step} ({", ".join(boxes)})' if boxes else after.step
