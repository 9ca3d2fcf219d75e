"""From what the user names to what is to be scanned."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Callable, List, Union

from mmguard.diagnosis.facts import ConfigFacts, LabelFacts
from mmguard.errors import CannotRun
from mmguard.failures import words_of
from mmguard.scan.nnunet.source import CaseSource, missing_package, raw_datasets
from mmguard.scan.options import ScanOptions
from mmguard.scan.sources.base import MapSource
from mmguard.scan.sources.config import ConfigSource, heads_say, split_sets
from mmguard.scan.sources.folder import FolderSource
from mmguard.scan.sources.folders import is_image_name
from mmguard.scan.sources.layout import label_and_image_folders

_CONFIG_ENDINGS = ('.py', '.yaml', '.yml')


class CannotScan(CannotRun):
    """There is nothing that could be scanned, and why."""


@dataclass
class AnnotationSource:
    """A data set of annotation files.

    Args:
        name (str): What to call it.
        read (callable): Reads it.
        notes (list[str]): What the user should know of it.
        files (list): What it reads, to tell whether two splits are the same.
    """

    name: str
    read: Callable[[], LabelFacts]
    notes: List[str] = field(default_factory=list)
    files: List[Any] = field(default_factory=list)


Source = Union[MapSource, AnnotationSource, CaseSource]


@dataclass
class Plan:
    """What is to be scanned.

    Args:
        sources (list): The data sets.
        config (ConfigFacts): What the config, or the command line, says about labels.
        failed (list[str]): Data sets that could not be opened, and why.
    """

    sources: List[Source]
    config: ConfigFacts
    failed: List[str] = field(default_factory=list)


def plan_of(target: str, options: ScanOptions) -> Plan:
    """Finds out what a target is, by its name and its first files.

    Args:
        target (str): An mm config (a file, or ``'mmseg::pidnet/....py'``), a COCO or LVIS JSON, a VOC folder, a folder
            of label maps, one label map, a raw data set of nnU-Net, or a folder of such.
        options (ScanOptions): What the user says about it.

    Raises:
        CannotScan: It is none of them, or does not exist.
    """
    if '::' in target and not os.path.exists(target):  # a config that ships with a framework
        return _config_plan(target, options)
    if not os.path.exists(target):
        raise CannotScan(f'{target} does not exist: name a config, a folder of label maps, a COCO JSON or a VOC folder')
    volumes = raw_datasets(target)
    if volumes:
        return _volume_plan(volumes)
    ending = os.path.splitext(target)[1].lower()
    if os.path.isdir(target):
        return _voc_plan(target, options) if _is_voc(target) else _folder_plan(target, options)
    if ending in _CONFIG_ENDINGS:
        return _config_plan(target, options)
    if ending == '.json':
        return _coco_plan(target, options)
    if is_image_name(os.path.basename(target)):
        return _folder_plan(target, options)
    raise CannotScan(
        f'{target}: nothing to scan in a {ending or "file without ending"}. Name a config (.py), a folder of label '
        f'maps, a COCO JSON or a VOC folder'
    )


def _volume_plan(folders: List[str]) -> Plan:
    sources = [CaseSource(folder) for folder in folders]
    for source in sources:
        package = missing_package(source.reader, source.spec.file_ending)
        if package:
            ending = source.spec.file_ending
            raise CannotScan(f'{source.name}: {ending} files are read by {package}: pip install {package}')
    return Plan(list(sources), ConfigFacts())


def _folder_plan(target: str, options: ScanOptions) -> Plan:
    _import_pillow(target)
    notes = []
    if os.path.isdir(target) and options.images is None:
        folders = label_and_image_folders(target)
        if folders is not None:
            target = folders[0]
            options = replace(options, images=folders[1])
            notes.append(f'labels: {folders[0]}, images: {folders[1]}')
    try:
        source = FolderSource(target, options.settings(), options.images, options.suffix)
    except OSError as error:
        raise CannotScan(str(error)) from error
    source.notes += notes
    if options.num_classes is None:
        source.notes.append('no --num-classes: every value counts as a class; with it, invalid ones are found')
    return Plan([source], _facts_of(options))


def _import_pillow(target: str) -> None:
    """Here, because processes that are forked later need not import it again."""
    try:
        import PIL.Image  # noqa: F401
    except ImportError as error:
        raise CannotScan(
            f'{target}: label maps are read with pillow, which does not import ({error}): pip install pillow. COCO, '
            f'LVIS and VOC annotations are read without it'
        ) from error


def _facts_of(options: ScanOptions) -> ConfigFacts:
    facts = ConfigFacts(framework='mmseg', label_map=dict(options.label_map))
    if options.reduce_zero_label:
        facts.reduce_zero_label['--reduce-zero-label'] = True
    return facts


def _is_voc(folder: str) -> bool:
    """A VOC folder has its annotations in XML: in itself, in Annotations, or in those of the folders in it."""
    below = [os.path.join(entry, 'Annotations') for entry in _folders_in(folder)]
    for place in (os.path.join(folder, 'Annotations'), folder, *below):
        try:
            with os.scandir(place) as entries:
                if any(entry.name.endswith('.xml') for _, entry in zip(range(1000), entries)):
                    return True
        except OSError:
            continue
    return False


def _folders_in(folder: str, most: int = 20) -> List[str]:
    """The first folders in a folder: VOCdevkit has one for each year."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.path for _, entry in zip(range(1000), entries) if entry.is_dir())[:most]
    except OSError:
        return []


def _voc_plan(target: str, options: ScanOptions) -> Plan:
    from mmguard.scan.annotations import scan_voc

    return Plan([AnnotationSource(target, lambda: scan_voc(target, options.num_classes))], ConfigFacts())


def _coco_plan(target: str, options: ScanOptions) -> Plan:
    from mmguard.scan.annotations import scan_coco

    def read() -> LabelFacts:
        return scan_coco(target, options.num_classes, images=options.images)

    return Plan([AnnotationSource(target, read)], ConfigFacts())


def _config_plan(target: str, options: ScanOptions) -> Plan:
    import mmengine  # noqa: F401  where it is missing, the command line says how to install it

    from mmguard.check.config import read_config
    from mmguard.check.facts import facts_of_config

    try:
        read = read_config(target)
        facts = facts_of_config(read)
    except Exception as error:  # a config is a program: it may raise anything
        raise CannotScan(f'{target} is no config that mmengine can read: {words_of(error)}') from error
    if read.scope == 'mmdet':
        return _det_plan(read.data, options, facts)
    plan = Plan([], facts)
    num_classes, ignore_index = heads_say(read.data)
    num_classes = options.num_classes or num_classes
    ignore_index = ignore_index if options.ignore_index is None else options.ignore_index
    for split in split_sets(read.data, options.splits):
        try:
            plan.sources.append(ConfigSource(split, num_classes, ignore_index))
        except Exception as error:  # what a data set's class raises where its files are not
            plan.failed.append(f'{split.name}: {_in_words(error)}')
    if not plan.sources:
        raise CannotScan('\n'.join(plan.failed) or f'{target} has no data set in {", ".join(options.splits)}')
    for source in plan.sources:
        source.notes += read.notes
    return plan


def _det_plan(config: Any, options: ScanOptions, facts: ConfigFacts) -> Plan:
    from mmguard.scan.annotations import datasets_of_config, scan_detection_config

    plan = Plan([], facts)
    for split in options.splits:
        files = [(dataset.ann_file, dataset.images) for dataset in datasets_of_config(config, split)]
        same = next((source for source in plan.sources if files and getattr(source, 'files', None) == files), None)
        if same is not None:
            same.name += f', {split}'  # the test split is mostly the validation again
        elif files:
            read = partial(scan_detection_config, config, split, options.num_classes)
            plan.sources.append(AnnotationSource(split, read, files=files))
    if not plan.sources:
        raise CannotScan(f'the config has no data set in {", ".join(options.splits)}')
    return plan


def _in_words(error: Any) -> str:
    return f'the data set cannot be opened: {words_of(error)}'
