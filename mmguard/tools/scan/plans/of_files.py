"""Plans of what is named itself: label maps, annotation files, or a folder of them."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from typing import Mapping

from mmguard.config.detr_yaml import read_detr_yaml
from mmguard.findings.facts import ConfigFacts, LabelFacts
from mmguard.labels.numbering import COCO, IDS
from mmguard.labels.spaces.space import label_map_of
from mmguard.tools.scan.plans.plan import AnnotationSource, CannotScan, Plan, is_left_out
from mmguard.tools.scan.settings import ScanOptions
from mmguard.tools.scan.sources.folder import FolderSource
from mmguard.tools.scan.sources.folders import label_and_image_folders, read_labelmap
from mmguard.tools.scan.sources.other_files import words_of as words_of_files
from mmguard.tools.scan.sources.other_files import words_of_json
from mmguard.tools.storage.files import FILES
from mmguard.tools.storage.urls import is_url

#: Of VOC and its like.
_MASKS = ('SegmentationClass', 'SegmentationObject')
_BY_FOLDER = (
    'the folders are the classes: a label is the place among their sorted names (CustomDataset without ann_file of '
    'mmpretrain, ImageFolder of torchvision)'
)


def coco_plan(target: str, options: ScanOptions) -> Plan:
    from mmguard.tools.scan.annotations import scan_coco

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
            ended_early = any(what.startswith('is no COCO JSON') for what in found.unreadable)
            damaged = any(not what.startswith(('has no', 'is no COCO JSON')) for what in found.unreadable)
            looks = '' if damaged else words_of_json(target, ended_early)
            if looks:
                raise ValueError(f'nothing was read. {looks}')
        return facts

    return Plan([AnnotationSource(target, read)], ConfigFacts())


def coco_folder_plan(target: str, options: ScanOptions, copies: Mapping[str, str]) -> Plan:
    """The COCO files of a folder.

    Raises:
        CannotScan: They are of other splits than those that are asked for.
    """
    from mmguard.tools.scan.annotations.coco_folder import coco_files

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
    """The JSON files that a YAML of RT-DETR, D-FINE or DEIM names, with the labels that it makes of them."""
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
            target = os.path.join(target, _MASKS[0])  # not what numbers the objects
            notes.append(f'labels: {target}')
    try:
        source = FolderSource(target, options.settings(), options.images, options.suffix)
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
    """Here, because processes that are forked later need not import it again."""
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
    from mmguard.tools.scan.annotations import scan_voc

    read = partial(scan_voc, target, options.num_classes, options.classes)
    return Plan([AnnotationSource(target, read)], ConfigFacts())


def labelme_plan(target: str, options: ScanOptions, copies: Mapping[str, str]) -> Plan:
    from mmguard.tools.scan.annotations.labelme import classes_beside, scan_labelme

    # A copy may stand elsewhere; the images, and a class list above, are still where they were.
    home = next((original for original, copy in copies.items() if copy == target), target)
    path, names = ('', list(options.classes)) if options.classes else classes_beside(home)
    read = partial(scan_labelme, target, options.num_classes, names or None, options.images, home)
    return Plan([AnnotationSource(target, read, [f'classes: {path}'] if path else [])], ConfigFacts())


def class_folder_plan(target: str, options: ScanOptions, copies: Mapping[str, str]) -> Plan:
    from mmguard.tools.scan.annotations.image_labels import scan_class_folder, splits_of_classes

    folders = splits_of_classes(target)
    train = next(iter(folders.values()), '')
    plan = Plan([], ConfigFacts(framework='mmpretrain'))
    for split, folder in folders.items():
        if not is_left_out(split, options):
            read = partial(scan_class_folder, folder, options.num_classes, options.classes, train)
            plan.sources.append(AnnotationSource(split or target, read, [_BY_FOLDER]))
    return _checked(plan, target, options)


def yolo_plan(target: str, options: ScanOptions, copies: Mapping[str, str]) -> Plan:
    from mmguard.tools.scan.yolo.sets import yolo_sets

    plan = Plan([], ConfigFacts())
    for found in yolo_sets(target, options.splits, options.images):
        absent = [place for place in found.places or () if not FILES.exists(place)]
        if absent and found.name != 'test':  # of a challenge nobody has the images
            plan.failed.append(f'{found.name}: {absent[0]} does not exist, which {found.declared.file} names')
        if not absent:
            read = partial(found.read, options.num_classes)
            plan.sources.append(AnnotationSource(found.name, read, found.notes, spread=True))
    return _checked(plan, target, options)


def _checked(plan: Plan, target: str, options: ScanOptions) -> Plan:
    if not plan.sources:
        raise CannotScan('\n'.join(plan.failed) or f'{target} has no labels of {", ".join(options.splits)}')
    return plan
