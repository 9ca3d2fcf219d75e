"""Comparison of segments_info in COCO panoptic files with the ids in their PNGs; an id is R + 256 G + 65536 B."""

from __future__ import annotations

import importlib.util
import io
import os
from typing import Any, Dict, Optional

import numpy as np

from mmguard.facts.labels import CocoFacts
from mmguard.files.containment import find_inside
from mmguard.files.images import MOST_DECODED, open_image
from mmguard.files.regular import read_regular
from mmguard.formats.coco.records import MISSING_ID, CocoFile
from mmguard.formats.faults import Faults
from mmguard.formats.files import LOOKED_AT, find_missing_files
from mmguard.formats.table import EXAMPLES, NO_NUMBER
from mmguard.text import shorten

#: Faults of segments, which rule MG395 reports.
NO_ENTRY_FAULT = 'a panoptic PNG holds ids without an entry in segments_info'
EMPTY_SEGMENT_FAULT = 'a segment has no pixel in its PNG'
WRONG_AREA_FAULT = 'the area of a segment is not the number of its pixels'
PNG_SIZE_FAULT = 'a panoptic PNG differs in size from its image'
DUPLICATE_ID_FAULT = 'a segment id occurs twice in an image'
#: Id of pixels without a segment.
_VOID = 0
#: Relative tolerance for areas, which other tools compute slightly differently.
_SLACK = 0.01
_LARGEST = 1 << 24
#: End of a PNG file.
_END = b'\0\0\0\0IEND\xaeB`\x82'


def find_png_folder(path: str) -> str:
    """Return the folder of PNGs that is named like a panoptic JSON, or '' if the folder does not exist."""
    folder = os.path.splitext(path)[0]
    return folder if os.path.isdir(folder) else ''


def describe_segments(
    coco: CocoFile, folder: str, everything: bool, found: CocoFacts, faults: Faults, source: str
) -> None:
    """Check a COCO panoptic file: add segments that do not fit a PNG to ``found``, all other faults to ``faults``.

    If ``everything`` is false, only a sample of the PNGs is opened.
    """
    images = []
    for number, record in coco.panoptic.items():
        where = f'{source}: annotations[{number}]'
        if not record.file_name or '\0' in record.file_name:
            faults.add('a panoptic annotation has no file_name of a PNG', where)
            continue
        images.append(record)
        for segment in record.segments_info or ():
            if not _is_segment(segment):
                what = 'the id of a segment is not an integer between 1 and 16777215'
                faults.add(what, f'{where}: {shorten(None if segment.id == MISSING_ID else segment.id)}')
    count, first = find_missing_files(folder, [one.file_name for one in images], faults)
    for name in first:
        faults.add(
            'the PNG of a panoptic image is missing', os.path.join(os.path.basename(os.path.normpath(folder)), name)
        )
    faults.count('the PNG of a panoptic image is missing', count - len(first))
    sizes = dict(zip(coco.images.id, coco.images.sizes))
    names = dict(zip(coco.images.id, coco.images.name))
    for one in images:
        name = names.get(coco.ids.find_code(one.image_id), '').replace('jpg', 'png')  # same as mmdet
        if name and name != one.file_name:
            what = 'file_name of an annotation is not that of the PNG that mmdet opens, which is named like the image'
            faults.add(what, f'{source}: {shorten(one.file_name)}, {shorten(name)}')
    # Annotations are scanned without pillow too.
    if importlib.util.find_spec('PIL') is not None:
        most = len(images) if everything else min(LOOKED_AT, len(images))
        for place in np.unique(np.linspace(0, len(images) - 1, most).astype(int)).tolist():
            size = sizes.get(coco.ids.find_code(images[place].image_id))
            _compare(images[place], folder, size, found, faults)


def _is_segment(segment: Any) -> bool:
    return type(segment.id) is int and 0 < segment.id < _LARGEST


def _compare(annotation: Any, folder: str, size: Optional[np.ndarray], found: CocoFacts, faults: Faults) -> None:
    path = find_inside(folder, annotation.file_name)
    if not os.path.isfile(path):
        return
    try:
        ids = _read_ids(path)
    except _NoColorError as error:
        faults.add('a panoptic PNG does not have three channels of 8 bits', f'{annotation.file_name}: {error}')
        return
    except Exception as error:  # decoders raise many types for a damaged file
        faults.add(f'cannot be read: {type(error).__name__}', f'{annotation.file_name}: {str(error)[:120]}')
        return

    def add_fault(fault: str, place: str) -> None:
        found.mask_faults[fault] = found.mask_faults.get(fault, 0) + 1
        examples = found.mask_examples.setdefault(fault, [])
        if len(examples) < EXAMPLES:
            examples.append(f'{annotation.file_name}: {place}')

    if size is not None and NO_NUMBER not in size and ids.shape != tuple(size):
        add_fault(PNG_SIZE_FAULT, f'{ids.shape[1]} x {ids.shape[0]}, {size[1]:g} x {size[0]:g} in the JSON')
    values, counts = np.unique(ids, return_counts=True)
    pixels = dict(zip(values.tolist(), counts.tolist()))
    listed: Dict[int, float] = {}
    for segment in filter(_is_segment, annotation.segments_info or ()):
        if segment.id in listed:
            add_fault(DUPLICATE_ID_FAULT, f'id {segment.id}')
        listed[segment.id] = segment.area
    for number, area in listed.items():
        there = pixels.get(number, 0)
        if not there:
            add_fault(EMPTY_SEGMENT_FAULT, f'id {number}')
        elif area != NO_NUMBER and abs(area - there) > max(1, _SLACK * there):
            add_fault(WRONG_AREA_FAULT, f'id {number}, {there:,} pixels, area {area:g}')
    for number, there in pixels.items():
        if number != _VOID and number not in listed:
            add_fault(NO_ENTRY_FAULT, f'id {number}, {there:,} pixels')


class _NoColorError(Exception):
    pass


def _read_ids(path: str) -> np.ndarray:
    content = read_regular(path, MOST_DECODED)
    if _END not in content:  # pillow accepts a file without its end and checksums, OpenCV does not
        raise OSError('truncated: it has no end')
    with open_image(io.BytesIO(content), formats=('PNG',)) as opened:
        opened.verify()
    with open_image(io.BytesIO(content), decodes=True, formats=('PNG',)) as opened:
        if opened.mode not in ('RGB', 'RGBA'):
            raise _NoColorError(opened.mode)
        pixels = np.asarray(opened)
    return pixels[..., 2].astype(np.int32) << 16 | pixels[..., 1].astype(np.int32) << 8 | pixels[..., 0]
