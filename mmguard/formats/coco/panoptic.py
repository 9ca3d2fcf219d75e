"""COCO panoptic: comparison of segments_info with the ids in the PNGs, which are R + 256 G + 65536 B."""

from __future__ import annotations

import importlib.util
import io
import math
import os
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

import numpy as np

from mmguard.files.inside import find_inside
from mmguard.files.regular import open_regular
from mmguard.findings.facts import AnnotationFacts
from mmguard.formats.coco.json_stream import JsonFault, Stream
from mmguard.formats.disk import LOOKED_AT, missing_files
from mmguard.formats.faults import Faults
from mmguard.formats.maps.forms import can_hold
from mmguard.formats.table import EXAMPLES
from mmguard.storage.files import FILES
from mmguard.text import shorten

#: Faults of segments; keys of rule MG179.
NO_ENTRY = 'a panoptic PNG holds ids without an entry in segments_info'
NO_PIXEL = 'a segment has no pixel in its PNG'
OTHER_AREA = 'the area of a segment is not the number of its pixels'
OTHER_SIZE = 'a panoptic PNG has another size than its image'
TWICE = 'a segment id stands twice in an image'
#: Id of pixels without a segment.
_VOID = 0
#: Relative tolerance for areas, which other tools compute slightly differently.
_SLACK = 0.01
_LARGEST = 1 << 24
#: Areas are clamped to this: larger ones are just as wrong.
_FAR = 1e15
#: End of a PNG file.
_END = b'\0\0\0\0IEND\xaeB`\x82'


class _Image(NamedTuple):
    """An annotation: its PNG, the id of its image, and id and area of each segment (NaN if missing)."""

    png: str
    image_id: Any
    segments: List[Tuple[int, float]]


def folder_beside(path: str) -> str:
    """Return COCO's default folder of the PNGs of a file, named like the file; empty if it does not exist."""
    folder = os.path.splitext(path)[0]
    return folder if os.path.isdir(folder) else ''


def describe_segments(
    path: str, folder: str, everything: bool, annotations: AnnotationFacts, faults: Faults, source: str
) -> None:
    """Add the faults of the PNGs of a file to the facts without raising; check all with ``everything``, else some."""
    images, sizes, names = _read(path, faults, source)
    count, first = missing_files(folder, [one.png for one in images], faults)
    for name in first:
        faults.add(
            'the PNG of a panoptic image is not there', os.path.join(os.path.basename(os.path.normpath(folder)), name)
        )
    faults.count('the PNG of a panoptic image is not there', count - len(first))
    most = len(images) if everything else min(LOOKED_AT, len(images))
    if importlib.util.find_spec('PIL') is None:  # annotations are scanned without pillow too
        most = 0
    for one in images:
        wanted = names.get(_key(one.image_id))
        if wanted is not None and wanted != one.png:
            what = 'file_name of an annotation is not that of its image as .png, which mmdet opens'
            faults.add(what, f'{source}: {shorten(one.png)}, {shorten(wanted)}')
    for place in np.unique(np.linspace(0, len(images) - 1, most).astype(int)).tolist() if most else []:
        _compare(images[place], folder, sizes.get(_key(images[place].image_id)), annotations, faults)


def _read(path: str, faults: Faults, source: str) -> Tuple[List[_Image], Dict[Any, Tuple[int, int]], Dict[Any, str]]:
    """Return the annotations, and the size and PNG of each image by its id."""
    images: List[_Image] = []
    sizes: Dict[Any, Tuple[int, int]] = {}
    names: Dict[Any, str] = {}
    try:
        with FILES.open(path) as file:
            for batch in Stream(file, {'images': Any, 'annotations': Any}, lambda *_: None):
                for number, record in enumerate(batch.records, batch.first):
                    if not isinstance(record, dict):
                        continue  # reported by the first reading of the file
                    if batch.key == 'annotations':
                        _add(record, images, faults, f'{source}: annotations[{number}]')
                        continue
                    height, width, name = record.get('height'), record.get('width'), record.get('file_name')
                    if type(height) is int and type(width) is int:
                        sizes[_key(record.get('id'))] = height, width
                    if isinstance(name, str):
                        names[_key(record.get('id'))] = name.replace('jpg', 'png')  # same as mmdet
    except (JsonFault, OSError, ValueError, MemoryError):
        pass  # also reported by the first reading
    return images, sizes, names


def _key(value: Any) -> Any:
    return value if isinstance(value, (int, str)) else None


def _add(record: Dict[str, Any], images: List[_Image], faults: Faults, where: str) -> None:
    name, segments = record.get('file_name'), record.get('segments_info')
    if not isinstance(name, str) or not name or '\0' in name:
        faults.add('a panoptic annotation has no file_name of a PNG', where)
        return
    found: List[Tuple[int, float]] = []
    for segment in segments if isinstance(segments, list) else []:
        number, area = (segment.get('id'), segment.get('area')) if isinstance(segment, dict) else (None, None)
        if type(number) is int and 0 < number < _LARGEST:
            found.append((number, min(max(area, -_FAR), _FAR) if isinstance(area, (int, float)) else math.nan))
        else:
            faults.add(
                'the id of a segment is not a whole number between 1 and 16777215', f'{where}: {shorten(number)}'
            )
    images.append(_Image(name, record.get('image_id'), found))


def _compare(
    one: _Image, folder: str, size: Optional[Tuple[int, int]], annotations: AnnotationFacts, faults: Faults
) -> None:
    path = find_inside(folder, one.png)
    if not os.path.isfile(path):
        return
    try:
        ids = _ids_of(path)
    except _NoColourError as error:
        faults.add('a panoptic PNG has not three channels of 8 bits', f'{one.png}: {error}')
        return
    except Exception as error:  # decoders raise many types for a damaged file
        faults.add(f'cannot be read: {type(error).__name__}', f'{one.png}: {str(error)[:120]}')
        return

    def say(what: str, where: str) -> None:
        annotations.mask_faults[what] = annotations.mask_faults.get(what, 0) + 1
        examples = annotations.mask_examples.setdefault(what, [])
        if len(examples) < EXAMPLES:
            examples.append(f'{one.png}: {where}')

    if size is not None and ids.shape != size:
        say(OTHER_SIZE, f'{ids.shape[1]} x {ids.shape[0]}, {size[1]} x {size[0]} in the JSON')
    values, counts = np.unique(ids, return_counts=True)
    pixels = dict(zip(values.tolist(), counts.tolist()))
    listed: Dict[int, float] = {}
    for number, area in one.segments:
        if number in listed:
            say(TWICE, f'id {number}')
        listed[number] = area
    for number, area in listed.items():
        there = pixels.get(number, 0)
        if not there:
            say(NO_PIXEL, f'id {number}')
        elif abs(area - there) > max(1, _SLACK * there):
            say(OTHER_AREA, f'id {number}, {there:,} pixels, area {area:g}')
    for number, there in pixels.items():
        if number != _VOID and number not in listed:
            say(NO_ENTRY, f'id {number}, {there:,} pixels')


class _NoColourError(Exception):
    pass


def _ids_of(path: str) -> np.ndarray:
    from PIL import Image

    with open_regular(path) as file:
        content = file.read()
    if _END not in content:  # pillow accepts a file without end and checksums, OpenCV stops there
        raise OSError('truncated: it has no end')
    with Image.open(io.BytesIO(content), formats=['PNG']) as opened:
        opened.verify()
    with Image.open(io.BytesIO(content), formats=['PNG']) as opened:
        if opened.mode not in ('RGB', 'RGBA'):
            raise _NoColourError(opened.mode)
        if not can_hold(len(content), opened.width * opened.height):
            raise OSError(f'truncated: too few bytes for {opened.width} x {opened.height} pixels')
        pixels = np.asarray(opened)
    return pixels[..., 0] + 256 * pixels[..., 1].astype(np.int32) + 65536 * pixels[..., 2].astype(np.int32)
