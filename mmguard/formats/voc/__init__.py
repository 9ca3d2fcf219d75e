"""Pascal VOC: an XML file per image."""

from __future__ import annotations

import os
from pathlib import Path
from typing import FrozenSet, List, Optional

from mmguard.findings.facts import LabelFacts
from mmguard.formats.correction import CannotCorrect, Corrected, LabelFiles, keep_file, names_below
from mmguard.formats.files import is_image_name
from mmguard.formats.format import Format
from mmguard.formats.options import FixOptions, ScanOptions

#: Folder of the images of a VOC data set; it has no labels.
_IMAGES = 'JPEGImages'


class Voc(Format):
    """A folder of XML files, with or without Annotations, ImageSets and JPEGImages."""

    name = 'voc'
    beside_suffix = True

    def detect(self, target: str) -> bool:
        from mmguard.formats.voc.read import is_voc

        return is_voc(target)

    def read(self, target: str, options: ScanOptions) -> LabelFacts:
        from mmguard.formats.voc.read import scan_voc

        return scan_voc(target, options.num_classes, options.classes)

    def correct(self, data: bytes, options: FixOptions) -> Corrected:
        from mmguard.formats.voc.write import correct_voc

        return correct_voc(data, options)

    def files(self, target: str, options: FixOptions) -> LabelFiles:
        if options.label_map:
            raise CannotCorrect('--label-map maps numbers; VOC has names: name the valid ones with --classes')
        names = sorted(names_below(target))
        images = _images_of(names)
        lists = [name for name in names if 'ImageSets' in Path(name).parts]
        return LabelFiles(
            [(os.path.join(target, name), name) for name in (*filter(_is_xml, names), *lists, *sorted(images))],
            lambda data, name: self.correct(data, options) if _is_xml(name) else keep_file(data, name),
            images,
            _read_one,
        )


def _read_one(path: str) -> Optional[LabelFacts]:
    from mmguard.formats.voc.read import VocImage, scan_voc_files

    if not _is_xml(path):
        return None
    folder, name = os.path.split(path)
    return scan_voc_files(folder, [VocImage('', name)], images=False)


def _is_xml(name: str) -> bool:
    return name.lower().endswith('.xml')


def _images_of(names: List[str]) -> FrozenSet[str]:
    """Return the images of a VOC folder: those in JPEGImages, and those with the name of an XML file."""
    annotated = {os.path.splitext(name)[0] for name in names if _is_xml(name)}
    return frozenset(
        name
        for name in names
        if not _is_xml(name)
        and (_IMAGES in Path(name).parts or (is_image_name(name) and os.path.splitext(name)[0] in annotated))
    )
