"""COCO and LVIS files: searching a folder, and reading a file into columns."""

from __future__ import annotations

import gc
import json
import os
import re
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Dict, Iterable, Iterator, List, Match, NamedTuple, Set, Tuple

from mmguard.files.inside import find_inside
from mmguard.files.regular import open_regular
from mmguard.formats.coco.json_stream import Batch, JsonFault, Stream
from mmguard.formats.coco.records import (
    TYPES,
    TYPES_WITH_MASKS,
    AnnotationColumns,
    Ids,
    ImageColumns,
    add_images,
    annotation_columns,
    are_panoptic,
    is_writable,
    read_annotations,
    read_images,
    segments_of,
)
from mmguard.formats.faults import Faults
from mmguard.formats.files import FILES, is_gray, is_image_name, names_in
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
    names = names_in(root, _NAMES)
    if found or len(names) != 1:
        return found
    (only,) = names
    return [one._replace(name=os.path.join(only, one.name)) for one in coco_files(os.path.join(root, only))]


def _files_in(root: str, place: str) -> Iterator[FoundFile]:
    folder = os.path.join(root, place)
    names = names_in(folder, _NAMES)
    first = next((name for name in names if is_image_name(name)), '')
    if first and is_gray(os.path.join(folder, first)):
        return
    named = [name for name in names if name.lower().endswith('.json') and not name.startswith(_OTHERS)]
    heads = {name: _read_head(os.path.join(folder, name)) for name in named[:_OPENED]}
    if not any(map(_is_coco, heads.values())):
        return
    for name, head in heads.items():
        # The format of a damaged file is unknown: include it, the scan reports the damage.
        if _is_coco(head) or head.lstrip()[:1] not in (b'{', b'['):
            path = os.path.join(folder, name)
            yield FoundFile(os.path.join(place, name), path, _images_of(root, path, head))


def _read_head(path: str) -> bytes:
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
    named = list(filter(None, map(_read_text, islice(_FILE.finditer(head), _LOOKED_FOR))))
    holding = (one for one in places for image in named if os.path.isfile(find_inside(one, image)))
    usual = (one for one in places[:-1] if any(map(is_image_name, names_in(one, _NAMES))))
    return next(holding, '') or next(usual, '')


def _read_text(found: Match[bytes]) -> str:
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
    #: Index -> annotation of COCO panoptic, whose segments are ``annotations``; their ids may repeat.
    panoptic: Dict[int, Any] = field(default_factory=dict)
    ungrouped: int = 0  #: Number of categories whose supercategory is "none".
    without_isthing: int = 0  #: Number of categories without ``isthing``, which is required in panoptic files.


def read_coco(path: str, source: str, faults: Faults, by_url: bool = False, masks: bool = False) -> CocoFile:
    """Read a file into columns without raising; unreadable parts are recorded in ``faults``."""
    reader = _Reader(source, faults, by_url, masks)
    try:
        with FILES.open(path) as file, _without_collection():
            types = {**dict.fromkeys(KEYS, Any), **(TYPES_WITH_MASKS if masks else TYPES)}
            for batch in Stream(file, types, lambda what, at: faults.add(what, f'{source}: {at}')):
                reader.add(batch)
    except JsonFault as fault:
        faults.add(fault.what, f'{source}: {fault.at}')
    except (OSError, ValueError) as error:  # ValueError: a path with a null byte
        faults.add(f'cannot be read: {getattr(error, "strerror", None) or error}', source)
    except MemoryError:
        faults.add('does not fit into memory', source)
    else:
        for key in KEYS:
            if key not in reader.seen:
                faults.add(f'has no "{key}"', source)
    reader.coco.annotations = AnnotationColumns.join(reader.parts)
    return reader.coco


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


class _Reader:
    """Collector of the batches of a file."""

    def __init__(self, source: str, faults: Faults, by_url: bool, masks: bool) -> None:
        self.source = source
        self.faults = faults
        self.by_url = by_url
        self.masks = masks
        self.coco = CocoFile()
        self.parts: List[AnnotationColumns] = []
        self.seen: Set[str] = set()

    def add(self, batch: Batch) -> None:
        if batch.first == 0:
            self._begin(batch.key)
        records, ids = batch.records, self.coco.ids
        if batch.key == 'images':
            if not batch.typed:
                records = read_images(records, batch.first, self.faults, self.source)
            add_images(self.coco.images, records, ids, self.by_url, batch.typed)
        elif batch.key == 'categories':
            self._add_categories(records, batch.first)
        else:
            numbers: Iterable[int] = range(batch.first, batch.first + len(records))
            if not batch.typed:
                read = read_annotations(records, batch.first, self.faults, self.source)
                numbers, records = read, list(read.values())
            panoptic = are_panoptic(records)
            if panoptic:
                self.coco.panoptic.update(zip(numbers, records))
                records = segments_of(records)
            self.parts.append(annotation_columns(records, ids, self.masks and not panoptic, batch.typed))

    def _begin(self, key: str) -> None:
        if key in self.seen:
            self.faults.add(f'has the key "{key}" twice: readers use the last', self.source)
            if key == 'annotations':
                self.parts.clear()
                self.coco.panoptic.clear()
            elif key == 'images':
                self.coco.images = ImageColumns([], [], [], [])
            else:
                self.coco.categories.clear()
                self.coco.without_isthing = self.coco.ungrouped = 0
        self.seen.add(key)

    def _add_categories(self, records: List[Any], first: int) -> None:
        for number, record in enumerate(records, first):
            where = f'{self.source}: categories[{number}]'
            if not isinstance(record, dict):
                self.faults.add('a category is not an object', f'{where} is {shorten(record)}')
                continue
            name = record.get('name')
            if not isinstance(name, str):
                self.faults.add('a category has no name', f'{where}: {shorten(record)}')
            elif not is_writable(name):
                self.faults.add('the name of a category has half of a surrogate pair', f'{where}: {shorten(name)}')
            self.coco.without_isthing += 'isthing' not in record
            self.coco.ungrouped += record.get('supercategory') == 'none'
            # A category without an id cannot be referenced by an annotation.
            code = self.coco.ids.code(record.get('id'))
            self.coco.categories.append((code, name if isinstance(name, str) else str(name)))
