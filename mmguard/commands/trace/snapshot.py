"""Snapshots of a sample after each step of its pipeline, and the changes between them with their reasons."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Set, Tuple

import numpy as np

from mmguard.files.images import open_image
from mmguard.files.regular import open_regular
from mmguard.formats.faults import Faults
from mmguard.formats.voc.records import read_voc
from mmguard.labels.instances import BOX_REASONS, describe_boxes, find_corner_faults
from mmguard.labels.rules import BaseRule, count_values
from mmguard.properties.samples import Instance, read_parts
from mmguard.text import quantity

#: Fields of a sample (before or after packing) that are inspected.
_INSPECTED = {'gt_seg_map', 'gt_bboxes', 'gt_bboxes_labels', 'gt_ignore_flags', 'gt_sem_seg', 'gt_instances'}


class Fault(NamedTuple):
    """Mistake in a box or a mapped label of a sample; ``where`` names the instance (empty for a label map)."""

    what: str
    where: str = ''


@dataclass
class Snapshot:
    """Label map and instances of a sample after a step of its pipeline."""

    step: str  #: Name of the step: ``'disk'``, ``'LoadAnnotations'``, ...
    label: Optional[np.ndarray] = None  #: Copy of the label map.
    instances: Optional[List[Instance]] = None  #: Instances in order; ``None`` if they are not loaded yet.
    size: Optional[Tuple[int, int]] = None  #: (height, width) of the label map, or else of the image.
    #: label_map that the data set passes to its loader; only in the snapshot before loading.
    label_map: Dict[int, int] = field(default_factory=dict)
    note: str = ''  #: Reason why a part could not be inspected.
    unchecked: Set[str] = field(default_factory=set)  #: Names of fields with other annotations, which are not checked.
    #: {box as loaded: its corners in the file}, if they differ (VOC counts from 1).
    written: Dict[Tuple[float, ...], Tuple[float, ...]] = field(default_factory=dict)

    @property
    def integers(self) -> np.ndarray:
        """The label map with fractions truncated, or an empty array without a label map."""
        whole = np.zeros(0, np.uint8) if self.label is None else self.label
        if whole.dtype.kind != 'f':
            return whole
        return np.nan_to_num(whole, nan=-1, posinf=2**31, neginf=-(2**31)).astype(np.int64)

    @property
    def values(self) -> Dict[int, int]:
        """Counts of the label map as {value: pixels}; fractions are truncated."""
        return count_values(self.integers)

    @property
    def labels(self) -> Dict[int, int]:
        """Counts of the trained instances as {label: instances}."""
        return dict(Counter(one.label for one in self.instances or () if not one.ignored))

    @property
    def faults(self) -> List[Fault]:
        """Faults of the boxes of trained instances: not finite, without area, or outside the image."""
        trained = [one for one in self.instances or () if one.box is not None and not one.ignored]
        corners = np.array([one.box for one in trained], dtype=np.float64).reshape(-1, 4)
        codes = find_corner_faults(corners, self.size or (np.inf, np.inf)).tolist()
        named = [replace(one, box=self.written.get(one.box or (), one.box)) for one in trained]
        return [Fault(describe_boxes({BOX_REASONS[code]: 1})[0], str(one)) for one, code in zip(named, codes) if code]

    def holds(self, value: int) -> bool:
        return value in self.values or any(instance.label == value for instance in self.instances or ())


def read_annotations(info: Dict[str, Any]) -> Snapshot:
    """Return a snapshot before loading: the instances of the annotation file, and the label map on disk."""
    shot = Snapshot('disk')
    shot.label_map = {int(raw): int(label) for raw, label in (info.get('label_map') or {}).items()}
    found = info.get('instances')
    if found is not None:
        shot.step = 'annotation file'
        boxes = [tuple(map(float, one.get('bbox', ()))) for one in found]
        shot.instances = [
            Instance(int(one.get('bbox_label', -1)), box if len(box) == 4 else None, bool(one.get('ignore_flag', 0)))
            for one, box in zip(found, boxes)
        ]
        if info.get('xml_path'):
            file = read_voc(str(info['xml_path']), '', Faults())
            shot.written = {} if file is None else {one.corners: one.written for one in file.objects}
        if info.get('height') and info.get('width'):
            shot.size = int(info['height']), int(info['width'])
    path = info.get('seg_map_path')
    if path is not None:
        shot.label, shot.note = _read_stored(str(path))
        if shot.label is not None:
            shot.size = shot.label.shape[0], shot.label.shape[1]
    return shot


def _read_stored(path: str) -> Tuple[Optional[np.ndarray], str]:
    """Return the stored values of a label file and '', or ``None`` and the reason why they cannot be shown."""
    try:
        with open_regular(path) as file, open_image(file, decodes=True) as image:
            if len(image.getbands()) > 1:
                return None, f'{image.mode}: {len(image.getbands())} channels, colors instead of values'
            label = np.asarray(image)
    except Exception as error:  # damaged files may raise anything; the loader reports more
        return None, f'{path}: {str(error)[:120] or type(error).__name__}'
    return (label.astype(np.uint8) if label.dtype == np.bool_ else label), ''


def take(step: str, results: Any) -> Snapshot:
    """Return a snapshot of a sample, packed or not, after a step."""
    if not isinstance(results, dict):
        return Snapshot(step, note='no sample' if results is None else f'{type(results).__name__}: not checked')
    packed = results.get('data_samples')
    if isinstance(packed, (list, tuple)):
        return Snapshot(step, note=f'{quantity(len(packed), "sample")}: not checked')
    parts = read_parts(results)
    held = results if packed is None else packed
    unchecked = {key for key in held.keys() if key.startswith('gt_')} - _INSPECTED  # noqa: SIM118
    if packed is not None and parts.masks is not None:
        unchecked.add('gt_masks')
    label = None if parts.label is None else np.array(parts.label)
    return Snapshot(step, label, parts.instances, parts.size, unchecked=unchecked)


_FILL = re.compile(r'pad_val|pal_val|fill|border_val|cval|ignore_(label|index)|mask_value|seg_pad')
_IMAGE = re.compile(r'img|image|bbox')
_DEPTH = 4


@dataclass
class Change:
    """Change in the number of pixels or instances with one value, made by a step."""

    what: str  #: ``'appears'``, ``'vanishes'``, ``'grows'``, ``'shrinks'``, ``'becomes'`` (another value).
    value: int  #: The changed value or label; for ``'becomes'``, the value before the step.
    count: int  #: Number of changed pixels or instances.
    origin: str = ''  #: Reason of the change, if known.
    to: Optional[int] = None  #: For ``'becomes'``, the value after the step.
    kind: str = 'pixels'  #: ``'pixels'`` or ``'instances'``.

    @property
    def makes(self) -> Optional[int]:
        """Value that the step created or made more frequent, or ``None`` if the value vanished or became rarer."""
        return {'becomes': self.to, 'appears': self.value, 'grows': self.value}.get(self.what)


def find_changes(before: Snapshot, after: Snapshot, transform: Any, mixed: Mapping[str, Snapshot]) -> List[Change]:
    """Return the changes that a transform made to the label map and the instances of a sample.

    Args:
        before (Snapshot): The sample before the step; if the step loads labels, with the labels as stored on disk.
        after (Snapshot): The sample after the step.
        transform (Any): The transform of the step.
        mixed (dict[str, Snapshot]): {path of an image: snapshot of its sample} for samples that the step mixes in.
    """
    given = before, after, transform, mixed
    return [*_find_label_changes(*given), *_find_instance_changes(*given)]


def _find_label_changes(
    before: Snapshot, after: Snapshot, transform: Any, mixed: Mapping[str, Snapshot]
) -> List[Change]:
    old, new = before.values, after.values
    if after.label is None:
        return [Change('vanishes', value, count, 'the label map is gone') for value, count in old.items()]
    if before.label is None or before.label.ndim != after.label.ndim:
        how = f'from {after.step}'
        if after.label.ndim > 2:
            how = f'{after.step} leaves an array of shape {after.label.shape}: colors, not one value per pixel'
        return [Change('appears', value, count, how) for value, count in new.items()]
    mapping = find_pointwise_map(before.label, after.label)
    if mapping is not None:
        return [
            Change('becomes', raw, old[raw], _explain_mapping(raw, label, transform, before, after), label)
            for raw, label in mapping.items()
            if raw != label
        ]
    filled = find_fills(transform)
    # Scaling down, cutting and turning take pixels away from every value; padding does not.
    share = min(1.0, after.label.size / max(1, before.label.size))
    found = []
    for value, count in new.items():
        gained = count - round(old.get(value, 0) * share)
        if value not in old:
            found.append(Change('appears', value, count, _find_origin(value, before, after, transform, mixed)))
        elif value in filled and gained > 0:
            found.append(Change('grows', value, gained, f'fill value {filled[value]} of {after.step}'))
    gone = [Change('vanishes', value, n, f'gone after {after.step}') for value, n in old.items() if value not in new]
    return found + gone


def find_pointwise_map(before: np.ndarray, after: np.ndarray) -> Optional[Dict[int, int]]:
    """Return {old value: new value} if a step mapped each value to one value without moving pixels, else ``None``."""
    if before.shape != after.shape or 'f' in (before.dtype.kind, after.dtype.kind):
        return None
    old, old_index = np.unique(before, return_inverse=True)
    new, new_index = np.unique(after, return_inverse=True)
    pairs = np.unique(old_index.ravel().astype(np.int64) * len(new) + new_index.ravel())
    if len(pairs) != len(old):
        return None
    return {int(old[pair // len(new)]): int(new[pair % len(new)]) for pair in pairs.tolist()}


def _explain_mapping(raw: int, label: int, transform: Any, before: Snapshot, after: Snapshot) -> str:
    """Explain why ``raw`` became ``label``, from the attributes of the transform.

    mmseg's loader casts to uint8, then shifts (``reduce_zero_label``), then maps (``label_map``), in this order.
    """
    assert after.label is not None
    name = after.step
    if isinstance(getattr(transform, 'rule', None), BaseRule):
        return _explain_guard(raw, transform.rule, name)
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


def _explain_guard(raw: int, rule: BaseRule, name: str) -> str:
    if raw in rule.label_map:
        return f'label_map of {name}: {{{raw}: {rule.label_map[raw]}}}'
    return f'sanitized by {name}: on_invalid={rule.on_invalid!r}'


def find_map_faults(before: Snapshot, after: Snapshot, transform: Any) -> List[Fault]:
    """Return a fault for each value whose label after loading differs from that in the label_map of the data set."""
    said = {} if getattr(transform, 'reduce_zero_label', False) else before.label_map
    if not said or before.label is None or after.label is None:
        return []
    became = find_pointwise_map(before.label, after.label) or {}
    wrong = [(raw, label) for raw, label in became.items() if raw in said and raw < 256 and label != said[raw] % 256]
    return [Fault(f'{raw} became {label}, but label_map says {{{raw}: {said[raw]}}}') for raw, label in wrong]


def _find_origin(value: int, before: Snapshot, after: Snapshot, transform: Any, mixed: Mapping[str, Snapshot]) -> str:
    assert before.label is not None
    assert after.label is not None
    sources = [image for image, shot in mixed.items() if value in shot.values]
    if sources:
        return f'mixed in from {" or ".join(sources)}'
    filled = find_fills(transform)
    if value in filled:
        return f'fill value {filled[value]} of {after.step}'
    if after.label.dtype != before.label.dtype:
        return f'{after.step} converted {before.label.dtype} to {after.label.dtype}'
    how = [
        f'{name}={used!r}'
        for name, used in _walk_attributes(transform)
        if 'interpolation' in name and used != 'nearest'
    ]
    if how and np.nanmin(before.label) < value < np.nanmax(before.label):
        return f"interpolation by {after.step} ({how[0]}); label maps need 'nearest'"
    return f'made by {after.step}'


def find_fills(transform: Any) -> Dict[int, str]:
    """Return the fill values for label maps as {value: argument that sets it, such as ``'seg_pad_val=255'``}."""
    found: Dict[int, str] = {}
    # Arguments that name the label map come first: if pad_val=0 fills the image, it does not fill the label map.
    named = sorted(_walk_attributes(transform), key=lambda item: 'seg' not in item[0] and 'mask' not in item[0])
    for name, value in named:
        if _FILL.search(name) and not _IMAGE.search(name) and isinstance(value, (int, float)) and value == int(value):
            found.setdefault(int(value), f'{name}={int(value)}')
    return found


def _walk_attributes(item: Any, path: str = '', depth: int = 0) -> Iterator[Tuple[str, Any]]:
    """Yield (name, value) of the number and string attributes of an object, its dicts and its nested transforms."""
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


def _find_instance_changes(
    before: Snapshot, after: Snapshot, transform: Any, mixed: Mapping[str, Snapshot]
) -> List[Change]:
    """Return the changes in the number of trained instances of each label."""
    old, new = before.labels, after.labels
    found = []
    for label in sorted({*old, *new}):
        gained = new.get(label, 0) - old.get(label, 0)
        sources = [image for image, shot in mixed.items() if label in shot.labels]
        if isinstance(getattr(transform, 'rule', None), BaseRule):
            origin = _explain_guard(label, transform.rule, after.step)
        elif gained < 0:
            origin = f'gone after {after.step}'
        elif before.instances is None:
            origin = f'from {after.step}'
        else:
            origin = f'mixed in from {" or ".join(sources)}' if sources else f'made by {after.step}'
        if gained > 0:
            found.append(Change('grows' if label in old else 'appears', label, gained, origin, kind='instances'))
        elif gained < 0:
            found.append(Change('shrinks' if label in new else 'vanishes', label, -gained, origin, kind='instances'))
    return found
