"""Detection of a target's format, on a disk or at a URL, and the plan of its scan."""

from __future__ import annotations

import os
from dataclasses import replace
from itertools import islice
from types import MappingProxyType
from typing import Any, Callable, Dict, List, Mapping, Optional, Set, Tuple

from mmguard.config.changes import change_config
from mmguard.config.detr_yaml import is_detr_yaml
from mmguard.config.old_style import add_loaders
from mmguard.config.read import ReadConfig
from mmguard.findings.facts import ConfigFacts
from mmguard.formats.listings import is_image_name, walk
from mmguard.formats.maps.forms import is_array_name
from mmguard.formats.nnunet.source import CaseSource, raw_datasets, why_unread
from mmguard.formats.options import SPLITS, ScanOptions
from mmguard.formats.other_files import words_of as words_of_files
from mmguard.formats.other_files import words_of_program
from mmguard.scanning import plans
from mmguard.scanning.plans import CannotScan, Plan
from mmguard.storage.files import FILES, forget_listings
from mmguard.storage.urls import is_url

NNUNET = 'nnunet'
#: Format of a program whose files are not read.
OTHER_PROGRAM = 'other_program'
VOC = 'voc'
YOLO = 'yolo'
LABELME = 'labelme'
#: Folder of COCO files, and folder whose subfolders are the classes.
COCO_FOLDER, CLASS_FOLDERS = 'coco_folder', 'class_folders'

#: Number of folders that are inspected at a URL.
_FOLDERS = 8
_TEXT_ENDINGS = ('.json', '.txt', '.csv')


def format_of(target: str, suffix: Optional[str] = None) -> str:
    """Return the format of a target, by its name and its first files.

    Returns:
        str: One of the names of this module; empty: another, perhaps a config, a COCO JSON or label maps.

    Raises:
        CannotScan: The target is at a URL, but its format is only read from a disk.
    """
    if is_url(target):
        return _far_format(target, suffix)
    formats = [(name, is_one) for name, is_one, beside_suffix in _formats() if beside_suffix or not suffix]
    return next((name for name, is_one in formats if is_one(target)), '')


def _formats() -> List[Tuple[str, Callable[[str], object], bool]]:
    """Return (format, test for it, True if it is also tested when an ending of label maps is given).

    The order is that of the tests: the signs of one format may also be those of a later one.
    """
    from mmguard.formats.coco.file import coco_files
    from mmguard.formats.folders.read import splits_of_classes
    from mmguard.formats.labelme.read import is_labelme
    from mmguard.formats.nnunet.source import raw_datasets
    from mmguard.formats.other_files import words_of_program
    from mmguard.formats.voc.read import is_voc
    from mmguard.formats.yolo.read import is_yolo

    return [
        (NNUNET, raw_datasets, True),
        (OTHER_PROGRAM, words_of_program, False),
        (VOC, is_voc, True),
        (YOLO, is_yolo, True),
        (LABELME, is_labelme, False),
        (COCO_FOLDER, coco_files, False),
        (CLASS_FOLDERS, splits_of_classes, False),
    ]


def _far_format(url: str, suffix: Optional[str]) -> str:
    """Return YOLO, or an empty string for a COCO JSON or label maps; refuse other texts next to images."""
    from mmguard.formats.yolo.read import is_yolo

    if is_yolo(url):
        return YOLO
    if suffix or not FILES.is_folder(url):
        return ''
    images: Set[str] = set()
    texts: Dict[str, str] = {}
    for folder, names, _ in islice(walk(url, lambda at, error: None), _FOLDERS):
        images.update(os.path.splitext(name)[0] for name in names if is_image_name(name))
        texts.update({os.path.splitext(name)[0]: name for name in names if name.lower().endswith(_TEXT_ENDINGS)})
        odd = [name for name in names if name.lower().endswith('.xml') or (folder == url and name == 'dataset.json')]
        odd += [texts[stem] for stem in sorted(images & texts.keys())]
        if odd:
            raise CannotScan(
                f'{url} holds {odd[0]}: behind a URL only label maps, a COCO JSON and YOLO are read. '
                f'Copy the data here, or mount the storage'
            )
    return ''


_CONFIG_ENDINGS = ('.py', '.yaml', '.yml')


def plan_of(target: str, options: ScanOptions, copies: Mapping[str, str] = MappingProxyType({})) -> Plan:
    """Plan the scan of a target: an mm config (a file, or ``'mmseg::pidnet/....py'``), or files of labels.

    ``copies``, file that the target names -> file that is read in its place, are used in a trial.

    Raises:
        CannotScan: The target is neither of them, or does not exist.
    """
    forget_listings()
    plan = plans.detr_plan(target, options, copies) if is_detr_yaml(target) else _plan_of(target, options, copies)
    plan.target, plan.options = target, options
    return plan


def plan_again(
    plan: Plan, config: Optional[ReadConfig], options: Mapping[str, Any], copies: Optional[Dict[str, str]] = None
) -> Plan:
    """Plan the same scan with another config, other options, or copies in place of files."""
    said = replace(plan.options, **options)
    if config is not None:
        return plans.config_plan(with_copies(config, copies) if copies else config, said)
    fresh = plan_of((copies or {}).get(plan.target, plan.target), said, copies or {})
    for source, known in zip(fresh.sources, plan.sources):
        source.name = known.name
    return fresh


def _plan_of(target: str, options: ScanOptions, copies: Mapping[str, str]) -> Plan:
    if '::' in target and not is_url(target) and not os.path.exists(target):  # a config that ships with a framework
        return plans.config_plan(plans.read(target, options.run_code), options)
    if not FILES.exists(target):
        raise CannotScan(f'{target} does not exist: name a config, a folder of label maps, a COCO JSON or a VOC folder')
    found = format_of(target, options.suffix)
    ending = os.path.splitext(target)[1].lower()
    if (options.labels or options.framework) and ending != '.json' and found != COCO_FOLDER:
        raise CannotScan(
            f'--labels and --framework say how the categories of a COCO JSON become labels; {target} is none: '
            f'leave them out, a config and a folder say it themselves'
        )
    if found:
        return _OF_FORMAT[found](target, options, copies)
    if FILES.is_folder(target):
        return plans.map_plan(target, options)
    return _file_plan(target, ending, options)


def _file_plan(target: str, ending: str, options: ScanOptions) -> Plan:
    if ending in _CONFIG_ENDINGS:
        if is_url(target):
            raise CannotScan(
                f'{target}: a config is code, and is read from a disk: copy it here, with the files that its _base_ '
                f'names, and name the copy. The labels that it names may stay where they are'
            )
        return plans.config_plan(plans.read(target, options.run_code), options)
    if ending == '.json':
        return plans.coco_plan(target, options)
    if is_image_name(os.path.basename(target)) or is_array_name(os.path.basename(target)):
        return plans.map_plan(target, options)
    raise CannotScan(
        f'{target}: nothing to scan in a {ending or "file without ending"}. {words_of_files([target])}. Name a config '
        f'(.py), a folder of label maps, a COCO JSON or a VOC folder'
    )


def _volume_plan(target: str, options: ScanOptions, copies: Mapping[str, str]) -> Plan:
    sources = [CaseSource(folder) for folder in raw_datasets(target)]
    for source in sources:
        why = why_unread(source.reader, source.spec.file_ending)
        if why:
            raise CannotScan(f'{source.name}: {why}')
    return Plan(list(sources), ConfigFacts())


def _no_plan(target: str, options: ScanOptions, copies: Mapping[str, str]) -> Plan:
    raise CannotScan(f'{target}: nothing was read, {words_of_program(target)}')


_OF_FORMAT: Dict[str, Callable[[str, ScanOptions, Mapping[str, str]], Plan]] = {
    NNUNET: _volume_plan,
    OTHER_PROGRAM: _no_plan,
    VOC: plans.voc_plan,
    YOLO: plans.yolo_plan,
    LABELME: plans.labelme_plan,
    COCO_FOLDER: plans.coco_folder_plan,
    CLASS_FOLDERS: plans.class_folder_plan,
}


def with_copies(config: ReadConfig, copies: Dict[str, str]) -> ReadConfig:
    """Return the config with its data sets reading the copies."""
    from mmguard.scanning.config_instances import datasets_of_config

    places = []
    config = add_loaders(config)
    for dataset in [found for split in SPLITS for found in datasets_of_config(config.data, split)]:
        folder = dataset.images if is_url(dataset.images) else os.path.normpath(dataset.images)
        if dataset.ann_file in copies:
            places.append((f'{dataset.path}.ann_file', os.path.abspath(copies[dataset.ann_file])))
        elif dataset.family == 'voc' and folder in copies:
            copy = os.path.abspath(copies[folder])
            listed = os.path.join(copy, os.path.relpath(dataset.ann_file, folder))
            places += [(f'{dataset.path}.data_prefix.sub_data_root', copy), (f'{dataset.path}.ann_file', listed)]
    return change_config(config, places)
