"""Elements of COCO's arrays, and the columns that collect them: 66 bytes per annotation."""

from __future__ import annotations

from itertools import chain
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np

from mmguard.formats.coco.masks import UNREAD, Rle, as_float, checked, mask_column
from mmguard.formats.faults import Faults
from mmguard.formats.table import NO_NUMBER
from mmguard.text import shorten

#: Code of a missing id.
ABSENT = -(1 << 63)
#: Ids that are not integers get codes from here on; hand-written ids are never this far below zero.
_FIRST_CODE = -(1 << 62)
_LARGEST = 1 << 62
_NO_BOX = (NO_NUMBER,) * 4
_URL = 'http://images.cocodataset.org/'

try:
    from msgspec import Struct, to_builtins
except ImportError:
    TYPES: Dict[str, Any] = {}
    TYPES_WITH_MASKS: Dict[str, Any] = {}
else:

    class Segment(Struct, gc=False, omit_defaults=True):
        """A segment of COCO panoptic."""

        id: int = ABSENT
        category_id: int = ABSENT
        bbox: Tuple[float, float, float, float] = (NO_NUMBER, NO_NUMBER, NO_NUMBER, NO_NUMBER)
        area: float = NO_NUMBER
        iscrowd: Union[bool, int] = 0

    class Annotation(Segment, gc=False, omit_defaults=True):
        """An annotation; masks and all other keys are skipped without being built."""

        image_id: int = ABSENT
        ignore: Union[bool, int] = 0
        segments_info: Optional[List[Segment]] = None

    class MaskedAnnotation(Annotation, gc=False, omit_defaults=True):
        """An annotation with its mask."""

        segmentation: Union[List[List[float]], Rle, None] = None

    class Image(Struct, gc=False, omit_defaults=True):
        """An image. mmdet takes the file name of LVIS 1.0 from ``coco_url``."""

        id: int = ABSENT
        width: float = NO_NUMBER
        height: float = NO_NUMBER
        file_name: str = ''
        coco_url: str = ''

    TYPES = {'annotations': Annotation, 'images': Image}
    TYPES_WITH_MASKS = {'annotations': MaskedAnnotation, 'images': Image}


class Ids:
    """Integer codes for ids that are strings, fractions or beyond 64 bits, as some exporters write them."""

    def __init__(self) -> None:
        self._codes: Dict[Any, int] = {}
        self._originals: Dict[int, Any] = {}

    def code(self, value: Any) -> int:
        """Return the code of an id; ``ABSENT`` if it is not valid. NaN is not valid because it equals no other id."""
        if isinstance(value, float) and value.is_integer():
            value = int(value)  # equal, and the same dict key
        if isinstance(value, int) and abs(value) < _LARGEST:
            return int(value)
        if value is None or not isinstance(value, (int, float, str)) or value != value:
            return ABSENT
        if value not in self._codes:
            code = _FIRST_CODE + len(self._codes)
            self._codes[value] = code
            self._originals[code] = value
        return self._codes[value]

    def original(self, code: int) -> Any:
        return self._originals.get(code, code)


class AnnotationColumns(NamedTuple):
    """Annotations, one element each; ids are codes of ``Ids``, ``ABSENT`` if missing."""

    #: ``id``, ``image_id``, ``category_id``: int64, (N,).
    id: np.ndarray
    image_id: np.ndarray
    category_id: np.ndarray
    box: np.ndarray  #: float64, (N, 4), x, y, width, height; ``NO_NUMBER`` if missing.
    area: np.ndarray  #: float64, (N,), ``NO_NUMBER`` if missing.
    #: ``crowd``, ``ignore``: bool, (N,).
    crowd: np.ndarray
    ignore: np.ndarray
    mask: np.ndarray  #: :data:`~mmguard.formats.coco.masks.MASK`, (N,); (0,) if masks are not read.

    @classmethod
    def empty(cls) -> AnnotationColumns:
        ints, floats, bools = np.empty(0, np.int64), np.empty(0), np.empty(0, bool)
        return cls(ints, ints, ints, np.empty((0, 4)), floats, bools, bools, UNREAD)

    @classmethod
    def joined(cls, parts: List[AnnotationColumns]) -> AnnotationColumns:
        """Join columns; ``parts`` is emptied so that only one column at a time is in memory twice."""
        if not parts:
            return cls.empty()
        lists = [list(column) for column in zip(*parts)]
        parts.clear()
        joined = []
        while lists:
            joined.append(np.concatenate(lists.pop(0)))
        return cls(*joined)


class ImageColumns(NamedTuple):
    """Images, one element each."""

    id: List[int]  #: Codes of ``Ids``.
    #: ``height``, ``width``: in pixels, ``NO_NUMBER`` if missing.
    height: List[float]
    width: List[float]
    name: List[str]  #: File name relative to the image folder.

    @property
    def sizes(self) -> np.ndarray:
        """Height and width, float64 (M, 2)."""
        return np.array([self.height, self.width], float).T


def are_panoptic(records: Sequence[Any]) -> bool:
    """Return True if typed annotations contain panoptic segments."""
    lists = [record.segments_info for record in records]
    if lists.count(None) == len(lists):
        return False
    # Images without any segment have empty lists.
    return any(lists) or any(record.segments_info is not None and record.id == ABSENT for record in records)


def segments_of(records: Sequence[Any]) -> List[Any]:
    """Return one typed annotation per segment of panoptic annotations."""
    return [
        Annotation(segment.id, segment.category_id, segment.bbox, segment.area, segment.iscrowd, record.image_id)
        for record in records
        for segment in record.segments_info or ()
    ]


def annotation_columns(records: Sequence[Any], masks: bool = False) -> AnnotationColumns:
    """Return the columns of typed records; with ``masks``, the records are of :data:`TYPES_WITH_MASKS`.

    Raises:
        OverflowError: An id is beyond 64 bits; use :func:`plain_columns` of :func:`untyped` records instead.
    """
    count = len(records)
    boxes = chain.from_iterable([record.bbox for record in records])
    # Lists of plain attributes: on Python >= 3.11 attrgetter takes twice as long.
    return AnnotationColumns(
        np.fromiter([record.id for record in records], np.int64, count),
        np.fromiter([record.image_id for record in records], np.int64, count),
        np.fromiter([record.category_id for record in records], np.int64, count),
        np.fromiter(boxes, float, 4 * count).reshape(-1, 4),
        np.fromiter([record.area for record in records], float, count),
        np.fromiter([record.iscrowd for record in records], bool, count),
        np.fromiter([record.ignore for record in records], bool, count),
        mask_column([record.segmentation for record in records]) if masks else UNREAD,
    )


def untyped(records: Sequence[Any]) -> List[Dict[str, Any]]:
    return to_builtins(list(records))


def plain_columns(
    records: Sequence[Any], first: int, ids: Ids, faults: Faults, source: str, masks: bool = False
) -> AnnotationColumns:
    """Return the columns of untyped JSON records; record a fault for each that cannot be an annotation.

    Args:
        first (int): Index of the first record in the array.
    """
    rows: List[Tuple[Any, ...]] = []
    for number, record in enumerate(records, first):
        where = f'{source}: annotations[{number}]'
        if not isinstance(record, dict):
            faults.add('an annotation is not an object', f'{where} is {shorten(record)}')
            continue
        for part in _segments(record, where, faults):
            row = (
                _id(part, 'id', ids, where, faults),
                _id(record, 'image_id', ids, where, faults),
                _id(part, 'category_id', ids, where, faults),
                _box(part.get('bbox'), where, faults),
                _number(part, 'area', where, faults),
                _flag(part, 'iscrowd', where, faults),
                _flag(part, 'ignore', where, faults),
                checked(part.get('segmentation')) if masks else None,
            )
            rows.append(row)
    id_, image, category, box, area, crowd, ignore, mask = zip(*rows) if rows else [()] * 8
    return AnnotationColumns(
        np.array(id_, np.int64),
        np.array(image, np.int64),
        np.array(category, np.int64),
        np.array(box, float).reshape(-1, 4),
        np.array(area, float),
        np.array(crowd, bool),
        np.array(ignore, bool),
        mask_column(mask) if masks else UNREAD,
    )


def _segments(record: Dict[str, Any], where: str, faults: Faults) -> List[Dict[str, Any]]:
    segments = record.get('segments_info')
    if segments is None:
        return [record]
    if not isinstance(segments, list):
        faults.add('segments_info is not a list', f'{where}: {shorten(segments)}')
        return []
    objects = [segment for segment in segments if isinstance(segment, dict)]
    if len(objects) < len(segments):
        faults.add('segments_info holds something that is not an object', where)
    return objects


def _id(record: Dict[str, Any], key: str, ids: Ids, where: str, faults: Faults) -> int:
    value = record.get(key)
    code = ids.code(value)
    if code == ABSENT and value is not None:
        faults.add(f'{key} is neither a number nor a text', f'{where}: {shorten(value)}')
    return code


def _flag(record: Dict[str, Any], key: str, where: str, faults: Faults) -> bool:
    value = record.get(key)
    if value is not None and not isinstance(value, (int, float)):
        faults.add(f'{key} is neither 0 nor 1', f'{where}: {shorten(value)}')
    return bool(value)  # same as mmdet: "0" is true


def _number(record: Dict[str, Any], key: str, where: str, faults: Faults) -> float:
    value = record.get(key)
    if value is None:
        return NO_NUMBER
    number = _float(value)
    if number is None:
        faults.add(f'{key} is not a number', f'{where}: {shorten(value)}')
        return NO_NUMBER
    return number


def _box(value: Any, where: str, faults: Faults) -> Tuple[float, ...]:
    if value is None:
        return _NO_BOX
    numbers = [_float(part) for part in value] if isinstance(value, (list, tuple)) and len(value) == 4 else [None]
    if any(number is None for number in numbers):
        faults.add('bbox is not four numbers', f'{where}: {shorten(value)}')
        return _NO_BOX
    return tuple(numbers)  # type: ignore[arg-type]


def _float(value: Any) -> Optional[float]:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return as_float(value)


def add_typed_images(columns: ImageColumns, records: Sequence[Any], ids: Ids, by_url: bool) -> None:
    """Append typed images; with ``by_url``, ``coco_url`` gives the file name, as mmdet reads LVIS 1.0."""
    columns.id.extend([_typed_id(record.id, ids) for record in records])
    columns.height.extend([record.height for record in records])
    columns.width.extend([record.width for record in records])
    columns.name.extend([_file(record.file_name, record.coco_url, by_url) for record in records])


def _typed_id(id_: int, ids: Ids) -> int:
    return id_ if -_LARGEST < id_ < _LARGEST or id_ == ABSENT else ids.code(id_)


def add_plain_images(
    columns: ImageColumns, records: Sequence[Any], first: int, ids: Ids, faults: Faults, source: str, by_url: bool
) -> None:
    """Append untyped JSON images; record a fault for each that cannot be an image."""
    for number, record in enumerate(records, first):
        if not isinstance(record, dict):
            faults.add('an image is not an object', f'{source}: images[{number}] is {shorten(record)}')
            continue
        where = f'{source}: images[{number}]'
        name, url = (_name(record, key, where, faults) for key in ('file_name', 'coco_url'))
        columns.id.append(_id(record, 'id', ids, where, faults))
        columns.height.append(_number(record, 'height', where, faults))
        columns.width.append(_number(record, 'width', where, faults))
        columns.name.append(_file(name, url, by_url))


def _file(name: str, url: str, by_url: bool) -> str:
    return url.replace(_URL, '') if by_url or not name else name


def _name(record: Dict[str, Any], key: str, where: str, faults: Faults) -> str:
    value = record.get(key)
    if value is not None and not isinstance(value, str):
        faults.add(f'{key} is not a string', f'{where}: {shorten(value)}')
    elif value is not None and not is_writable(value):
        faults.add(f'{key} holds half of a character: no file can have that name', f'{where}: {shorten(value)}')
    return value if isinstance(value, str) else ''


def is_writable(text: str) -> bool:
    """Return True if a text can be written to a file: a lone surrogate (half of a character) cannot."""
    try:
        text.encode('utf-8')
    except UnicodeEncodeError:
        return False
    return True
