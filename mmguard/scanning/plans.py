"""Plan of a scan: the data sets that a target names, those of a config, or the files and folders themselves."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Callable, List, Mapping, Optional, Union

from mmguard.config.detr_yaml import read_detr_yaml
from mmguard.config.label_spaces import from_config
from mmguard.config.old_style import add_loaders
from mmguard.config.parts import datasets, image_labels_are_classes
from mmguard.config.read import ReadConfig
from mmguard.config.types import describe_misplaced
from mmguard.errors import CannotRun
from mmguard.findings.facts import ConfigFacts, LabelFacts
from mmguard.formats.listings import label_and_image_folders, read_labelmap
from mmguard.formats.maps.engine import MapSource
from mmguard.formats.maps.folder import FolderSource
from mmguard.formats.maps.settings import settings_of
from mmguard.formats.nnunet.source import CaseSource
from mmguard.formats.options import SPLITS, ScanOptions
from mmguard.formats.other_files import words_of as words_of_files
from mmguard.formats.other_files import words_of_json
from mmguard.labels.numbering import COCO, IDS
from mmguard.labels.spaces import VOID, from_options, label_map_of
from mmguard.scanning.config_maps import ConfigSource, split_sets
from mmguard.storage.files import FILES
from mmguard.storage.urls import enter_all, is_url
from mmguard.text import describe_error

#: Other names of the splits.
_OTHER_NAMES = {'training': 'train', 'valid': 'val', 'validation': 'val', 'testing': 'test'}


class CannotScan(CannotRun):
    """Reason why nothing can be scanned."""


@dataclass
class AnnotationSource:
    """Data set of annotation files."""

    name: str  #: Name that is shown.
    read: Callable[..., LabelFacts]  #: Function that reads it.
    notes: List[str] = field(default_factory=list)  #: Notes for the user.
    files: List[Any] = field(default_factory=list)  #: Files that are read, to detect identical splits.
    spread: bool = False  #: True if ``read`` takes a mapper and a callback for the number of files done.


Source = Union[MapSource, AnnotationSource, CaseSource]


@dataclass
class Plan:
    """Data sets to scan, with the facts about labels."""

    sources: List[Source]  #: The data sets.
    config: ConfigFacts  #: Facts about labels from the config or the command line.
    failed: List[str] = field(default_factory=list)  #: Data sets that could not be opened, with the reasons.
    tree: Optional[ReadConfig] = None  #: The config, if the target is one.
    target: str = ''  #: Target as the user named it.
    options: ScanOptions = field(default_factory=ScanOptions)  #: Options of the user.

    def source(self, name: str) -> Optional[Source]:
        """Return the data set of a name."""
        return next((source for source in self.sources if source.name == name), None)


def is_left_out(split: str, options: ScanOptions) -> bool:
    """Return True if a split, or its folder, has one of the usual names and is not asked for."""
    name = os.path.basename(split)
    name = _OTHER_NAMES.get(name, name)
    return name in SPLITS and name not in options.splits


def read(target: str, run_code: bool = False) -> ReadConfig:
    from mmguard.config.recognized import check_is_config

    check_is_config(target)  # does not need mmengine
    import mmengine  # noqa: F401  if it is missing, the command line says how to install it

    from mmguard.config.read import read_config

    return read_config(target, run_code)


def config_plan(read: ReadConfig, options: ScanOptions) -> Plan:
    from mmguard.findings.config_facts import facts_of_config

    try:
        facts = facts_of_config(read)
    except Exception as error:  # a config may hold anything
        raise CannotScan(f'{read.file} cannot be looked at: {describe_error(error)}') from error
    today = add_loaders(read)
    enter_all(today.data)
    in_data = [one for one in today.misplaced if one.fatal and re.match(r'(train|val|test)_dataloader\b', one.path)]
    if in_data:
        raise CannotScan(f'{read.file}: {describe_misplaced(in_data)}')
    if read.framework == 'mmdet':
        return _det_plan(read, today, options, facts)
    if read.framework == 'mmpretrain':
        return _image_plan(read, options, facts)
    plan = Plan([], facts, tree=read)
    pixels = from_options(options.num_classes, options.ignore_index, from_config(read)).pixels
    num_classes = None if pixels is None else pixels.num_classes
    ignore_index = options.ignore_index if pixels is None else pixels.ignore_index
    ignore_index = VOID if ignore_index is None else ignore_index
    unlabelled: List[ConfigSource] = []
    for split in split_sets(today.data, options.splits):
        try:
            opened = ConfigSource(split, num_classes, ignore_index)
            if opened.count():
                plan.sources.append(opened)
            else:
                unlabelled.append(opened)
        except Exception as error:  # raised by the data set's class if its files are missing
            plan.failed.append(f'{split.name}: the data set cannot be opened: {describe_error(error)}')
    for bare in unlabelled:
        if plan.sources and bare.name == 'test':  # the test labels of a challenge are not public
            plan.sources[0].notes += bare.notes
        else:
            plan.failed.append(f'nothing was read of {"; ".join(bare.notes)}: data_prefix names no seg_map_path')
    if not plan.sources:
        raise CannotScan('\n'.join([*plan.failed, *read.unknown_framework()]) or _without_data_set(read, options))
    for source in plan.sources:
        source.notes += today.notes
    return plan


def _det_plan(read: ReadConfig, today: ReadConfig, options: ScanOptions, facts: ConfigFacts) -> Plan:
    from mmguard.scanning.config_instances import datasets_of_config, scan_detection_config

    plan = Plan([], facts, tree=read)
    for split in options.splits:
        sets = datasets_of_config(today.data, split)
        files = [(dataset.ann_file, dataset.images) for dataset in sets]
        scan = partial(scan_detection_config, today.data, split, options.num_classes, options.masks)
        _add_once(plan, AnnotationSource(split, scan, list(today.notes), files))
    if not plan.sources:
        raise CannotScan(_without_data_set(read, options))
    return plan


def _image_plan(read: ReadConfig, options: ScanOptions, facts: ConfigFacts) -> Plan:
    from mmguard.scanning.config_images import scan_image_labels

    plan = Plan([], facts, tree=read)
    space = from_options(options.num_classes, None, from_config(read)).instances
    for split in options.splits if image_labels_are_classes(read) else ():
        sets = [one for one in datasets(read) if one.split == split]
        files = [{key: value for key, value in one.config.items() if key != 'pipeline'} for one in sets]
        scan = partial(scan_image_labels, sets, None if space is None else space.num_classes)
        _add_once(plan, AnnotationSource(split, scan, files=files))
    if not plan.sources:
        raise CannotScan(_without_data_set(read, options))
    return plan


def _add_once(plan: Plan, source: AnnotationSource) -> None:
    """Add a source that has files; skip a test split that is the same as the validation split."""
    same = next((one for one in plan.sources if source.files and getattr(one, 'files', None) == source.files), None)
    if same is not None:
        same.name += f', {source.name}'
    elif source.files:
        plan.sources.append(source)


def _without_data_set(read: ReadConfig, options: ScanOptions) -> str:
    misplaced = f': {describe_misplaced(read.misplaced)}' if read.misplaced else ''
    return f'{read.file} has no data set in {", ".join(options.splits)}{misplaced}'


#: Folders of masks in VOC and similar data sets.
_MASKS = ('SegmentationClass', 'SegmentationObject')
_BY_FOLDER = (
    'the folders are the classes: a label is the place among their sorted names (CustomDataset without ann_file of '
    'mmpretrain, ImageFolder of torchvision)'
)


def coco_plan(target: str, options: ScanOptions) -> Plan:
    from mmguard.formats.coco.read import scan_coco

    def read() -> LabelFacts:
        facts = scan_coco(
            target,
            options.num_classes,
            images=options.images,
            labels=options.labels,
            framework=options.framework,
            masks=options.masks,
        )
        found = facts.annotations
        if found is not None and not (found.images or found.annotations or found.categories):
            ended_early = any(what.startswith('is not COCO JSON') for what in found.unreadable)
            damaged = any(not what.startswith(('has no', 'is not COCO JSON')) for what in found.unreadable)
            looks = '' if damaged else words_of_json(target, ended_early)
            if looks:
                raise ValueError(f'nothing was read. {looks}')
        return facts

    return Plan([AnnotationSource(target, read)], ConfigFacts())


def coco_folder_plan(target: str, options: ScanOptions, copies: Mapping[str, str]) -> Plan:
    """Plan the scan of the COCO files of a folder.

    Raises:
        CannotScan: No file belongs to a requested split.
    """
    from mmguard.formats.coco.file import coco_files

    plan = Plan([], ConfigFacts())
    for name, file, images in coco_files(target):
        if not is_left_out(os.path.dirname(name), options):
            here = replace(options, images=options.images or images or None)
            (source,) = coco_plan(copies.get(file, file), here).sources
            source.name = name
            source.notes += [f'images: {images}'] if images and not options.images else []
            plan.sources.append(source)
    if not plan.sources:
        raise CannotScan(f'{target} has no COCO file of {", ".join(options.splits)}')
    return plan


def detr_plan(target: str, options: ScanOptions, copies: Mapping[str, str]) -> Plan:
    """Plan the JSON files named by a YAML of RT-DETR, D-FINE or DEIM, with the labels that it makes of them."""
    said = read_detr_yaml(target)
    options = replace(
        options,
        num_classes=options.num_classes or said.num_classes,
        framework=options.framework or 'rt-detr',
        labels=options.labels or (COCO if said.remaps else IDS),
    )
    plan = Plan([], ConfigFacts())
    for split, file, images in said.files:
        if split in options.splits:
            here = replace(options, images=options.images or (images if os.path.isdir(images) else None))
            (source,) = coco_plan(copies.get(file, file), here).sources
            plan.sources.append(replace(source, name=split) if isinstance(source, AnnotationSource) else source)
    if not plan.sources:
        raise CannotScan(f'{target} names no ann_file at {" or ".join(f"{s}_dataloader" for s in options.splits)}')
    return plan


def map_plan(target: str, options: ScanOptions) -> Plan:
    notes = []
    if options.images is None and FILES.is_folder(target):
        folders = label_and_image_folders(target)
        if folders is not None:
            target = folders[0]
            options = replace(options, images=folders[1])
            notes.append(f'labels: {folders[0]}, images: {folders[1]}')
        elif not is_url(target) and all(os.path.isdir(os.path.join(target, name)) for name in _MASKS):
            target = os.path.join(target, _MASKS[0])  # SegmentationObject numbers the objects
            notes.append(f'labels: {target}')
    try:
        source = FolderSource(target, settings_of(options), options.images, options.suffix)
        instead = source.found_instead()
    except OSError as error:
        raise CannotScan(str(error)) from error
    if instead is not None:
        raise CannotScan(f'{target}: nothing was read, it has no label map. {words_of_files(instead, source.suffix)}')
    _import_pillow(target)
    source.notes += notes
    if not is_url(target):
        source.declared = read_labelmap(target)
    if options.num_classes is None:
        source.notes.append('no --num-classes: every value counts as a class; with it, invalid ones are found')
    return Plan([source], _facts_of(options))


def _import_pillow(target: str) -> None:
    """Import pillow before processes are forked, so that they need not import it again."""
    try:
        import PIL.Image  # noqa: F401
    except ImportError as error:
        raise CannotScan(
            f'{target}: label maps are read with pillow, which does not import ({error}): pip install pillow. COCO, '
            f'LVIS and VOC annotations are read without it'
        ) from error


def _facts_of(options: ScanOptions) -> ConfigFacts:
    facts = ConfigFacts(framework='mmseg', label_map=label_map_of(dict(options.label_map)))
    if options.reduce_zero_label:
        facts.reduce_zero_label['--reduce-zero-label'] = True
    return facts


def voc_plan(target: str, options: ScanOptions, copies: Mapping[str, str]) -> Plan:
    from mmguard.formats.voc.read import scan_voc

    read = partial(scan_voc, target, options.num_classes, options.classes)
    return Plan([AnnotationSource(target, read)], ConfigFacts())


def labelme_plan(target: str, options: ScanOptions, copies: Mapping[str, str]) -> Plan:
    from mmguard.formats.labelme.read import classes_beside, scan_labelme

    # The images, and a class list above, stay with the original if a copy is read.
    home = next((original for original, copy in copies.items() if copy == target), target)
    path, names = ('', list(options.classes)) if options.classes else classes_beside(home)
    read = partial(scan_labelme, target, options.num_classes, names or None, options.images, home)
    return Plan([AnnotationSource(target, read, [f'classes: {path}'] if path else [])], ConfigFacts())


def class_folder_plan(target: str, options: ScanOptions, copies: Mapping[str, str]) -> Plan:
    from mmguard.formats.folders.read import find_box_file, scan_class_folder, splits_of_classes

    folders = splits_of_classes(target)
    boxes = next(filter(None, map(find_box_file, folders.values())), '')
    if boxes:
        raise CannotScan(
            f'{target}: {boxes} holds boxes of an image, so the folders are not the classes of images. Of YOLO, name '
            f'the data.yaml: ultralytics looks for label files next to the images, or where a folder is called '
            f'images, in labels/ instead; a row is the number of the class and 4 fractions, `0 0.5 0.5 0.1 0.1`'
        )
    train = next(iter(folders.values()), '')
    plan = Plan([], ConfigFacts(framework='mmpretrain'))
    for split, folder in folders.items():
        if not is_left_out(split, options):
            read = partial(scan_class_folder, folder, options.num_classes, options.classes, train)
            plan.sources.append(AnnotationSource(split or target, read, [_BY_FOLDER]))
    return _checked(plan, target, options)


def yolo_plan(target: str, options: ScanOptions, copies: Mapping[str, str]) -> Plan:
    from mmguard.formats.yolo.read import yolo_sets

    plan = Plan([], ConfigFacts())
    for found in yolo_sets(target, options.splits, options.images):
        absent = [place for place in found.places or () if not FILES.exists(place)]
        if absent and found.name != 'test':  # the test images of a challenge may be missing
            plan.failed.append(f'{found.name}: {absent[0]} does not exist, which {found.declared.file} names')
        if not absent:
            read = partial(found.read, options.num_classes)
            plan.sources.append(AnnotationSource(found.name, read, found.notes, spread=True))
    return _checked(plan, target, options)


def _checked(plan: Plan, target: str, options: ScanOptions) -> Plan:
    if not plan.sources:
        raise CannotScan('\n'.join(plan.failed) or f'{target} has no labels of {", ".join(options.splits)}')
    return plan
