"""The label maps, of a folder or of one file."""

from __future__ import annotations

import os
from dataclasses import replace

from mmguard.findings.facts import ConfigFacts
from mmguard.labels.spaces.space import label_map_of
from mmguard.tools.scan.options import ScanOptions
from mmguard.tools.scan.plans.plan import CannotScan, Plan
from mmguard.tools.scan.sources.folder import FolderSource
from mmguard.tools.scan.sources.labelmap import read_labelmap
from mmguard.tools.scan.sources.layout import label_and_image_folders
from mmguard.tools.scan.sources.other_files import words_of as words_of_files
from mmguard.tools.storage.files import FILES
from mmguard.tools.storage.urls import is_url

#: Of VOC and its like.
_MASKS = ('SegmentationClass', 'SegmentationObject')


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
