"""Changes made by a step to label values and instances, and their reasons according to its attributes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

import numpy as np

from mmguard.labels.instances import describe_boxes
from mmguard.tools.trace.snapshot import Fault, Instance, Run, Snapshot

_FILL = re.compile(r'pad_val|pal_val|fill|border_val|cval|ignore_(label|index)|mask_value|seg_pad')
_IMAGE = re.compile(r'img|image|bbox')
_DEPTH = 4
#: Pixels of a new value are attributed to interpolation if at most this share of them is not between a lower and a
#: higher value (next to other invented values, the difference is not visible).
_ELSEWHERE = 0.5


def explain_origin_in_loader(raw: int, label: int, transform: Any, before: Snapshot, after: Snapshot) -> str:
    """Explain why ``raw`` became ``label``, as far as the transform's attributes show.

    mmseg's loader casts to uint8, then shifts (``reduce_zero_label``), then maps (``label_map``), in this order.
    """
    assert after.label is not None
    name = after.step
    rule = getattr(transform, 'rule', None)
    if rule is not None and hasattr(rule, 'label_map'):
        if raw in rule.label_map:
            return f'label_map of {name}: {{{raw}: {rule.label_map[raw]}}}'
        return f'{name} sanitizes it: on_invalid={rule.on_invalid!r}'
    is_uint8 = after.label.dtype == 'uint8'
    wrapped = raw % 256 if is_uint8 else raw
    shifted = wrapped
    if getattr(transform, 'reduce_zero_label', False):
        shifted = 255 if wrapped in (0, 255) else wrapped - 1
    mapped = before.label_map.get(shifted, shifted)
    reasons = [
        *([f'{name} casts to uint8: {raw} wraps to {wrapped} (modulo 256)'] if wrapped != raw else []),
        *([f'reduce_zero_label: {wrapped} to {shifted}'] if shifted != wrapped else []),
        *([f'label_map of the data set: {{{shifted}: {mapped}}}'] if mapped != shifted else []),
    ]
    explained = reasons and label == (mapped % 256 if is_uint8 else mapped)
    return ', then '.join(reasons) if explained else f'{name} maps {raw} to {label}'


def map_faults(before: Snapshot, after: Snapshot, transform: Any) -> List[Fault]:
    """Return a fault for each value that a loader mapped differently from the label_map of the data set."""
    said = {} if getattr(transform, 'reduce_zero_label', False) else before.label_map
    if not said or before.label is None or after.label is None:
        return []
    became = find_pointwise_map(before.label, after.label) or {}
    wrong = [(raw, label) for raw, label in became.items() if raw in said and raw < 256 and label != said[raw] % 256]
    return [Fault(f'{raw} became {label}, but label_map says {{{raw}: {said[raw]}}}') for raw, label in wrong]


def find_fills(transform: Any) -> Dict[int, str]:
    """Return the fill values of label maps, each with the argument that sets it, ``seg_pad_val=255``."""
    found: Dict[int, str] = {}
    # Arguments that name the label map come first: if pad_val=0 fills the image, it does not fill the label map.
    named = sorted(_walk_attributes(transform), key=lambda item: 'seg' not in item[0] and 'mask' not in item[0])
    for name, value in named:
        if _FILL.search(name) and not _IMAGE.search(name) and isinstance(value, (int, float)) and value == int(value):
            found.setdefault(int(value), f'{name}={int(value)}')
    return found


def find_interpolations(transform: Any) -> List[Tuple[str, str]]:
    """Return the interpolations, ``[('interpolation', 'bilinear')]``, including those of nested transforms."""
    return [
        (name, str(value))
        for name, value in _walk_attributes(transform)
        if 'interpolation' in name and value is not None
    ]


def _walk_attributes(item: Any, path: str = '', depth: int = 0) -> Iterator[Tuple[str, Any]]:
    """Yield the plain values among the attributes of an object, including those of nested dicts and transforms."""
    if depth > _DEPTH:
        return
    if isinstance(item, dict):
        items = [(str(key), value) for key, value in item.items()]
    elif isinstance(item, (list, tuple)):
        items = [('', value) for value in item]
    else:
        items = list(getattr(item, '__dict__', {}).items())
    for key, value in items:
        name = f'{path}.{key}' if path and key else path or key
        if isinstance(value, (int, float, str)) and not isinstance(value, bool):
            yield name, value
        elif isinstance(value, (dict, list, tuple)) or hasattr(value, 'transform') or hasattr(value, 'transforms'):
            # Nested transforms are described by their own arguments.
            yield from _walk_attributes(value, name if isinstance(value, dict) else '', depth + 1)


@dataclass
class Change:
    """Change of one value, or of one instance, by a step.

    Args:
        what (str): ``'appears'``, ``'vanishes'``, ``'grows'``, ``'becomes'`` (another value); of instances also
            ``'is ignored'``, ``'is trained'``.
        value (int): The value or label, before the step if it existed.
        count (int): Pixels or instances.
        origin (str): The reason, if known.
        to (int, optional): The value that it becomes.
        kind (str): ``'pixels'`` or ``'instances'``.
    """

    what: str
    value: int
    count: int
    origin: str = ''
    to: Optional[int] = None
    kind: str = 'pixels'

    @property
    def makes(self) -> Optional[int]:
        """Value that the step created or made more frequent; ``None`` if it did neither."""
        if self.what == 'becomes':
            return self.to
        return self.value if self.what in ('appears', 'grows') else None


def find_changes(before: Snapshot, after: Snapshot, transform: Any, mixed: Sequence[Run] = ()) -> List[Change]:
    """Return the changes that a transform made to the label map and the instances of a sample."""
    return [
        *_find_label_changes(before, after, transform, mixed),
        *_find_instance_changes(before, after, transform, mixed),
    ]


def _find_label_changes(before: Snapshot, after: Snapshot, transform: Any, mixed: Sequence[Run]) -> List[Change]:
    if after.label is None:
        gone = before.label is not None and not after.note
        return [Change('vanishes', v, n, 'the label map is gone') for v, n in before.values.items()] if gone else []
    if before.label is None or before.label.ndim != after.label.ndim:
        how = f'loaded by {after.step}'
        if after.label.ndim > 2:
            how = f'{after.step} leaves an array of shape {after.label.shape}: colors, not one value per pixel'
        return [Change('appears', v, n, how) for v, n in after.values.items()]
    mapping = find_pointwise_map(before.label, after.label)
    if mapping is not None:
        counts = before.values
        return [
            Change('becomes', raw, counts[raw], explain_origin_in_loader(raw, label, transform, before, after), label)
            for raw, label in mapping.items()
            if raw != label
        ]
    return _find_moves(before, after, transform, mixed)


def find_pointwise_map(before: np.ndarray, after: np.ndarray) -> Optional[Dict[int, int]]:
    """Return value -> value if every pixel kept its place and equal values stayed equal; else ``None``."""
    if before.shape != after.shape or 'f' in (before.dtype.kind, after.dtype.kind):
        return None
    old, old_index = np.unique(before, return_inverse=True)
    new, new_index = np.unique(after, return_inverse=True)
    pairs = np.unique(old_index.ravel().astype(np.int64) * len(new) + new_index.ravel())
    if len(pairs) != len(old):
        return None
    return {int(old[pair // len(new)]): int(new[pair % len(new)]) for pair in pairs.tolist()}


def _find_moves(before: Snapshot, after: Snapshot, transform: Any, mixed: Sequence[Run]) -> List[Change]:
    """Return the changes by a step that moves, cuts, scales or mixes pixels."""
    assert before.label is not None
    assert after.label is not None
    old, new = before.values, after.values
    filled = find_fills(transform)
    found = []
    for value, count in new.items():
        if value not in old:
            found.append(Change('appears', value, count, _find_origin(value, before, after, transform, mixed)))
        elif value in filled and count > _estimate_count(old[value], before.label, after.label):
            gained = count - _estimate_count(old[value], before.label, after.label)
            found.append(Change('grows', value, gained, f'fill value {filled[value]} of {after.step}'))
    found += [
        Change('vanishes', value, count, f'gone after {after.step}') for value, count in old.items() if value not in new
    ]
    return found


def _estimate_count(count: int, before: np.ndarray, after: np.ndarray) -> int:
    """Return the expected number of pixels after scaling down, cutting or turning; padding does not reduce it."""
    return count if after.size >= before.size else round(count * after.size / before.size)


def _find_origin(value: int, before: Snapshot, after: Snapshot, transform: Any, mixed: Sequence[Run]) -> str:
    assert before.label is not None
    assert after.label is not None
    for run in mixed:
        if run.steps and value in run.steps[-1].after.values:
            return f'mixed in from {run.image}'
    filled = find_fills(transform)
    between = _compute_share_between(value, after.label)
    whole = int(np.nanmin(before.label)), int(np.nanmax(before.label))
    named = [f'{name}={how!r}' for name, how in find_interpolations(transform) if how != 'nearest']
    interpolated = whole[0] < value < whole[1] and between >= _ELSEWHERE
    if interpolated and (named or value not in filled):
        how = f' ({named[0]})' if named else ''
        return f'interpolation by {after.step}{how}: between a lower and a higher value; label maps need nearest'
    if value in filled:
        return f'fill value {filled[value]} of {after.step}'
    if after.label.dtype != before.label.dtype:
        return f'{after.step} made {after.label.dtype} of {before.label.dtype}'
    if whole[0] < value < whole[1] and named:
        return f'interpolation by {after.step} ({named[0]}); label maps need nearest'
    return f'made by {after.step}'


def _compute_share_between(value: int, label: np.ndarray) -> float:
    """Return the share of a value's pixels with a lower and a higher one within 5 x 5 pixels, as upscaling leaves."""
    import cv2

    flat = label.astype(np.float32)
    if flat.ndim != 2:
        return 0.0
    kernel = np.ones((5, 5), np.uint8)
    here = label == value
    lower, higher = cv2.erode(flat, kernel)[here], cv2.dilate(flat, kernel)[here]
    return float(((lower < value) & (higher > value)).mean()) if here.any() else 0.0


#: Tolerance for corners, in pixels plus a share of the image: rounding, clipping, masks that shrink boxes.
_PIXELS, _SHARE = 2.0, 0.03


def _find_instance_changes(before: Snapshot, after: Snapshot, transform: Any, mixed: Sequence[Run]) -> List[Change]:
    """Return the changes that a step made to instances."""
    if after.instances is None:
        if after.note:
            return []
        return [_change_instance('vanishes', i, f'{after.step} keeps no instances') for i in before.instances or ()]
    if before.instances is None:
        return [_change_instance('appears', i, f'{i} loaded by {after.step}') for i in after.instances]
    moved = _project_boxes(before, after)
    pairs = match_instances(before.instances, moved, after.instances, after.size, _is_recorded(before, after))
    found: List[Change] = []
    kept, made = set(), set()
    for old, new in pairs:
        kept.add(old)
        made.add(new)
        was, now = before.instances[old], after.instances[new]
        if was.label != now.label:
            found.append(_change_instance('becomes', was, f'{after.step} maps it: {was}', now.label))
        if was.ignored != now.ignored:
            what = 'is ignored' if now.ignored else 'is trained'
            found.append(
                _change_instance(what, now, f'by {_find_reason(after, was) if now.ignored else after.step}: {was}')
            )
    for index, instance in enumerate(before.instances):
        if index not in kept:
            why = _explain_removal(before, after, transform, instance, moved[index])
            found.append(_change_instance('vanishes', instance, f'{instance}: {why}'))
    for index, instance in enumerate(after.instances):
        if index not in made:
            origin = f'made by {after.step}'
            for run in mixed:
                if run.steps and any(one.label == instance.label for one in run.steps[-1].after.instances or ()):
                    origin = f'mixed in from {run.image}'
            found.append(_change_instance('appears', instance, f'{instance}: {origin}'))
    return found


def _change_instance(what: str, instance: Instance, origin: str, new_label: Optional[int] = None) -> Change:
    return Change(what, instance.label, 1, origin, new_label, 'instances')


def match_instances(
    old: Sequence[Instance],
    moved: Sequence[Tuple[float, ...]],
    new: Sequence[Instance],
    size: Optional[Tuple[int, int]],
    recorded: bool,
) -> List[Tuple[int, int]]:
    """Match instances before and after a step; return pairs of indices (old, new), each index used once.

    ``moved`` has the old boxes at their expected places in an image of ``size`` (height, width). If the movement was
    not ``recorded``, instances that these do not match are matched by label.
    """
    allowed = _PIXELS + _SHARE * (max(size) if size else 0)
    ranked = []
    for i, was in enumerate(old):
        for j, now in enumerate(new):
            distance = _compute_distance(moved[i], now.box)
            if distance <= allowed:
                # Prefer the same label, then the order of the sample, which transforms keep.
                ranked.append((was.label != now.label, distance, abs(i - j), i, j))
    pairs: List[Tuple[int, int]] = []
    left, right = set(range(len(old))), set(range(len(new)))
    for *_, i, j in sorted(ranked):
        if i in left and j in right:
            left.discard(i)
            right.discard(j)
            pairs.append((i, j))
    if not recorded:
        # Match by label, in order: transforms leave out instances, but keep the order of the others.
        for i in sorted(left):
            same = [j for j in sorted(right) if new[j].label == old[i].label]
            if same:
                right.discard(same[0])
                pairs.append((i, same[0]))
    return pairs


def _is_recorded(before: Snapshot, after: Snapshot) -> bool:
    """Return True if mmdet's homography records the movement of boxes, or nothing moved."""
    unmoved = before.size == after.size and before.homography is None and after.homography is None
    if before.step == 'annotation file' or unmoved:
        return True
    if before.homography is None or after.homography is None:
        return after.homography is not None
    return not np.array_equal(before.homography, after.homography)


def _compute_distance(box: Sequence[float], other: Sequence[float]) -> float:
    worst = max(0.0 if a == b or (a != a and b != b) else abs(a - b) for a, b in zip(box, other))
    return worst if worst == worst else float('inf')


def _project_boxes(before: Snapshot, after: Snapshot) -> List[Tuple[float, ...]]:
    """Return the expected boxes after the step, clipped to the image."""
    boxes = [instance.box for instance in before.instances or ()]
    if after.homography is not None and before.step != 'annotation file':
        start = np.eye(3) if before.homography is None else before.homography
        try:
            matrix = after.homography @ np.linalg.inv(start)
        except np.linalg.LinAlgError:
            return [tuple(box) for box in boxes]
        boxes = [_project(box, matrix) for box in boxes]
    moved_image = before.size != after.size or after.homography is not None
    return [_clip(box, after.size) if moved_image else tuple(box) for box in boxes]


def _project(box: Sequence[float], matrix: np.ndarray) -> Any:
    x1, y1, x2, y2 = box
    corners = matrix @ np.array([[x1, x2, x2, x1], [y1, y1, y2, y2], [1, 1, 1, 1]], dtype=np.float64)
    with np.errstate(all='ignore'):
        x, y = corners[:2] / corners[2]
    return float(x.min()), float(y.min()), float(x.max()), float(y.max())


def _clip(box: Sequence[float], size: Optional[Tuple[int, int]]) -> Tuple[float, ...]:
    if size is None:
        return tuple(box)
    height, width = size
    x1, y1, x2, y2 = box
    return min(max(x1, 0), width), min(max(y1, 0), height), min(max(x2, 0), width), min(max(y2, 0), height)


def _explain_removal(
    before: Snapshot, after: Snapshot, transform: Any, instance: Instance, moved: Sequence[float]
) -> str:
    width, height = moved[2] - moved[0], moved[3] - moved[1]
    if getattr(transform, 'rule', None) is not None:
        return f'removed by {_find_reason(after, instance)}'
    if before.size != after.size and not (width > 0 and height > 0):
        return f'wholly outside the part of the image that {after.step} keeps'
    for name in ('min_gt_bbox_wh', 'min_bbox_size', 'min_gt_mask_area'):
        least = getattr(transform, name, None)
        if least is not None:
            return f'{after.step} left it out: {width:.3g} x {height:.3g} pixels, {name}={least}'
    if after.step == 'LoadAnnotations' or 'Load' in after.step:
        return f'not loaded by {after.step}'
    return f'{after.step} left it out'


def _find_reason(after: Snapshot, instance: Instance) -> str:
    """Return the reason for an instance, ``GuardInstanceLabels (label 600)``."""
    tally = after.guard.get('instances')
    if tally is None:
        return after.step
    if instance.label in tally.values:
        return f'{after.step} (label {instance.label} is not a class)'
    boxes = describe_boxes(tally.reasons)
    return f'{after.step} ({", ".join(boxes)})' if boxes else after.step
