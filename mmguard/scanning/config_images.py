"""Data sets in an mmpretrain config, and their image labels."""

from __future__ import annotations

import os
from typing import Any, Iterator, Optional, Sequence

from mmguard.config.classes import get_default
from mmguard.config.parts import Part, get_class_names
from mmguard.findings.facts import LabelFacts
from mmguard.formats.faults import Faults
from mmguard.formats.files import check_local_dataset
from mmguard.formats.folders import LabeledImage, build_image_facts
from mmguard.formats.merging import merge_facts
from mmguard.text import describe_error, shorten


def scan_image_labels(datasets: Sequence[Part], num_classes: Optional[int] = None) -> LabelFacts:
    """Read the labels of the data sets of a split with their own classes, without opening an image.

    Returns:
        LabelFacts: ``kind='instances'``, ``of_images=True``.

    Raises:
        ValueError: No label was read; the message gives the reason.
    """
    facts = merge_facts([_scan(dataset, num_classes) for dataset in datasets])
    found = facts.annotations
    if found is not None and not found.images:
        why = '; '.join(f'{what} ({", ".join(places)})' for what, places in found.unreadable.items())
        raise ValueError(f'nothing was read: {why or "the data set lists no image with a label"}')
    return facts


def _scan(part: Part, num_classes: Optional[int]) -> LabelFacts:
    check_local_dataset(part.config)
    faults = Faults()
    source, images, names = part.path, [], get_class_names(part)
    try:
        dataset = _build_dataset(part)
        source = _find_file(dataset) or str(getattr(dataset, 'img_prefix', '')) or part.path
        images = list(_read_lines(dataset, faults) if _has_lines(dataset) else _read_samples(dataset, faults))
        listed = dataset.metainfo.get('classes')  # class folders and the JSON of multi-label data sets define the names
        names = [str(name) for name in listed] if isinstance(listed, (list, tuple)) else names
    except Exception as error:  # a data set may raise anything if its files are missing or malformed
        faults.add(describe_error(error), part.path)
    return build_image_facts(images, source, names or [], num_classes, faults)


def _build_dataset(part: Part) -> Any:
    """Build the data set lazily, without its pipeline and without downloading."""
    cls = part.cls
    if cls is None:
        raise ValueError(f'{part.name} is not registered here: is its package installed, and in custom_imports?')
    settings = {key: value for key, value in part.config.items() if key not in ('type', '_scope_', 'pipeline')}
    if get_default(cls, 'download') is True:
        settings['download'] = False
    return cls(**settings, pipeline=[], lazy_init=True)


def _find_file(dataset: Any) -> str:
    file = getattr(dataset, 'ann_file', '')
    return file if isinstance(file, str) else ''


def _has_lines(dataset: Any) -> bool:
    """Return True if the annotations have one ``file label`` per line."""
    is_custom = any(base.__name__ == 'CustomDataset' for base in type(dataset).__mro__)
    return is_custom and bool(_find_file(dataset)) and dataset.with_label


def _read_lines(dataset: Any, faults: Faults) -> Iterator[LabeledImage]:
    from mmengine.fileio import list_from_file

    file = _find_file(dataset)
    name = _make_relative(file, dataset.data_root)
    for number, line in enumerate(list_from_file(file), 1):
        image, blank, label = line.strip().rpartition(' ')
        try:
            yield LabeledImage(f'{name}: line {number}: {line.strip()}', _join(dataset, image), [int(label)])
        except ValueError:
            what = f'the label is not an integer: {shorten(label)}' if blank else 'a line is not `file label`'
            faults.add(what, f'{name}: line {number}')


def _read_samples(dataset: Any, faults: Faults) -> Iterator[LabeledImage]:
    if getattr(dataset, 'with_label', True) is False:
        return
    root = str(getattr(dataset, 'data_root', '') or '')
    dataset.full_init()
    for number in range(len(dataset)):
        info = dataset.get_data_info(number)
        path, label = info.get('img_path'), info.get('gt_label')
        path = path if isinstance(path, str) else ''
        place = _make_relative(path, root) or f'sample {number}'
        if label is None:
            continue
        try:
            labels = [int(one) for one in (label if hasattr(label, '__len__') else [label])]
        except (TypeError, ValueError):
            faults.add(f'gt_label is not an integer: {shorten(label)}', place)
            continue
        yield LabeledImage(f'{place}: {", ".join(map(str, labels))}', path, labels)


def _join(dataset: Any, image: str) -> str:
    return os.path.join(str(dataset.img_prefix or ''), image)


def _make_relative(path: str, root: Any) -> str:
    prefix = os.path.join(str(root), '') if root else ''
    return path[len(prefix) :] if prefix and path.startswith(prefix) else path
