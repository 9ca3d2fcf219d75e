"""Snapshot of a sample after one step of its pipeline."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any, Dict, List, NamedTuple, Optional, Set, Tuple

import numpy as np

from mmguard.files.images import open_image
from mmguard.files.regular import open_regular
from mmguard.formats.faults import Faults
from mmguard.formats.voc.records import read_voc
from mmguard.labels.instances import BOX_REASONS, describe_boxes, find_corner_faults
from mmguard.labels.rules import count_values
from mmguard.properties.samples import Instance, read_parts
from mmguard.text import quantity

#: Fields of a sample, packed or not, that are inspected.
_INSPECTED = {'gt_seg_map', 'gt_bboxes', 'gt_bboxes_labels', 'gt_ignore_flags', 'gt_sem_seg', 'gt_instances'}


class Fault(NamedTuple):
    """A mistake in a box or a mapped label of a sample, and its place."""

    what: str
    where: str = ''


@dataclass
class Snapshot:
    """State of a sample after a step.

    Args:
        step (str): ``'disk'``, ``'LoadAnnotations'``, ...
        label (np.ndarray, optional): The label map; a copy.
        instances (list[Instance], optional): In the order of the sample; ``None``: not loaded yet.
        size (tuple, optional): (height, width) of the label map, or else of the image.
        label_map (dict[int, int]): Before loading: the label_map that the data set passes to its loader.
        note (str): Reason if anything could not be inspected.
        unchecked (set[str]): Fields with annotations of other kinds.
        written (dict[tuple, tuple]): Box as loaded -> its corners in the file, if they differ (VOC counts from 1).
    """

    step: str
    label: Optional[np.ndarray] = None
    instances: Optional[List[Instance]] = None
    size: Optional[Tuple[int, int]] = None
    label_map: Dict[int, int] = field(default_factory=dict)
    note: str = ''
    unchecked: Set[str] = field(default_factory=set)
    written: Dict[Tuple[float, ...], Tuple[float, ...]] = field(default_factory=dict)

    @property
    def integers(self) -> np.ndarray:
        """The label map, with fractions truncated; an empty array without one."""
        whole = np.zeros(0, np.uint8) if self.label is None else self.label
        if whole.dtype.kind == 'f':
            whole = np.nan_to_num(whole, nan=-1, posinf=2**31, neginf=-(2**31)).astype(np.int64)
        return whole

    @property
    def values(self) -> Dict[int, int]:
        """Value -> pixels; fractions are truncated."""
        return count_values(self.integers)

    @property
    def labels(self) -> Dict[int, int]:
        """Label -> trained instances."""
        return dict(Counter(one.label for one in self.instances or () if not one.ignored))

    @property
    def faults(self) -> List[Fault]:
        """Boxes of trained instances that are not finite, without area or outside the image."""
        trained = [one for one in self.instances or () if one.box is not None and not one.ignored]
        corners = np.array([one.box for one in trained], dtype=np.float64).reshape(-1, 4)
        codes = find_corner_faults(corners, self.size or (np.inf, np.inf)).tolist()
        named = [replace(one, box=self.written.get(one.box or (), one.box)) for one in trained]
        return [Fault(describe_boxes({BOX_REASONS[code]: 1})[0], str(one)) for one, code in zip(named, codes) if code]

    def holds(self, value: int) -> bool:
        return value in self.values or any(instance.label == value for instance in self.instances or ())


def read_annotations(info: Dict[str, Any]) -> Snapshot:
    """Return the state before loading: the instances of the annotation file, and the label map on disk."""
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
    """Return a label file as stored, and the reason if it cannot be shown."""
    try:
        with open_regular(path) as file, open_image(file, decodes=True) as image:
            if len(image.getbands()) > 1:
                return None, f'{image.mode}: {len(image.getbands())} channels, colors instead of values'
            label = np.asarray(image)
    except Exception as error:  # damaged files may raise anything; the loader reports more
        return None, f'{path}: {str(error)[:120] or type(error).__name__}'
    return (label.astype(np.uint8) if label.dtype == np.bool_ else label), ''


def take(step: str, results: Any) -> Snapshot:
    """Return a snapshot of a sample, packed or not."""
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
