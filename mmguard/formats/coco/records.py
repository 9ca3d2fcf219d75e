"""Records of the images, annotations and categories of a COCO file. An annotation takes 66 bytes."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np

from mmguard.formats.coco.masks import BLANK, Rle, RleSize, as_float, check_mask, mask_column, size_column
from mmguard.formats.faults import Faults
from mmguard.formats.table import NO_NUMBER
from mmguard.text import shorten

#: Code of a missing id.
MISSING_ID = -(1 << 63)
#: First code of ids that are not integers; hand-written ids are never this far below zero.
_FIRST_CODE = -(1 << 62)
_LARGEST = 1 << 62
_URL = 'http://images.cocodataset.org/'

try:
    from msgspec import Raw, Struct
except ImportError:
    TYPES: Dict[str, Dict[str, Any]] = {}
else:

    class Segment(Struct, gc=False, omit_defaults=True):
        """A segment of an image in a COCO panoptic file."""

        id: int = MISSING_ID
        category_id: int = MISSING_ID
        bbox: Tuple[float, float, float, float] = (NO_NUMBER, NO_NUMBER, NO_NUMBER, NO_NUMBER)
        area: float = NO_NUMBER
        iscrowd: Union[bool, int] = 0

    class Annotation(Segment, gc=False, omit_defaults=True):
        """An annotation. Its mask, and keys that have no field here, are skipped without being decoded."""

        image_id: int = MISSING_ID
        ignore: Union[bool, int] = 0
        segments_info: Optional[List[Segment]] = None
        file_name: str = ''  # the PNG of a panoptic annotation

    class AnnotationWithSize(Annotation, gc=False, omit_defaults=True):
        """An annotation with the size of its RLE; the numbers of polygons are not decoded."""

        segmentation: Union[RleSize, List[Raw], None] = None

    class AnnotationWithMask(Annotation, gc=False, omit_defaults=True):
        """An annotation with its mask."""

        segmentation: Union[List[List[float]], Rle, None] = None

    class Image(Struct, gc=False, omit_defaults=True):
        """An image; for LVIS 1.0, mmdet takes its file name from ``coco_url``."""

        id: int = MISSING_ID
        width: float = NO_NUMBER
        height: float = NO_NUMBER
        file_name: str = ''
        coco_url: str = ''

    #: Part of the masks to read (``''`` for none) -> array of the file -> type of the array's elements.
    TYPES = {
        part: {'annotations': kind, 'images': Image}
        for part, kind in (('', Annotation), ('sizes', AnnotationWithSize), ('all', AnnotationWithMask))
    }


def is_id(value: Any) -> bool:
    """Return True if a value can be an id: a number or a string, but not NaN, which does not equal itself."""
    return isinstance(value, (int, float, str)) and value == value


class Ids:
    """Integer codes of ids, because some exporters write strings, fractions or huge integers as ids."""

    def __init__(self) -> None:
        self._codes: Dict[Any, int] = {}
        self._originals: Dict[int, Any] = {}

    def find_code(self, value: Any) -> int:
        """Return the code of an id (most integers are their own code), or ``MISSING_ID`` if the id is not valid."""
        if isinstance(value, float) and value.is_integer():
            value = int(value)  # equal, and the same dict key
        if isinstance(value, int) and (abs(value) < _LARGEST or value == MISSING_ID):
            return int(value)
        if not is_id(value):
            return MISSING_ID
        if value not in self._codes:
            code = _FIRST_CODE + len(self._codes)
            self._codes[value] = code
            self._originals[code] = value
        return self._codes[value]

    def find_codes(self, values: List[Any], are_integers: bool) -> np.ndarray:
        """Return the codes of ids, int64 (N,). Set ``are_integers`` only if no id is a string or a fraction."""
        try:
            if are_integers:
                column = np.fromiter(values, np.int64, len(values))
                if not (np.abs(column) >= _LARGEST).any():  # abs(MISSING_ID) stays negative
                    return column
        except OverflowError:
            pass
        return np.array(list(map(self.find_code, values)), np.int64)

    def get_original(self, code: int) -> Any:
        return self._originals.get(code, code)


class AnnotationColumns(NamedTuple):
    """Annotations as columns with one element per annotation; ids are codes of ``Ids``, ``MISSING_ID`` if missing."""

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
        return cls(ints, ints, ints, np.empty((0, 4)), floats, bools, bools, np.full(0, BLANK))

    @classmethod
    def join(cls, parts: List[AnnotationColumns]) -> AnnotationColumns:
        """Join the columns of ``parts``, and empty ``parts``, so that only one column at a time is in memory twice."""
        if not parts:
            return cls.empty()
        lists = [list(column) for column in zip(*parts)]
        parts.clear()
        joined = []
        while lists:
            joined.append(np.concatenate(lists.pop(0)))
        return cls(*joined)


class ImageColumns(NamedTuple):
    """Images as columns with one element per image."""

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
    """Return True if annotations contain panoptic segments."""
    lists = [record.segments_info for record in records]
    if lists.count(None) == len(lists):
        return False
    # Images without any segment have empty lists.
    return any(lists) or any(record.segments_info is not None and record.id == MISSING_ID for record in records)


def list_segments(records: Sequence[Any]) -> List[Any]:
    """Return one annotation per segment of panoptic annotations."""
    return [
        Annotation(segment.id, segment.category_id, segment.bbox, segment.area, segment.iscrowd, record.image_id)
        for record in records
        for segment in record.segments_info or ()
    ]


def build_annotation_columns(
    records: Sequence[Any], ids: Ids, masks: str = '', typed: bool = True
) -> AnnotationColumns:
    """Collect annotation records in columns.

    Args:
        masks (str): Part of the masks to use, a key of :data:`TYPES`.
        typed (bool): True if all ids are integers; False for records of :func:`read_annotations`.
    """
    count = len(records)
    boxes = chain.from_iterable([record.bbox for record in records])
    found = [record.segmentation for record in records] if masks else []
    build_masks = mask_column if masks == 'all' else size_column
    # Lists of plain attributes: on Python >= 3.11 attrgetter takes twice as long.
    return AnnotationColumns(
        ids.find_codes([record.id for record in records], typed),
        ids.find_codes([record.image_id for record in records], typed),
        ids.find_codes([record.category_id for record in records], typed),
        np.fromiter(boxes, float, 4 * count).reshape(-1, 4),
        np.fromiter([record.area for record in records], float, count),
        np.fromiter([record.iscrowd for record in records], bool, count),
        np.fromiter([record.ignore for record in records], bool, count),
        build_masks(found) if masks == 'all' or any(found) else np.full(len(found), BLANK),
    )


def add_images(columns: ImageColumns, records: Sequence[Any], ids: Ids, by_url: bool, typed: bool = True) -> None:
    """Append images to columns. Take names from ``coco_url`` if ``by_url`` (LVIS 1.0), or if ``file_name`` is empty."""
    columns.id.extend(ids.find_codes([record.id for record in records], typed).tolist())
    columns.height.extend([record.height for record in records])
    columns.width.extend([record.width for record in records])
    names = [
        record.coco_url.replace(_URL, '') if by_url or not record.file_name else record.file_name for record in records
    ]
    columns.name.extend(names)


# ---- records that are not of these types


def read_annotations(records: Sequence[Any], first: int, faults: Faults, source: str) -> Dict[int, Any]:
    """Convert untyped JSON records to {index: annotation}, without records that are not usable objects.

    Args:
        first (int): Index of the first record in the array.
    """
    found = {}
    for number, record in enumerate(records, first):
        where = f'{source}: annotations[{number}]'
        if not isinstance(record, dict):
            faults.add('an annotation is not an object', f'{where} is {shorten(record)}')
            continue
        segments = record.get('segments_info')
        if segments is not None and not isinstance(segments, list):
            faults.add('segments_info is not a list', f'{where}: {shorten(segments)}')
            continue
        objects = [segment for segment in segments or () if isinstance(segment, dict)]
        if len(objects) < len(segments or ()):
            faults.add('an entry of segments_info is not an object', where)
        values = _select_usable(record, ('image_id', 'ignore', *(() if segments else _OF_SEGMENT)), where, faults)
        if segments is not None:
            values['segments_info'] = [Segment(**_select_usable(one, _OF_SEGMENT, where, faults)) for one in objects]
        if isinstance(record.get('file_name'), str):
            values['file_name'] = record['file_name']
        found[number] = AnnotationWithMask(**values, segmentation=check_mask(record.get('segmentation')))
    return found


def read_images(records: Sequence[Any], first: int, faults: Faults, source: str) -> List[Any]:
    """Convert untyped JSON records to images, without records that are not objects and values of a wrong type."""
    found = []
    for number, record in enumerate(records, first):
        where = f'{source}: images[{number}]'
        if not isinstance(record, dict):
            faults.add('an image is not an object', f'{where} is {shorten(record)}')
            continue
        found.append(Image(**_select_usable(record, ('file_name', 'coco_url', 'id', 'height', 'width'), where, faults)))
        for key in ('file_name', 'coco_url'):
            name = getattr(found[-1], key)
            if not is_writable(name):
                faults.add(
                    f'{key} has half of a surrogate pair: no file can have that name', f'{where}: {shorten(name)}'
                )
    return found


def _select_usable(record: Dict[str, Any], keys: Sequence[str], where: str, faults: Faults) -> Dict[str, Any]:
    """Return the values of a record under ``keys`` that have the right type; add a fault for each wrong type."""
    found = {}
    for key in keys:
        value = record.get(key)
        fault, accepts, convert = _ACCEPTED[key]
        if value is None:
            continue
        if not accepts(value):
            faults.add(f'{key} {fault}', f'{where}: {shorten(value)}')
        if accepts(value) or convert is bool:  # same as mmdet: iscrowd="0" is true
            found[key] = convert(value)
    return found


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_box(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 4 and all(map(_is_number, value))


_OF_SEGMENT = ('id', 'category_id', 'bbox', 'area', 'iscrowd')
#: Key -> fault of a value that is not accepted, and functions that accept and convert a value.
_ACCEPTED: Dict[str, Tuple[str, Callable[[Any], bool], Callable[[Any], Any]]] = {
    **dict.fromkeys(
        ('id', 'image_id', 'category_id'), ('is neither a number nor a string', is_id, lambda value: value)
    ),
    **dict.fromkeys(('iscrowd', 'ignore'), ('is neither 0 nor 1', lambda value: isinstance(value, (int, float)), bool)),
    **dict.fromkeys(('area', 'width', 'height'), ('is not a number', _is_number, as_float)),
    **dict.fromkeys(('file_name', 'coco_url'), ('is not a string', lambda value: isinstance(value, str), str)),
    'bbox': ('is not four numbers', _is_box, lambda value: tuple(map(as_float, value))),
}


def is_writable(text: str) -> bool:
    """Return True if a text can be written to a file as UTF-8: it contains no lone surrogate."""
    try:
        text.encode('utf-8')
    except UnicodeEncodeError:
        return False
    return True


@dataclass
class CocoFile:
    """Images, annotations and categories read from a COCO file."""

    images: ImageColumns = field(default_factory=lambda: ImageColumns([], [], [], []))  #: Images of the file.
    annotations: AnnotationColumns = field(default_factory=AnnotationColumns.empty)  #: Annotations of the file.
    #: Id (a code of ``ids``) and name, in the order of the file.
    categories: List[Tuple[int, str]] = field(default_factory=list)
    ids: Ids = field(default_factory=Ids)  #: Codes of ids that are not integers.
    #: Index -> annotation of COCO panoptic. ``annotations`` then holds the segments, whose ids may repeat.
    panoptic: Dict[int, Any] = field(default_factory=dict)
    #: Supercategory of each category; empty if it is missing.
    supercategories: List[str] = field(default_factory=list)
    without_isthing: int = 0  #: Number of categories without ``isthing``, which is required in panoptic files.
