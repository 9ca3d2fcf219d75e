"""YOLO labels: a label file per image, with a row per object and coordinates as fractions of the image."""

from __future__ import annotations

import os
from functools import partial

from mmguard.formats.correction import LabelFiles
from mmguard.formats.format import CannotScan, Format, LabelSet, Sets
from mmguard.formats.options import FixOptions, ScanOptions


class Yolo(Format):
    """A data.yaml, a folder of label files, a single label file, or a list of images."""

    name = 'yolo'
    endings = ('.yaml', '.yml', '.txt')
    beside_suffix = True

    def detect(self, target: str) -> bool:
        from mmguard.formats.yolo.read import is_yolo

        return is_yolo(target)

    def sets(self, target: str, options: ScanOptions) -> Sets:
        from mmguard.formats.yolo.read import yolo_sets

        sets = Sets([])
        for found in yolo_sets(target, options.splits, options.images):
            absent = [place for place in found.places or () if not os.path.exists(place)]
            if absent and found.name != 'test':  # the test images of a challenge may be missing
                sets.failed.append(f'{found.name}: {absent[0]} does not exist, which {found.declared.file} names')
            if not absent:
                read = partial(found.read, options.num_classes)
                sets.sources.append(LabelSet(found.name, read, found.notes, by_tasks=True))
        if not sets.sources:
            raise CannotScan('\n'.join(sets.failed) or f'{target} has no labels of {", ".join(options.splits)}')
        return sets

    def files(self, target: str, options: FixOptions) -> LabelFiles:
        from mmguard.formats.yolo.write import files_of_yolo

        return files_of_yolo(target, options)
