"""Labelme: a JSON file of shapes per image."""

from __future__ import annotations

from mmguard.findings.facts import LabelFacts
from mmguard.formats.correction import Corrected, LabelFiles
from mmguard.formats.format import Format, LabelSet, Sets
from mmguard.formats.options import FixOptions, ScanOptions


class Labelme(Format):
    """A folder of JSON files, or one."""

    name = 'labelme'
    endings = ('.json',)

    def detect(self, target: str) -> bool:
        from mmguard.formats.labelme.read import is_labelme

        return is_labelme(target)

    def sets(self, target: str, options: ScanOptions) -> Sets:
        from mmguard.formats.labelme.read import classes_beside

        path = '' if options.classes else classes_beside(target)[0]
        return Sets([LabelSet(target, lambda: self.read(target, options), [f'classes: {path}'] if path else [])])

    def read(self, target: str, options: ScanOptions) -> LabelFacts:
        from mmguard.formats.labelme.read import classes_beside, scan_labelme

        names = list(options.classes) if options.classes else classes_beside(target)[1]
        return scan_labelme(target, options.num_classes, names or None, options.images)

    def correct(self, data: bytes, options: FixOptions) -> Corrected:
        from mmguard.formats.labelme.write import correct_labelme

        return correct_labelme(data, options)

    def files(self, target: str, options: FixOptions) -> LabelFiles:
        from mmguard.formats.labelme.write import files_of_labelme

        return files_of_labelme(target, options)
