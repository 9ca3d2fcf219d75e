"""Labels of points: the data sets of an mmdet3d config, and folders of SemanticKITTI's files."""

from __future__ import annotations

import os
import re
from typing import Any, Dict, Iterator, List, Mapping, Optional, Tuple

import numpy as np

from mmguard.labels.maps import MAPS_POINTS, POINTS
from mmguard.tools.scan.annotations.faults import Faults
from mmguard.tools.scan.annotations.infos_3d import info_files, opened, read_infos
from mmguard.tools.scan.options import ScanOptions
from mmguard.tools.scan.points import SEMANTIC_KITTI, PointSettings
from mmguard.tools.scan.record import MapItem
from mmguard.tools.scan.settings import as_pairs
from mmguard.tools.scan.sources.base import MapSource
from mmguard.tools.scan.sources.config import SplitSet, type_name
from mmguard.tools.scan.sources.folders import is_label_name, walk
from mmguard.tools.storage.backend_files import files_of
from mmguard.tools.storage.urls import entered

_PATH = f'{POINTS}_path'
#: The folders of SemanticKITTI: labels/000000.label belongs to velodyne/000000.bin, of four numbers per point.
_SCANS, _ENDING, _PER_POINT = 'velodyne', '.bin', 4


class PointSource(MapSource):
    """The label files of points that a data set of mmdet3d lists, with the table of its class.

    Args:
        split (SplitSet): The data set.
        num_classes (int, optional): Of the head. ``None``: as many as the data set has classes.
        ignore_index (int, optional): Of the head. ``None``: as the data set says.

    Raises:
        Exception: What the data set's class raises.
        ValueError: Nothing loads labels, or nothing lists any.
    """

    def __init__(self, split: SplitSet, num_classes: Optional[int], ignore_index: Optional[int]) -> None:
        dataset, steps, faults = opened(split.config), _steps(split.pipeline), Faults()
        loader, scan = steps.get('LoadAnnotations3D', {}), steps.get('LoadPointsFromFile', {})
        if loader.get('with_seg_3d') is not True:
            raise ValueError(
                'no LoadAnnotations3D(with_seg_3d=True) in its pipeline says how labels of points are read'
            )
        self._files = _files_of(split.config, dataset, faults)
        if not self._files:
            listed = ', '.join(map(os.path.basename, info_files(split.config, dataset)))
            raise ValueError(
                f'nothing was read: {faults.words() or f"{listed} names no label file of points ({_PATH})"}'
            )
        classes = [str(name) for name in dataset.metainfo.get('classes') or ()]
        dtype, modulo = _format_of(loader)
        table = tuple(int(label) for label in np.asarray(dataset.seg_label_mapping).tolist())
        mapping = steps.get(MAPS_POINTS, steps.get(f'Guarded{MAPS_POINTS}'))
        only_compared = mapping is None and 'train' not in split.name
        per_point = scan.get('load_dim', 6) if scan else 0
        settings = PointSettings(
            num_classes=num_classes or len(classes) or 1,
            ignore_index=dataset.ignore_index if ignore_index is None else ignore_index,
            guard_map=as_pairs(steps.get('GuardSegLabels', {}).get('label_map')),
            # What a record holds depends on these alone.
            backend=f'{dtype} % {modulo} / {per_point}',
            files=files_of(loader.get('backend_args'), self._files[0].path),
            image_files=files_of(scan.get('backend_args'), self._files[0].image or ''),
            dtype=dtype,
            modulo=modulo,
            classes=table if mapping is not None or only_compared else None,
            value_map=as_pairs((mapping or {}).get('label_map')),
            unlabelled=max(table) if only_compared else None,
            per_point=per_point,
        )
        root = getattr(dataset, 'data_root', None)
        super().__init__(split.name, settings, None if root is None else str(root), classes)
        for what, places in faults.to_dict().items():
            for place in places:
                self.noticed.add_fault(what, place)
        if only_compared and table[: len(classes)] != tuple(range(len(classes))):
            self.notes.append(
                f'{split.name}: no {MAPS_POINTS} in its pipeline, so SegMetric compares values as they are stored; '
                f'here they are counted as the training maps them'
            )

    def items(self) -> Iterator[MapItem]:
        return iter(self._files)

    def listed(self) -> Optional[List[MapItem]]:
        return self._files

    def count(self) -> Optional[int]:
        return len(self._files)


def _steps(pipeline: Any) -> Dict[str, Mapping[str, Any]]:
    found: Dict[str, Mapping[str, Any]] = {}
    for step in pipeline:
        found.setdefault(type_name(step), step)
    return found


def _files_of(config: Mapping[str, Any], dataset: Any, faults: Faults) -> List[MapItem]:
    files: Dict[MapItem, None] = {}  # S3DIS lists large rooms several times
    _, infos = read_infos(config, dataset, faults)
    for info in infos:
        label, scan = info.record.get(_PATH), info.record.get('lidar_path')
        if isinstance(label, str):
            files.setdefault(MapItem(entered(label), entered(scan) if isinstance(scan, str) else None))
        else:
            faults.add(f'a sample has no {_PATH}', info.where)
    return list(files)


def _format_of(loader: Mapping[str, Any]) -> Tuple[str, int]:
    """The dtype of label files, and what is left of a number, as LoadAnnotations3D has them."""
    dtype = re.sub(r'^(np|numpy)\.', '', str(loader.get('seg_3d_dtype', 'np.int64')))
    try:
        known = np.dtype(dtype).kind in 'biu'
    except TypeError:
        known = False
    if not known:
        raise ValueError(f'seg_3d_dtype={dtype!r} is no type of whole numbers')
    offset = loader.get('seg_offset')
    return dtype, offset if loader.get('dataset_type') == 'semantickitti' and isinstance(offset, int) else 0


class LabelFolder(MapSource):
    """Label files of SemanticKITTI, ``.label``, in a folder and those in it, or one file.

    Args:
        root (str): The folder, or the file.
        options (ScanOptions): What the user says about it.
    """

    def __init__(self, root: str, options: ScanOptions) -> None:
        dtype, modulo = SEMANTIC_KITTI
        said = options.settings()
        settings = PointSettings(
            num_classes=options.num_classes or modulo,
            ignore_index=said.ignore_index,
            backend=f'{dtype} % {modulo} / {_PER_POINT}',
            dtype=dtype,
            modulo=modulo,
            guard_map=said.label_map,
            per_point=_PER_POINT,
        )
        folder = root if os.path.isdir(root) else os.path.dirname(os.path.abspath(root))
        super().__init__(root, settings, os.path.abspath(folder))
        self._target = os.path.abspath(root)

    def items(self) -> Iterator[MapItem]:
        for path in self._paths():
            folder, name = os.path.split(path)
            scan = os.path.join(os.path.dirname(folder), _SCANS, f'{os.path.splitext(name)[0]}{_ENDING}')
            yield MapItem(path, scan if os.path.isdir(os.path.dirname(scan)) else None)

    def count(self) -> Optional[int]:
        return sum(1 for _ in self._paths())

    def _paths(self) -> Iterator[str]:
        if os.path.isfile(self._target):
            yield self._target
            return
        for folder, names, _ in walk(self._target, lambda folder, error: None):
            yield from (os.path.join(folder, name) for name in names if is_label_name(name))
