"""COCO and LVIS files: finding them in a folder, and reading one into columns."""

from __future__ import annotations

import gc
import json
import os
import re
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Iterator, List, Match, NamedTuple, Set, Tuple

from mmguard.files.inside import find_inside
from mmguard.files.regular import open_regular
from mmguard.formats.coco.json_stream import Batch, JsonFault, Stream
from mmguard.formats.coco.records import (
    TYPES,
    TYPES_WITH_MASKS,
    AnnotationColumns,
    Ids,
    ImageColumns,
    add_plain_images,
    add_typed_images,
    annotation_columns,
    are_panoptic,
    is_writable,
    plain_columns,
    segments_of,
    untyped,
)
from mmguard.formats.faults import Faults
from mmguard.formats.listings import first_entries, is_gray, is_image_name
from mmguard.storage.files import FILES
from mmguard.text import shorten

SPLITS = ('train', 'val', 'valid', 'validation', 'test')
#: Prefixes of files with whole images, with captions, or without annotations.
_OTHERS = ('image_info', 'captions', 'labels')
#: Number of names of a folder to look at, number of JSON files to open, and bytes of each that identify its format.
_NAMES, _OPENED, _HEAD = 5000, 20, 1 << 16
#: Number of images to look for when locating their folder.
_LOOKED_FOR = 20
_KEYS = re.compile(rb'"(images|annotations|categories)"\s*:\s*\[')
_FILE = re.compile(rb'"file_name"\s*:\s*("(?:[^"\\]|\\.)*")')


class FoundFile(NamedTuple):
    """A COCO file in a folder."""

    name: str  #: Path relative to the folder.
    path: str  #: Path of the file.
    images: str  #: Folder of its images; empty if not found.


def coco_files(root: str) -> List[FoundFile]:
    """Return the COCO files in a folder, its ``annotations``, its split folders, or its only subfolder.

    A folder that also contains label maps is skipped.
    """
    found = [file for place in ('', 'annotations', *SPLITS) for file in _files_in(root, place)]
    names = _names_in(root)
    if found or len(names) != 1:
        return found
    (only,) = names
    return [one._replace(name=os.path.join(only, one.name)) for one in coco_files(os.path.join(root, only))]


def _files_in(root: str, place: str) -> Iterator[FoundFile]:
    folder = os.path.join(root, place)
    names = _names_in(folder)
    first = next((name for name in names if is_image_name(name)), '')
    if first and is_gray(os.path.join(folder, first)):
        return
    named = [name for name in names if name.lower().endswith('.json') and not name.startswith(_OTHERS)]
    heads = {name: _head_of(os.path.join(folder, name)) for name in named[:_OPENED]}
    if not any(map(_is_coco, heads.values())):
        return
    for name, head in heads.items():
        # The format of a damaged file is unknown: include it, the scan reports the damage.
        if _is_coco(head) or head.lstrip()[:1] not in (b'{', b'['):
            path = os.path.join(folder, name)
            yield FoundFile(os.path.join(place, name), path, _images_of(root, path, head))


def _names_in(folder: str) -> List[str]:
    return sorted(entry.name for entry in first_entries(folder, _NAMES))


def _head_of(path: str) -> bytes:
    try:
        with open_regular(path) as file:
            return file.read(_HEAD)
    except (OSError, ValueError):
        return b''


def _is_coco(head: bytes) -> bool:
    is_object = head.lstrip(b'\xef\xbb\xbf \t\r\n')[:1] == b'{'
    return is_object and _KEYS.search(head) is not None and b'"dm_format_version"' not in head


def _images_of(root: str, path: str, head: bytes) -> str:
    """Return the first usual folder that contains one of the first named images, else the first that contains any."""
    root = os.path.dirname(os.path.abspath(root)) if os.path.basename(root) == 'annotations' else root
    split = os.path.splitext(os.path.basename(path))[0].rpartition('_')[2]
    beside = os.path.dirname(path)
    ways = (('images', split), (split,), ('images',), (split, 'images'), ())
    places = [beside, os.path.join(beside, 'images'), *(os.path.join(root, *way) for way in ways)]
    named = list(filter(None, map(_text_of, islice(_FILE.finditer(head), _LOOKED_FOR))))
    holding = (one for one in places for image in named if os.path.isfile(find_inside(one, image)))
    usual = (one for one in places[:-1] if any(map(is_image_name, _names_in(one))))
    return next(holding, '') or next(usual, '')


def _text_of(found: Match[bytes]) -> str:
    try:
        return str(json.loads(found.group(1).decode('utf-8', 'replace')))
    except ValueError:
        return ''


KEYS = ('images', 'annotations', 'categories')


@dataclass
class CocoFile:
    """Content of a COCO file."""

    images: ImageColumns = field(default_factory=lambda: ImageColumns([], [], [], []))  #: Images of the file.
    annotations: AnnotationColumns = field(default_factory=AnnotationColumns.empty)  #: Annotations of the file.
    #: Id (a code of ``ids``) and name, in the order of the file.
    categories: List[Tuple[int, str]] = field(default_factory=list)
    ids: Ids = field(default_factory=Ids)  #: Codes of ids that are not integers.
    panoptic: bool = False  #: True if the annotations are COCO panoptic segments, whose ids may repeat.
    without_isthing: int = 0  #: Number of categories without ``isthing``, which is required in panoptic files.


def read_coco(path: str, source: str, faults: Faults, by_url: bool = False, masks: bool = False) -> CocoFile:
    """Read a file into columns without raising; everything that cannot be read is recorded in ``faults``."""
    coco = CocoFile()
    parts: List[AnnotationColumns] = []
    seen: Set[str] = set()
    try:
        with FILES.open(path) as file, _without_collection():
            types = {**dict.fromkeys(KEYS, Any), **(TYPES_WITH_MASKS if masks else TYPES)}
            for batch in Stream(file, types, lambda what, at: _add(faults, what, source, at)):
                if batch.first == 0:
                    _begin(batch.key, seen, coco, parts, faults, source)
                _take(batch, coco, parts, faults, source, by_url, masks)
    except JsonFault as fault:
        _add(faults, fault.what, source, fault.at)
    except (OSError, ValueError) as error:  # ValueError: a path with a null byte
        faults.add(f'cannot be read: {getattr(error, "strerror", None) or error}', source)
    except MemoryError:
        faults.add('does not fit into memory', source)
    else:
        for key in KEYS:
            if key not in seen:
                faults.add(f'has no "{key}"', source)
    coco.annotations = AnnotationColumns.joined(parts)
    return coco


@contextmanager
def _without_collection() -> Iterator[None]:
    """Disable garbage collection: records have no cycles, and tracing torch's objects takes longer than decoding."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def _add(faults: Faults, what: str, source: str, at: str) -> None:
    faults.add(what, f'{source}: {at}')


def _begin(
    key: str, seen: Set[str], coco: CocoFile, parts: List[AnnotationColumns], faults: Faults, source: str
) -> None:
    if key in seen:
        faults.add(f'has "{key}" twice: readers take the last', source)
        if key == 'annotations':
            parts.clear()
        elif key == 'images':
            coco.images = ImageColumns([], [], [], [])
        else:
            coco.categories.clear()
            coco.without_isthing = 0
    seen.add(key)


def _take(
    batch: Batch,
    coco: CocoFile,
    parts: List[AnnotationColumns],
    faults: Faults,
    source: str,
    by_url: bool,
    masks: bool,
) -> None:
    if batch.key == 'images' and batch.typed:
        add_typed_images(coco.images, batch.records, coco.ids, by_url)
    elif batch.key == 'images':
        add_plain_images(coco.images, batch.records, batch.first, coco.ids, faults, source, by_url)
    elif batch.key == 'categories':
        _add_categories(coco, batch, faults, source)
    elif batch.typed:
        panoptic = are_panoptic(batch.records)
        coco.panoptic = coco.panoptic or panoptic
        try:
            records = segments_of(batch.records) if panoptic else batch.records
            parts.append(annotation_columns(records, masks and not panoptic))
        except OverflowError:
            parts.append(plain_columns(untyped(batch.records), batch.first, coco.ids, faults, source, masks))
    else:
        coco.panoptic = coco.panoptic or any('segments_info' in r for r in batch.records if isinstance(r, dict))
        parts.append(plain_columns(batch.records, batch.first, coco.ids, faults, source, masks))


def _add_categories(coco: CocoFile, batch: Batch, faults: Faults, source: str) -> None:
    for number, record in enumerate(batch.records, batch.first):
        where = f'{source}: categories[{number}]'
        if not isinstance(record, dict):
            faults.add('a category is not an object', f'{where} is {shorten(record)}')
            continue
        name = record.get('name')
        if not isinstance(name, str):
            faults.add('a category has no name', f'{where}: {shorten(record)}')
        elif not is_writable(name):
            faults.add('the name of a category holds half of a character', f'{where}: {shorten(name)}')
        coco.without_isthing += 'isthing' not in record
        # A category without an id cannot be referenced by an annotation.
        coco.categories.append((coco.ids.code(record.get('id')), name if isinstance(name, str) else str(name)))
