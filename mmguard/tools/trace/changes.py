"""Changes that a step makes to label values and instances, and why, as its attributes say."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

import numpy as np

from mmguard.tools.trace.matching import instance_changes
from mmguard.tools.trace.recorder import Run
from mmguard.tools.trace.snapshot import Snapshot

_FILL = re.compile(r'pad_val|pal_val|fill|border_val|cval|ignore_(label|index)|mask_value|seg_pad')
_IMAGE = re.compile(r'img|image|bbox')
_DEPTH = 4
#: Up to this share, pixels of a new value may lie elsewhere than between a lower and a higher one, and still come from
#: interpolation (beside other invented values, the difference is not to be seen).
_ELSEWHERE = 0.5


def origin_in_loader(raw: int, label: int, transform: Any, before: Snapshot, after: Snapshot) -> str:
    """Why ``raw`` became ``label``, as far as the transform's attributes can explain it.

    mmseg's loader casts to uint8, then shifts (``reduce_zero_label``), then maps (``label_map``), in this order.
    """
    assert after.label is not None
    name = after.step
    rule = getattr(transform, 'rule', None)
    if rule is not None and hasattr(rule, 'label_map'):
        if raw in rule.label_map:
            return f'label_map of {name}: {{{raw}: {rule.label_map[raw]}}}'
        return f'{name} sanitizes it: on_invalid={rule.on_invalid!r}'
    reasons: List[str] = []
    value = raw
    if after.label.dtype == 'uint8' and not 0 <= value <= 255:
        value %= 256
        reasons.append(f'{name} casts to uint8: {raw} wraps to {value} (modulo 256)')
    if getattr(transform, 'reduce_zero_label', False):
        shifted = 255 if value in (0, 255) else value - 1
        if shifted != value:
            reasons.append(f'reduce_zero_label: {value} to {shifted}')
        value = shifted
    maps: Dict[int, int] = before.label_map
    if value in maps:
        if maps[value] != value:
            reasons.append(f'label_map of the data set: {{{value}: {maps[value]}}}')
        value = maps[value] % 256 if after.label.dtype == 'uint8' else maps[value]
    if value != label or not reasons:
        return f'{name} maps {raw} to {label}'
    return ', then '.join(reasons)


def fills(transform: Any) -> Dict[int, str]:
    """Fill value of label maps -> the argument that says it, ``seg_pad_val=255``."""
    found: Dict[int, str] = {}
    # Arguments that name the label map come first: where pad_val=0 fills the image, it does not fill the label map.
    named = sorted(_attributes(transform), key=lambda item: 'seg' not in item[0] and 'mask' not in item[0])
    for name, value in named:
        if _FILL.search(name) and not _IMAGE.search(name) and isinstance(value, (int, float)) and value == int(value):
            found.setdefault(int(value), f'{name}={int(value)}')
    return found


def interpolations(transform: Any) -> List[Tuple[str, str]]:
    """``[('interpolation', 'bilinear')]``, also of transforms inside."""
    return [
        (name, str(value)) for name, value in _attributes(transform) if 'interpolation' in name and value is not None
    ]


def _attributes(thing: Any, path: str = '', depth: int = 0) -> Iterator[Tuple[str, Any]]:
    """Plain values among its attributes, those of dicts and of transforms inside included."""
    if depth > _DEPTH:
        return
    if isinstance(thing, dict):
        items = [(str(key), value) for key, value in thing.items()]
    elif isinstance(thing, (list, tuple)):
        items = [('', value) for value in thing]
    else:
        items = list(getattr(thing, '__dict__', {}).items())
    for key, value in items:
        name = f'{path}.{key}' if path and key else path or key
        if isinstance(value, (int, float, str)) and not isinstance(value, bool):
            yield name, value
        elif isinstance(value, (dict, list, tuple)) or hasattr(value, 'transform') or hasattr(value, 'transforms'):
            # Transforms inside are described by their own arguments.
            yield from _attributes(value, name if isinstance(value, dict) else '', depth + 1)


@dataclass
class Change:
    """One value, or one instance, that a step changed.

    Args:
        what (str): ``'appears'``, ``'vanishes'``, ``'grows'``, ``'becomes'`` (another value); of instances also
            ``'is ignored'``, ``'is trained'``.
        value (int): The value or label, before the step where there is one.
        count (int): Pixels or instances.
        origin (str): Why, as far as it is known.
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
        """The value that is there because of it, and was not before or was less."""
        if self.what == 'becomes':
            return self.to
        return self.value if self.what in ('appears', 'grows') else None


def changes(before: Snapshot, after: Snapshot, transform: Any, mixed: Sequence[Run] = ()) -> List[Change]:
    """What a transform did to the label map and the instances of a sample.

    Args:
        before, after (Snapshot): Around it.
        transform: It; its attributes are looked at for fill values and interpolation.
        mixed (sequence of Run): Images that it mixed in.
    """
    found = _label_changes(before, after, transform, mixed)
    return found + [
        Change(what, label, count, origin, to, 'instances')
        for what, label, count, origin, to in instance_changes(before, after, transform, mixed)
    ]


def _label_changes(before: Snapshot, after: Snapshot, transform: Any, mixed: Sequence[Run]) -> List[Change]:
    if after.label is None:
        gone = before.label is not None and not after.note
        return [Change('vanishes', v, n, 'the label map is gone') for v, n in before.values.items()] if gone else []
    if before.label is None or before.label.ndim != after.label.ndim:
        how = f'loaded by {after.step}'
        if after.label.ndim > 2:
            how = f'{after.step} leaves an array of shape {after.label.shape}: colours, not one value per pixel'
        return [Change('appears', v, n, how) for v, n in after.values.items()]
    mapping = pointwise(before.label, after.label)
    if mapping is not None:
        counts = before.values
        return [
            Change('becomes', raw, counts[raw], origin_in_loader(raw, label, transform, before, after), label)
            for raw, label in mapping.items()
            if raw != label
        ]
    return _moved(before, after, transform, mixed)


def pointwise(before: np.ndarray, after: np.ndarray) -> Optional[Dict[int, int]]:
    """Value -> value, where every pixel stayed in its place and equal values stayed equal; else ``None``."""
    if before.shape != after.shape or 'f' in (before.dtype.kind, after.dtype.kind):
        return None
    old, old_index = np.unique(before, return_inverse=True)
    new, new_index = np.unique(after, return_inverse=True)
    pairs = np.unique(old_index.ravel().astype(np.int64) * len(new) + new_index.ravel())
    if len(pairs) != len(old):
        return None
    return {int(old[pair // len(new)]): int(new[pair % len(new)]) for pair in pairs.tolist()}


def _moved(before: Snapshot, after: Snapshot, transform: Any, mixed: Sequence[Run]) -> List[Change]:
    """A step that moves, cuts, scales or mixes pixels."""
    assert before.label is not None
    assert after.label is not None
    old, new = before.values, after.values
    filled = fills(transform)
    found = []
    for value, count in new.items():
        if value not in old:
            found.append(Change('appears', value, count, _origin(value, before, after, transform, mixed)))
        elif value in filled and count > _expected(old[value], before.label, after.label):
            gained = count - _expected(old[value], before.label, after.label)
            found.append(Change('grows', value, gained, f'fill value {filled[value]} of {after.step}'))
    found += [
        Change('vanishes', value, count, f'none is left after {after.step}')
        for value, count in old.items()
        if value not in new
    ]
    return found


def _expected(count: int, before: np.ndarray, after: np.ndarray) -> int:
    """What becomes of pixels where an image is only scaled down, cut or turned; padding shrinks nothing."""
    return count if after.size >= before.size else round(count * after.size / before.size)


def _origin(value: int, before: Snapshot, after: Snapshot, transform: Any, mixed: Sequence[Run]) -> str:
    assert before.label is not None
    assert after.label is not None
    for run in mixed:
        if run.steps and value in run.steps[-1].after.values:
            return f'mixed in from {run.image}'
    filled = fills(transform)
    between = _share_between(value, after.label)
    whole = int(np.nanmin(before.label)), int(np.nanmax(before.label))
    named = [f'{name}={how!r}' for name, how in interpolations(transform) if how != 'nearest']
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


def _share_between(value: int, label: np.ndarray) -> float:
    """The share of a value's pixels that have a lower and a higher one near: of 5 x 5 pixels, as upscaling leaves."""
    import cv2

    flat = label.astype(np.float32)
    if flat.ndim != 2:
        return 0.0
    kernel = np.ones((5, 5), np.uint8)
    here = label == value
    lower, higher = cv2.erode(flat, kernel)[here], cv2.dilate(flat, kernel)[here]
    return float(((lower < value) & (higher > value)).mean()) if here.any() else 0.0
