"""The annotation files of a folder or file, except COCO."""

from __future__ import annotations

from functools import partial
from typing import Mapping

from mmguard.findings.facts import ConfigFacts
from mmguard.tools.scan.annotations.shape_target import ShapeTarget
from mmguard.tools.scan.options import ScanOptions
from mmguard.tools.scan.plans.plan import AnnotationSource, CannotScan, Plan, is_left_out
from mmguard.tools.storage.files import FILES

_OF_MAPS = (
    'polygons of Cityscapes: training reads the *_labelTrainIds.png that are drawn of them (mmseg: '
    '`python tools/dataset_converters/cityscapes.py data/cityscapes`)'
)
_HEADERS = (
    'labels of DOTA: header lines (imagesource:, gsd:) and blank ones are passed over, as by img_split.py of mmrotate; '
    'its DOTADataset stops at them'
)
_BY_FOLDER = (
    'the folders are the classes: a label is the place among their sorted names (CustomDataset without ann_file of '
    'mmpretrain, ImageFolder of torchvision)'
)


def voc_plan(target: str, options: ScanOptions, copies: Mapping[str, str]) -> Plan:
    from mmguard.tools.scan.annotations import scan_voc

    read = partial(scan_voc, target, options.num_classes, options.classes)
    return Plan([AnnotationSource(target, read)], ConfigFacts())


def cvat_plan(target: str, options: ScanOptions, copies: Mapping[str, str]) -> Plan:
    from mmguard.tools.scan.annotations.cvat import scan_cvat

    read = partial(scan_cvat, _asked(target, options, copies))
    return Plan([AnnotationSource(target, read)], ConfigFacts())


def oriented_plan(target: str, options: ScanOptions, copies: Mapping[str, str]) -> Plan:
    from mmguard.tools.scan.annotations.oriented.labels import DOTA, oriented_format
    from mmguard.tools.scan.annotations.oriented.scan import scan_oriented

    written = oriented_format(target)
    read = partial(scan_oriented, _asked(target, options, copies), written)
    return Plan([AnnotationSource(target, read, [_HEADERS] if written == DOTA else [])], ConfigFacts())


def cityscapes_plan(target: str, options: ScanOptions, copies: Mapping[str, str]) -> Plan:
    from mmguard.tools.scan.annotations.cityscapes import scan_cityscapes

    read = partial(scan_cityscapes, _asked(target, options, copies))
    return Plan([AnnotationSource(target, read, [_OF_MAPS])], ConfigFacts())


def labelme_plan(target: str, options: ScanOptions, copies: Mapping[str, str]) -> Plan:
    from mmguard.tools.scan.annotations.labelme import classes_beside, scan_labelme

    asked = _asked(target, options, copies)
    path, names = ('', list(options.classes)) if options.classes else classes_beside(asked.home or target)
    read = partial(scan_labelme, asked._replace(class_names=names or None))
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


def _asked(target: str, options: ScanOptions, copies: Mapping[str, str]) -> ShapeTarget:
    return ShapeTarget(target, options.num_classes, options.classes, options.images, _home(target, copies))


def _home(target: str, copies: Mapping[str, str]) -> str:
    """A copy may stand elsewhere; the images, and a class list above, are still where they were."""
    return next((original for original, copy in copies.items() if copy == target), target)
