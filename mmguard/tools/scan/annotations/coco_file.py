"""Reads a COCO or LVIS file into columns, whatever it holds."""

from __future__ import annotations

import gc
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Iterator, List, Set, Tuple

from mmguard.text.short import short
from mmguard.tools.scan.annotations.coco_records import (
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
from mmguard.tools.scan.annotations.json_stream import Batch, JsonFault, Stream
from mmguard.tools.scan.faults import Faults
from mmguard.tools.storage.files import FILES

KEYS = ('images', 'annotations', 'categories')


@dataclass
class CocoFile:
    """What a COCO file holds."""

    images: ImageColumns = field(default_factory=lambda: ImageColumns([], [], [], []))  #: The images.
    annotations: AnnotationColumns = field(default_factory=AnnotationColumns.empty)  #: The annotations.
    #: Id (a code of ``ids``) and name, in the order of the file.
    categories: List[Tuple[int, str]] = field(default_factory=list)
    ids: Ids = field(default_factory=Ids)  #: Codes of ids that are no integers.
    panoptic: bool = False  #: Whether the annotations are COCO panoptic's segments, whose ids may repeat.
    without_isthing: int = 0  #: Categories that do not say whether they are things, as panoptic ones must.


def read_coco(path: str, source: str, faults: Faults, by_url: bool = False, masks: bool = False) -> CocoFile:
    """Read a file into columns; never raise: ``faults`` takes everything that cannot be read."""
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
    """Records are not cyclic; looking for cycles among everything that torch made takes longer than decoding."""
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
            faults.add('a category is no object', f'{where} is {short(record)}')
            continue
        name = record.get('name')
        if not isinstance(name, str):
            faults.add('a category has no name', f'{where}: {short(record)}')
        elif not is_writable(name):
            faults.add('the name of a category holds half of a character', f'{where}: {short(name)}')
        coco.without_isthing += 'isthing' not in record
        # A category without an id is none that an annotation could name.
        coco.categories.append((coco.ids.code(record.get('id')), name if isinstance(name, str) else str(name)))
