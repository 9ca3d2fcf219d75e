"""Snapshot of a sample after one step of its pipeline."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any, Dict, List, NamedTuple, Optional, Set, Tuple

import numpy as np

from mmguard.files.images import open_image
from mmguard.files.regular import open_regular
from mmguard.labels.instances import BOX_REASONS, describe_boxes, find_corner_faults
from mmguard.labels.rules import UNLABELED, count_values
from mmguard.labels.tally import Tally, get_file, get_tallies
from mmguard.properties.datasets import WatchedStep
from mmguard.text import quantity


@dataclass(frozen=True)
class Instance:
    """One annotated object: x1, y1, x2, y2 in pixels of the image at that step; all NaN if it is the image itself."""

    label: int
    box: Tuple[float, float, float, float]
    ignored: bool = False

    def __str__(self) -> str:
        if np.isnan(self.box).all():  # the label of the whole image
            return f'label {self.label}'
        x1, y1, x2, y2 = (f'{corner:g}' for corner in np.round(self.box, 1).tolist())
        return f'label {self.label} at ({x1}, {y1}, {x2}, {y2})'


class Fault(NamedTuple):
    """A mistake in a box, a mask or a mapped label of a sample, and its place."""

    what: str
    where: str = ''


@dataclass
class Snapshot:
    """State of a sample after a step.

    Args:
        step (str): ``'disk'``, ``'LoadAnnotations'``, ``'RandomChoice > Resize'``, ...
        label (np.ndarray, optional): The label map; a copy.
        instances (list[Instance], optional): In the order of the sample; ``None``: not loaded yet.
        size (tuple, optional): (height, width) of the label map, or else of the image.
        homography (np.ndarray, optional): (3, 3), from the image as it was loaded to the image now, as mmdet keeps it.
        guard (dict[str, Tally]): Kind -> counts of a guard.
        label_map (dict[int, int]): Before loading: the label_map that the data set passes to its loader.
        note (str): Reason if anything could not be inspected.
        faults (list[Fault]): Faults in boxes and masks of the instances that are trained on.
        checked (set[str]): Kinds of annotations that were checked: ``'pixels'``, ``'instances'``, ``'boxes'``,
            ``'masks'``.
        unchecked (set[str]): Fields with annotations of other kinds.
    """

    step: str
    label: Optional[np.ndarray] = None
    instances: Optional[List[Instance]] = None
    size: Optional[Tuple[int, int]] = None
    homography: Optional[np.ndarray] = None
    guard: Dict[str, Tally] = field(default_factory=dict)
    label_map: Dict[int, int] = field(default_factory=dict)
    note: str = ''
    faults: List[Fault] = field(default_factory=list)
    checked: Set[str] = field(default_factory=set)
    unchecked: Set[str] = field(default_factory=set)

    @property
    def values(self) -> Dict[int, int]:
        """Value -> pixels; fractions are truncated."""
        if self.label is None:
            return {}
        whole = self.label
        if whole.dtype.kind == 'f':
            whole = np.nan_to_num(whole, nan=-1, posinf=2**31, neginf=-(2**31)).astype(np.int64)
        return count_values(whole)

    @property
    def labels(self) -> Dict[int, int]:
        """Label -> trained instances."""
        found: Dict[int, int] = {}
        for instance in self.instances or ():
            if not instance.ignored:
                found[instance.label] = found.get(instance.label, 0) + 1
        return found

    def holds(self, value: int) -> bool:
        return value in self.values or any(instance.label == value for instance in self.instances or ())


def read_annotations(results: Dict[str, Any]) -> Snapshot:
    """Return the state before loading: the instances of the annotation file, and the label map on disk."""
    shot = Snapshot('disk')
    shot.label_map = {int(raw): int(label) for raw, label in (results.get('label_map') or {}).items()}
    found = results.get('instances')
    if found is not None:
        shot.step = 'annotation file'
        shot.instances = [
            Instance(int(one.get('bbox_label', -1)), _read_box(one.get('bbox', ())), bool(one.get('ignore_flag', 0)))
            for one in found
        ]
        if results.get('height') and results.get('width'):
            shot.size = int(results['height']), int(results['width'])
        if any('bbox' in one for one in found):
            _check_boxes(shot)
    elif results.get('gt_label') is not None:
        shot.step, shot.instances = 'annotation', _make_image_label(results['gt_label'])
    path = results.get('seg_map_path')
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
    shot = Snapshot(step)
    if not isinstance(results, dict):
        shot.note = 'no sample' if results is None else f'{type(results).__name__}: not checked'
        return shot
    sample = results.get('data_samples')
    if isinstance(sample, (list, tuple)):
        shot.note = f'{quantity(len(sample), "sample")}: not checked'
    elif sample is not None:
        _take_packed(shot, results, sample)
    else:
        _take_unpacked(shot, results)
    return shot


def _take_unpacked(snapshot: Snapshot, results: Dict[str, Any]) -> None:
    label = results.get('gt_seg_map')
    if label is not None:
        snapshot.label = np.array(label)
    snapshot.unchecked = {key for key in results if key.startswith('gt_') and key not in _FIELDS}
    snapshot.size = _get_size(snapshot.label, results.get('img_shape'))
    snapshot.homography = _copy_homography(results)
    snapshot.guard = get_tallies(results)
    if results.get('gt_bboxes_labels') is not None or results.get('gt_bboxes') is not None:
        snapshot.instances = _read_instances(
            results.get('gt_bboxes'), results.get('gt_bboxes_labels'), results.get('gt_ignore_flags')
        )
        _check_instances(snapshot, results.get('gt_bboxes'), results.get('gt_masks'), results.get('img_shape'))
    elif results.get('gt_label') is not None:
        snapshot.instances = _make_image_label(results['gt_label'])


def _take_packed(snapshot: Snapshot, results: Dict[str, Any], sample: Any) -> None:
    snapshot.unchecked = {key for key in sample.keys() if key.startswith('gt_') and key not in _FIELDS}  # noqa: SIM118
    packed = sample.get('gt_sem_seg')
    if packed is not None:
        data = packed.get('data') if 'data' in packed else packed.get('sem_seg')
        snapshot.label = np.array(
            data.cpu().numpy().squeeze(0) if data.ndim == 3 and len(data) == 1 else data.cpu().numpy()
        )
    snapshot.size = _get_size(snapshot.label, sample.get('img_shape'))
    snapshot.homography = _copy_homography(sample)
    snapshot.guard = get_tallies(sample)
    trained, ignored = sample.get('gt_instances'), sample.get('ignored_instances')
    if trained is not None and trained.keys():
        snapshot.instances = _read_instances(trained.get('bboxes'), trained.get('labels'), None)
        snapshot.unchecked |= {key for key in trained.keys() if key not in _OF_INSTANCES}  # noqa: SIM118
        _check_instances(snapshot, trained.get('bboxes'), trained.get('masks'), sample.get('img_shape'))
        if ignored is not None and ignored.keys():
            flags = np.ones(len(ignored), dtype=bool)
            snapshot.instances += _read_instances(ignored.get('bboxes'), ignored.get('labels'), flags)
    label = getattr(sample.get('gt_label'), 'label', sample.get('gt_label'))  # mmdet's has the tensor as an attribute
    if hasattr(label, 'tolist'):
        snapshot.instances = _make_image_label(label)


#: Fields of a sample that are inspected, and those of its instances.
_FIELDS = {'gt_seg_map', 'gt_bboxes', 'gt_bboxes_labels', 'gt_ignore_flags', 'gt_masks', 'gt_label'}
_FIELDS |= {'gt_sem_seg', 'gt_instances'}
_OF_INSTANCES = ('bboxes', 'labels', 'masks')


def _check_instances(snapshot: Snapshot, boxes: Any, masks: Any, img_shape: Any) -> None:
    if boxes is not None:
        _check_boxes(snapshot)
    if masks is None:
        return
    if not all(hasattr(masks, name) for name in ('height', 'width', 'areas')):
        snapshot.unchecked.add('masks')
        return
    snapshot.checked.add('masks')
    snapshot.faults += _find_mask_faults(masks, snapshot.instances or [], img_shape)


def _check_boxes(snapshot: Snapshot) -> None:
    snapshot.checked.add('boxes')
    trained = [one for one in snapshot.instances or () if not one.ignored]
    corners = np.array([one.box for one in trained], dtype=np.float64).reshape(-1, 4)
    found = find_corner_faults(corners, (np.inf, np.inf) if snapshot.size is None else snapshot.size)
    for one, code in zip(trained, found.tolist()):
        if code:
            snapshot.faults.append(Fault(describe_boxes({BOX_REASONS[code]: 1})[0], str(one)))


def _find_mask_faults(masks: Any, instances: List[Instance], img_shape: Any) -> List[Fault]:
    """Compare number and size of masks as stored by mmdet (bitmaps, polygons), and report masks without a pixel."""
    if len(masks) != len(instances):
        return [Fault(f'{quantity(len(masks), "mask")} for {quantity(len(instances), "instance")}')]
    faults = []
    size, image = (int(masks.height), int(masks.width)), _get_size(None, img_shape)
    if image is not None and len(masks) and size != image:
        faults.append(Fault(f'masks are {size[0]} x {size[1]}, the image {image[0]} x {image[1]}'))
    areas = np.asarray(masks.areas)
    empty = [one for one, area in zip(instances, areas.tolist()) if area == 0 and not one.ignored]
    return faults + [Fault(f'a mask of label {one.label} holds no pixel', str(one)) for one in empty]


def _copy_homography(sample: Any) -> Optional[np.ndarray]:
    matrix = sample.get('homography_matrix')
    return None if matrix is None else np.array(matrix, dtype=np.float64)


def _get_size(label: Optional[np.ndarray], img_shape: Any) -> Optional[Tuple[int, int]]:
    shape = label.shape if label is not None else img_shape
    return None if shape is None or len(shape) < 2 else (int(shape[0]), int(shape[1]))


def _read_instances(boxes: Any, labels: Any, flags: Any) -> List[Instance]:
    if boxes is not None and hasattr(boxes, 'convert_to'):
        boxes = boxes.convert_to('hbox').tensor  # rotated boxes are described by their bounding boxes
    corners: List[List[float]] = [] if boxes is None else [list(map(float, np.ravel(box))) for box in np.asarray(boxes)]
    classes = [-1] * len(corners) if labels is None else np.asarray(labels).tolist()
    if not corners:
        corners = [[]] * len(classes)
    left_out = [False] * len(classes) if flags is None else np.asarray(flags).astype(bool).tolist()
    return [Instance(int(label), _read_box(box), ignored) for label, box, ignored in zip(classes, corners, left_out)]


def _make_image_label(labels: Any) -> List[Instance]:
    found = np.atleast_1d(np.asarray(labels)).tolist()
    return [Instance(label, _read_box(())) for label in found if label != UNLABELED]


def _read_box(corners: Any) -> Tuple[float, float, float, float]:
    numbers = [float(corner) for corner in corners][:4]
    if len(numbers) < 4:
        return (float('nan'),) * 4
    return numbers[0], numbers[1], numbers[2], numbers[3]


#: Transforms whose parts are steps of their own, because they run on the same sample. (KeyMapper and
#: TransformBroadcaster pass another sample to their parts, so each is one step.)
_OPEN = ('Compose', 'RandomApply', 'RandomChoice')


@dataclass
class Step:
    """A transform, the sample after it, and the images mixed in by it (Mosaic, MixUp)."""

    transform: Any
    after: Snapshot
    mixed: List[Run] = field(default_factory=list)


@dataclass
class Run:
    """One image on its way through the pipeline."""

    image: str
    start: Snapshot
    steps: List[Step] = field(default_factory=list)


class Recorder:
    """Recorder of a sample after each transform of a data set."""

    def __init__(self) -> None:
        self.runs: List[Run] = []
        self._open: Optional[Run] = None

    def watch(self, pipeline: Any) -> None:
        """Watch a data set's own pipeline (an mmengine ``Compose``)."""
        pipeline.transforms = [self.begin, *self._watch_steps(pipeline.transforms, '')]

    def watch_mixing(self, transforms: List[Any]) -> List[Any]:
        """Return the transforms of a ``MultiImageMixDataset``, watched: they work on the first image."""
        return [WatchedStep(transform, partial(self._call, type(transform).__name__, True)) for transform in transforms]

    def _watch_steps(self, transforms: List[Any], path: str) -> List[Any]:
        watched = []
        for transform in transforms:
            name = type(transform).__name__
            here = path if name == 'Compose' else f'{path}{name}'
            if name in _OPEN:
                inside = '' if not here else f'{here} > ' if not here.endswith(' > ') else here
                self._open_up(transform, inside)
                watched.append(transform)
            else:
                inner = getattr(transform, 'pre_transform', None)
                if hasattr(inner, 'transforms'):  # mmyolo's Mosaic and MixUp load further images with it
                    self.watch(inner)
                watched.append(WatchedStep(transform, partial(self._call, here, False)))
        return watched

    def _open_up(self, transform: Any, path: str) -> None:
        parts = transform.transforms
        if isinstance(parts, (list, tuple)):
            transform.transforms = self._watch_steps(list(parts), path)
        else:
            self._open_up(parts, path)

    def begin(self, results: Any) -> Any:
        """Begin a run, as the step before the first transform."""
        self._open = Run(str(results.get('img_path') or get_file(results) or '<unknown>'), read_annotations(results))
        self.runs.append(self._open)
        return results

    def _call(self, name: str, outer: bool, transform: Any, results: Any) -> Any:
        """Run a step, and record the sample after it; an ``outer`` one works on the first image."""
        opened, begun = self._open, len(self.runs)
        results = transform(results)
        self._open = opened
        run = self.runs[0] if outer else opened
        if run is not None:
            first = 1 if outer else begun  # images loaded since the last step were loaded for this one
            run.steps.append(Step(transform, take(name, results), self.runs[first:]))
            del self.runs[first:]
        return results
