"""Plan of a correction: the files of a target, and the function for each."""

from __future__ import annotations

import os
from pathlib import Path
from typing import FrozenSet, List

from mmguard.errors import CannotRun
from mmguard.labels.space import OTHERS, LabelRule
from mmguard.tools.scan import target as formats
from mmguard.tools.scan.corrections.options import (
    CannotCorrect,
    FixOptions,
    LabelFiles,
    ending_of,
    keep_file,
    names_below,
)
from mmguard.tools.scan.sources.folder import label_files
from mmguard.tools.scan.sources.folders import is_image_name
from mmguard.tools.scan.sources.other_files import words_of_program
from mmguard.tools.storage.urls import below

#: Of a VOC data set: nothing in it is a label.
IMAGES = 'JPEGImages'


def files_of(target: str, options: FixOptions) -> LabelFiles:
    """Return the label files of a target that are corrected."""
    from mmguard.tools.scan.corrections.labelme import files_of_labelme
    from mmguard.tools.scan.corrections.yolo import files_of_yolo

    if not os.path.exists(target):
        raise CannotCorrect(f'{target} does not exist: name a folder of label maps, a COCO JSON or a VOC folder')
    try:
        found = formats.format_of(target, options.suffix)
    except CannotRun as error:
        raise CannotCorrect(str(error)) from error
    if found == formats.OTHER_PROGRAM:
        raise CannotCorrect(f'{target}: nothing is corrected, {words_of_program(target)}')
    if found == formats.YOLO:
        return files_of_yolo(target, options)
    if found == formats.LABELME:
        return files_of_labelme(target, options)
    if os.path.isfile(target):
        return _files_of_coco(target, options)
    names = sorted(names_below(target))
    has_xml = any(map(_is_xml, names))
    if found == formats.VOC or (has_xml and not any(map(is_image_name, names))):
        return _files_of_voc(target, names, options)
    return _files_of_maps(target, options)


def _files_of_coco(target: str, options: FixOptions) -> LabelFiles:
    from mmguard.tools.scan.corrections.coco import correct_coco

    if not target.lower().endswith('.json'):
        raise CannotCorrect(f'{target}: a single file must be a COCO or LVIS .json; of label maps, name the folder')
    if OTHERS in options.label_map:
        raise CannotCorrect(
            '--label-map: * means all other values, of label maps only; for a JSON name every category id'
        )
    return LabelFiles([(target, os.path.basename(target))], lambda data, name: correct_coco(data, options))


def _files_of_voc(target: str, names: List[str], options: FixOptions) -> LabelFiles:
    from mmguard.tools.scan.corrections.voc import correct_voc

    if options.label_map:
        raise CannotCorrect('--label-map maps numbers; VOC has names: name the valid ones with --classes')
    images = _images_beside(names)
    lists = [name for name in names if 'ImageSets' in Path(name).parts]
    return LabelFiles(
        [(os.path.join(target, name), name) for name in (*filter(_is_xml, names), *lists, *sorted(images))],
        lambda data, name: correct_voc(data, options) if _is_xml(name) else keep_file(data, name),
        images,
    )


def _files_of_maps(target: str, options: FixOptions) -> LabelFiles:
    from mmguard.tools.scan.corrections.maps import correct_map

    maps = sorted(below(path, target) for path in label_files(target, options.suffix))
    if not maps:
        if options.suffix:
            raise CannotCorrect(f'{target}: no label map has a name that ends with {options.suffix} (--suffix)')
        raise CannotCorrect(f'{target} holds no labels that fix corrects: name their folder, or a COCO .json itself')
    import PIL.Image  # noqa: F401  without it no map is written at all

    if options.num_classes is None:
        raise CannotCorrect('label maps do not say how many classes there are: add --num-classes N')
    try:
        LabelRule(options.num_classes or 1, options.ignore_index, options.on_invalid, options.label_map)
    except (TypeError, ValueError) as error:
        raise CannotCorrect(str(error)) from error
    return LabelFiles(
        [(os.path.join(target, name), name) for name in maps],
        lambda data, name: correct_map(data, ending_of(name), options),
    )


def _is_xml(name: str) -> bool:
    return name.lower().endswith('.xml')


def _images_beside(names: List[str]) -> FrozenSet[str]:
    """Return the images of a VOC folder: those in JPEGImages, and those with the name of an XML file."""
    annotated = {os.path.splitext(name)[0] for name in names if _is_xml(name)}
    return frozenset(
        name
        for name in names
        if not _is_xml(name)
        and (IMAGES in Path(name).parts or (is_image_name(name) and os.path.splitext(name)[0] in annotated))
    )
