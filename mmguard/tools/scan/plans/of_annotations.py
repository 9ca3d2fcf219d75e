"""The annotation files of a folder or file, except COCO."""

from __future__ import annotations

from functools import partial
from typing import Mapping

from mmguard.findings.facts import ConfigFacts
from mmguard.tools.scan.options import ScanOptions
from mmguard.tools.scan.plans.plan import AnnotationSource, CannotScan, Plan, is_left_out
from mmguard.tools.storage.files import FILES

_BY_FOLDER = (
    'the folders are the classes: a label is the place among their sorted names (CustomDataset without ann_file of '
    'mmpretrain, ImageFolder of torchvision)'
)


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
    from mmguard.tools.scan.annotations.class_folders import scan_class_folder, splits_of_classes

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
