"""COCO, LVIS and panoptic JSON."""

from __future__ import annotations

import os
from dataclasses import replace

from mmguard.findings.facts import AnnotationFacts, LabelFacts
from mmguard.formats.correction import CannotCorrect, Corrected, LabelFiles, NotCorrected, files_of_one
from mmguard.formats.format import CannotScan, Format, Sets
from mmguard.formats.options import FixOptions, ScanOptions, is_left_out
from mmguard.labels.space import OTHERS
from mmguard.language import Message


class Coco(Format):
    """A JSON file, or a folder with JSON files."""

    name = 'coco'
    also = ('lvis',)
    endings = ('.json',)
    numbered = True
    right_boxes = 'sizes'

    def detect(self, target: str) -> bool:
        from mmguard.formats.coco.file import coco_files

        return not os.path.isdir(target) or bool(coco_files(target))

    def sets(self, target: str, options: ScanOptions) -> Sets:
        if not os.path.isdir(target):
            return super().sets(target, options)
        from mmguard.formats.coco.file import coco_files

        sets = Sets([])
        for name, file, images in coco_files(target):
            if not is_left_out(os.path.dirname(name), options):
                here = replace(options, images=options.images or images or None)
                (source,) = self.sets(file, here).sources
                source.name = name
                source.notes += [Message('images: {images}', images=images)] if images and not options.images else []
                sets.sources.append(source)
        if not sets.sources:
            raise CannotScan(f'{target} has no COCO file of {", ".join(options.splits)}')
        return sets

    def read(self, target: str, options: ScanOptions) -> LabelFacts:
        from mmguard.formats.coco.read import scan_coco
        from mmguard.formats.other_files import describe_json

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
            other = [what for what in found.unreadable if 'COCO JSON' in what]
            damaged = any(not what.startswith('has no') and what not in other for what in found.unreadable)
            looks = '' if damaged else describe_json(target, bool(other))
            if looks:
                raise ValueError(f'nothing was read. {looks}')
        return facts

    def correct(self, data: bytes, options: FixOptions) -> Corrected:
        from mmguard.formats.coco.write import correct_coco

        return correct_coco(data, options)

    def files(self, target: str, options: FixOptions) -> LabelFiles:
        if os.path.isdir(target):
            raise CannotCorrect(f'{target} holds several COCO files: name the .json itself')
        if OTHERS in options.label_map:
            raise CannotCorrect(
                '--label-map: * (all other values) works only with label maps; for a JSON, list every category id'
            )
        return files_of_one(target, self.correct, _read_copy, options)


def _read_copy(path: str) -> LabelFacts:
    from mmguard.formats.coco.read import scan_coco

    facts = scan_coco(path)
    found = facts.annotations or AnnotationFacts()
    if found.annotations and found.images_without_target == found.images:
        raise NotCorrected(
            'not correctable here: only crowds, ignored objects and boxes thinner than a pixel would be left'
        )
    return facts
