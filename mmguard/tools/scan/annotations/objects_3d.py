"""The objects in space that the data sets of an mmdet3d config list, and the files of their samples."""

from __future__ import annotations

import os
from collections import Counter
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from mmguard.findings.facts import AnnotationFacts, LabelFacts
from mmguard.labels.boxes import NO_AREA, NOT_FINITE
from mmguard.labels.instances import BOX_REASONS, LABEL_REASON
from mmguard.text.words import counted
from mmguard.tools.scan.annotations.faults import Faults, short
from mmguard.tools.scan.annotations.infos_3d import opened, read_infos
from mmguard.tools.scan.annotations.table import EXAMPLES, UNLISTED, counts_of
from mmguard.tools.storage.files import FILES
from mmguard.tools.storage.urls import is_url

#: How findings call this format.
FORMAT = 'mmdet3d'
#: What mmdet3d writes for an object that is not to be cared for.
_DONT_CARE = -1
#: Centre, size and angle; indoor boxes have no angle. Velocities behind them may be unknown.
_GEOMETRY = 7
_NOT_JUDGED = 'no point of the scan lies in it'


class _Object(NamedTuple):
    """An object that is listed.

    Attributes:
        sample (int): Number of its sample.
        number (int): Its label in the file.
        label (int): The label that it is trained with; -1: none.
        fault (int): What is wrong with its box, its place in ``BOX_REASONS``; 0: nothing.
        left_out (str): Why it is not trained on; empty: it is.
        where (str): How messages name it.
        box (object): As it is written.
    """

    sample: int
    number: int
    label: int
    fault: int
    left_out: str
    where: str
    box: Any


def scan_objects(config: Mapping[str, Any], num_classes: Optional[int] = None) -> LabelFacts:
    """Reads what a data set lists. No image and no scan is opened.

    Args:
        config (dict): Of a data set that derives from mmdet3d's Det3DDataset.
        num_classes (int, optional): Classes of the head. Default: those of the data set.

    Returns:
        LabelFacts: ``kind='instances'``; ``files`` are samples.

    Raises:
        ValueError: Not one object was read; the message says why.
        Exception: What the data set's class raises.
    """
    faults = Faults()
    dataset = opened(config)
    names = [str(name) for name in dataset.metainfo.get('classes') or ()]
    metainfo, infos = read_infos(config, dataset, faults)
    objects: List[_Object] = []
    samples: List[str] = []
    paths: Dict[str, None] = {}
    for info in infos:
        paths.update(dict.fromkeys(_paths_of(info.record)))
        if 'instances' in info.record or not config.get('test_mode'):  # of a challenge nobody has them
            objects += _objects_of(info.record, len(samples), info.where, dataset, faults)
        samples.append(info.where)
    if not objects:
        why = faults.words() or f'{counted(len(samples), "sample")} without an object'
        raise ValueError(f'nothing was read: {why}')
    facts = _facts(objects, len(samples), names, num_classes or len(names), dataset)
    found = facts.annotations
    assert found is not None
    found.sources = list(metainfo)
    found.renamed = _renumbered(metainfo, type(dataset).METAINFO.get('classes') or ())
    found.missing_files = _missing(paths)
    found.missing = len(found.missing_files)
    del found.missing_files[EXAMPLES:]
    found.unreadable = faults.to_dict()
    return facts


def _objects_of(record: Mapping[str, Any], sample: int, place: str, dataset: Any, faults: Faults) -> Iterator[_Object]:
    listed = record.get('instances')
    if not isinstance(listed, list):
        faults.add('instances is no list', f'{place}: {short(listed)}')
        return
    for number, one in enumerate(listed):
        where = f'{place}: instances[{number}]'
        value = one.get('bbox_label_3d') if isinstance(one, dict) else None
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if type(value) is not int or abs(value) >= 1 << 31:
            faults.add('bbox_label_3d is no whole number', f'{where}: {short(value)}')
            continue
        box = one.get('bbox_3d')
        fault = _fault_of(box)
        if fault is None:
            faults.add('bbox_3d is not 6 to 9 numbers', f'{where}: {short(box)}')
            continue
        known = dataset.label_mapping.get(value)
        left_out = UNLISTED if known == _DONT_CARE else _filtered(one, dataset)
        yield _Object(sample, value, value if known is None else known, fault, left_out, where, box)


def _filtered(one: Mapping[str, Any], dataset: Any) -> str:
    """Why nuScenes' and its like leave an object out."""
    if not hasattr(dataset, 'use_valid_flag'):
        return ''
    stays = one.get('bbox_3d_isvalid') if dataset.use_valid_flag else one.get('num_lidar_pts', 1)
    return '' if stays else _NOT_JUDGED


def _fault_of(box: Any) -> Optional[int]:
    """What is wrong with a box; ``None`` where it is none."""
    numbers = box.tolist() if hasattr(box, 'tolist') else box
    if not isinstance(numbers, (list, tuple)) or not 6 <= len(numbers) <= 9:
        return None
    if any(type(number) not in (int, float) for number in numbers):
        return None
    # As it is trained: numbers beyond float32 are none.
    with np.errstate(over='ignore'):
        values = np.array([float(min(max(number, -1e300), 1e300)) if number == number else number
                           for number in numbers[:_GEOMETRY]]).astype(np.float32)  # fmt: skip
    if not np.isfinite(values).all():
        return NOT_FINITE
    return 0 if (values[3:6] > 0).all() else NO_AREA


def _paths_of(record: Mapping[str, Any]) -> Iterator[str]:
    """The files that a pipeline may open of a sample: its scan, its images, former scans."""
    images = record.get('images')
    parts = [record.get('lidar_points'), *(images.values() if isinstance(images, dict) else ())]
    sweeps = record.get('lidar_sweeps')
    parts += [one.get('lidar_points') for one in sweeps if isinstance(one, dict)] if isinstance(sweeps, list) else []
    for part in parts:
        path = part.get('lidar_path', part.get('img_path')) if isinstance(part, dict) else None
        if isinstance(path, str) and os.path.dirname(path):  # joined: else the modality is not read
            yield path


def _missing(paths: Mapping[str, Any]) -> List[str]:
    """Files that are not on disk, by the listings of their folders."""
    folders: Dict[str, Any] = {}
    absent = []
    for path in paths:
        folder, name = os.path.split(path)
        if is_url(path):
            continue
        if folder not in folders:
            folders[folder] = FILES.names_in(folder) if os.path.isdir(folder) else set()
        if name not in folders[folder]:
            absent.append(path)
    return absent


def _renumbered(metainfo: Mapping[str, Mapping[str, Any]], classes: Sequence[str]) -> List[Tuple[int, str, str]]:
    """Number, name in the file, name in the data set's class, where they differ: mmdet3d goes by the number."""
    found: Dict[Tuple[int, str, str], None] = {}
    for said in metainfo.values():
        categories = said.get('categories')
        for name, number in categories.items() if isinstance(categories, dict) else ():
            if type(number) is int and 0 <= number < len(classes) and str(name) != str(classes[number]):
                found[number, str(name), str(classes[number])] = None
    return list(found)


def _facts(objects: List[_Object], samples: int, names: List[str], num_classes: int, dataset: Any) -> LabelFacts:
    trained = [one for one in objects if not one.left_out]
    unknown = {one.number for one in trained} - set(dataset.label_mapping)  # training stops there: KeyError
    invalid = [one for one in trained if one.number in unknown or not 0 <= one.label < num_classes]
    faulty = [one for one in trained if one.fault]
    usable = [one for one in trained if not one.fault and 0 <= one.label < num_classes and one.number not in unknown]
    of_label = {label: {one.sample for one in trained if one.label == label} for label in {o.label for o in trained}}
    reasons = {BOX_REASONS[code]: count for code, count in Counter(one.fault for one in faulty).items()}
    examples = {
        reason: [_example(one) for one in faulty if BOX_REASONS[one.fault] == reason][:EXAMPLES] for reason in reasons
    }
    if invalid:
        reasons[LABEL_REASON] = len(invalid)
        examples[LABEL_REASON] = [f'{one.where}: label {one.label}' for one in invalid[:EXAMPLES]]
    with_target = {one.sample for one in usable}
    histogram = counts_of(np.array([one.label for one in trained], np.int64))
    annotations = AnnotationFacts(
        format=FORMAT,
        labelled_by='class list',
        categories=dict(enumerate(names)),
        instances_of={name: histogram.get(label, 0) for label, name in enumerate(names)},
        images_of={name: len(of_label.get(label, ())) for label, name in enumerate(names)},
        images=samples,
        annotations=len(objects),
        images_without_target=samples - len(with_target),
        files_with_class={label: len(of_label[label]) for label in sorted(of_label)},
        usable=counts_of(np.array([one.label for one in usable], np.int64)),
        unused=[name for label, name in enumerate(names) if label not in histogram],
        left_out={reason: count for reason, count in Counter(one.left_out for one in objects).items() if reason},
        box_examples=examples,
    )
    return LabelFacts(
        values=counts_of(np.array([one.label for one in invalid], np.int64)),
        num_classes=num_classes,
        total=len(objects),
        files=samples,
        offending_files=len({one.sample for one in [*invalid, *faulty]}),
        kind='instances',
        reasons=reasons,
        class_names=names,
        histogram=histogram,
        annotations=annotations,
    )


def _example(one: _Object) -> str:
    numbers = one.box.tolist() if hasattr(one.box, 'tolist') else one.box
    return f'{one.where}: {", ".join(f"{number:.6g}" for number in numbers)}'
