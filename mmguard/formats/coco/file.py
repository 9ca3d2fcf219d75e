"""Reader of the arrays of one large JSON object, a few thousand elements at a time.

``json.load`` of a COCO annotation file needs ten times the memory of the file, msgspec up to five times. Here only one
block of the file is decoded at a time: by msgspec into typed records, which skips unused keys, or element by element
by the standard library if the block contains something unusual such as NaN.
"""

from __future__ import annotations

import codecs
import gc
import json
import re
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Callable, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Set, Tuple

from mmguard.formats.coco.records import (
    TYPES,
    AnnotationColumns,
    CocoFile,
    add_images,
    are_panoptic,
    build_annotation_columns,
    is_writable,
    list_segments,
    read_annotations,
    read_images,
)
from mmguard.formats.faults import Faults
from mmguard.formats.files import FILES
from mmguard.text import shorten

#: Number of bytes decoded at a time.
BLOCK = 1 << 21
#: Number of bytes that are searched first for the end of a single value.
_WINDOW = 1 << 12
_SPACE = re.compile(rb'[ \t\r\n]*')
#: Characters of numbers, because a number at the end of a window may continue after the window.
_NUMBER = '0123456789.eE+-'
#: End of an array, and separators of elements, where a block may be cut. Decoding verifies the cut.
_LAST, _CUTS = b'}]', (b'},', b']},')
#: Values that json parses and msgspec rejects, because they are not valid JSON.
_NO_JSON = (b'NaN', b'Infinity')
#: Length of a window. An int of more than 4,300 digits, which Python rejects, contains at least one whole window.
_DIGITS = 2048


class JsonFault(ValueError):
    """Fault because of which the rest of a file cannot be read."""

    def __init__(self, reason: str, place: str) -> None:
        super().__init__(f'{reason} ({place})')
        self.what = reason
        self.at = place


class Batch(NamedTuple):
    """Consecutive elements of one array of a COCO file."""

    key: str  #: Key of the array in the top-level object.
    first: int  #: Index of the first element. Every array in the file begins with a batch whose ``first`` is 0.
    records: List[Any]  #: Records of the requested type, or the output of ``json``.
    typed: bool  #: True if ``records`` are of the requested type.


class Stream:
    """Reader of the arrays of the top-level object of a JSON file, ``block`` bytes at a time.

    Args:
        types (dict[str, type]): Key of an array -> msgspec type of its elements. Other keys are skipped.
        warn (callable): Called with (fault, place) for a fault after which reading continues.

    Raises:
        ModuleNotFoundError: msgspec is not installed.
    """

    def __init__(
        self, file: BinaryIO, types: Mapping[str, Any], warn: Callable[[str, str], None], block: int = BLOCK
    ) -> None:
        # Imported here because only this scan needs it.
        import msgspec

        self._decoders = {key: msgspec.json.Decoder(List[kind]) for key, kind in types.items()}  # type: ignore[valid-type]
        self._other_types, self._no_json = msgspec.ValidationError, msgspec.DecodeError
        self._file = file
        self._block = block
        self._warn = warn
        self._data = b''
        self._pos = 0
        self._offset = 0  # of ``_data`` in the file
        self._ended = False
        # A block may end inside a character.
        self._utf8: codecs.IncrementalDecoder = codecs.getincrementaldecoder('utf-8')()
        self._cuts = list(_CUTS)
        self._scan = json.JSONDecoder().raw_decode

    def __iter__(self) -> Iterator[Batch]:
        """Iterate over the batches of all arrays.

        Raises:
            JsonFault: The file is damaged or not a JSON object. Batches before the damage have been yielded.
        """
        self._begin()
        self._expect(b'{', 'an object {...} with "images", "annotations" and "categories"')
        if self._peek() != b'}':
            yield from self._read_member()
        while self._peek() != b'}':
            self._expect(b',', "',' or '}'")
            yield from self._read_member()
        self._pos += 1
        if self._peek():
            self._warn('there is more text after the end of the JSON object', self._describe_position())

    def _begin(self) -> None:
        self._fill(self._block)
        if not self._data:
            raise JsonFault('the file is empty', 'byte 0')
        if self._data.startswith(codecs.BOM_UTF8):
            what = 'begins with a byte-order mark, which pycocotools cannot read: save it as UTF-8 without a BOM'
            self._warn(what, 'byte 0')
            self._pos = len(codecs.BOM_UTF8)
        elif b'\0' in self._data[:4]:
            raise JsonFault('is not UTF-8 text, but UTF-16 or a binary file', 'byte 0')

    def _fill(self, size: int) -> None:
        more = self._file.read(size)
        self._ended = not more
        try:
            if not more.isascii() or self._utf8.getstate()[0]:
                self._utf8.decode(more, final=not more)
        except UnicodeDecodeError:  # other readers decode the whole file, including keys skipped here
            self._warn('contains bytes that are not UTF-8', f'after byte {self._offset + len(self._data):,}')
            self._utf8 = codecs.getincrementaldecoder('latin-1')()  # warn only once
        self._offset += self._pos
        self._data = self._data[self._pos :] + more
        self._pos = 0

    def _read_member(self) -> Iterator[Batch]:
        if self._peek() != b'"':
            raise self._build_fault('expected a key')
        try:
            key = self._decode_value('')
        except JsonFault:
            raise self._build_fault('expected a key') from None
        self._expect(b':', "':' after a key")
        if key in self._decoders and self._peek() == b'[':
            yield from self._read_elements(key)
            return
        value = self._decode_value(f'after {self._describe_position()}')
        if key in self._decoders:
            self._warn(f'"{key}" is not a list but {shorten(value)}', self._describe_position())
            yield Batch(key, 0, [], False)

    def _read_elements(self, key: str) -> Iterator[Batch]:
        self._pos += 1
        if self._peek() == b']':
            self._pos += 1
            yield Batch(key, 0, [], False)
            return
        number, ended, fault = 0, False, None
        while not ended:
            block = self._read_typed(key)
            if block is not None:
                records, typed, ended = block
            else:
                records, typed = [], False
                try:
                    ended = self._add_plain(records, key, number)
                except JsonFault as caught:
                    fault, ended = caught, True
            if records:
                yield Batch(key, number, records, typed)
            number += len(records)
        if fault is not None:
            raise fault

    # ---- blocks of elements

    def _read_typed(self, key: str) -> Optional[Tuple[List[Any], bool, bool]]:
        """Decode a block. Return (records, typed, True if the array ends here), or ``None`` if decoding fails.

        The end of the last element is guessed, and decoding verifies the guess: with a closing bracket added, the block
        is valid JSON only if it ends with a whole element.
        """
        if len(self._data) - self._pos < self._block:
            self._fill(self._block)
        # Search the end of the array last: the search takes a fifth of the time, and few blocks contain this end.
        for mark in (*self._cuts, _LAST):
            find = self._data.find if mark == _LAST else self._data.rfind
            end = find(mark, self._pos) + len(mark)
            decoded = self._decode(key, end - 1) if end >= len(mark) else None
            if decoded is not None:
                self._pos = end
                self._cuts.sort(key=mark.__ne__)  # the same cut is likely to match the next time
                return (*decoded, mark == _LAST)
        return None

    def _decode(self, key: str, end: int) -> Optional[Tuple[List[Any], bool]]:
        block = b'[%b]' % self._data[self._pos : end]
        try:
            decoded = self._decoders[key].decode(block)
            if not any(block[at : at + _DIGITS].isdigit() for at in range(0, len(block), _DIGITS)):
                return decoded, True  # else msgspec has skipped a number that json.load rejects
        except self._other_types:
            pass  # valid JSON of other types, to be checked one by one
        except (self._no_json, UnicodeDecodeError, RecursionError):
            if not any(word in block for word in _NO_JSON):
                return None
        try:
            return json.loads(block), False
        except (ValueError, RecursionError):
            return None

    def _add_plain(self, records: List[Any], key: str, number: int) -> bool:
        """Decode the elements of a block one by one, and append them to ``records``. Return True if the array ends."""
        most = self._offset + self._pos + self._block
        mark = b''
        while mark != b']' and self._offset + self._pos < most:
            where = f'{key}[{number + len(records)}]'
            record, mark = self._decode_value(where), self._peek()
            if mark not in (b',', b']'):
                raise self._describe_damage(where, "Expecting ',' delimiter", self._pos)
            records.append(record)
            self._pos += 1
        return mark == b']'

    def _decode_value(self, where: str) -> Any:
        """Decode the next value with ``json``. If that fails, raise a :class:`JsonFault` that names ``where``."""
        self._peek()
        size = _WINDOW
        while True:
            # One character per byte: a place in the text is a place in the file.
            text = self._data[self._pos : self._pos + size].decode('latin-1')
            is_rest = self._ended and len(text) == len(self._data) - self._pos
            try:
                value, end = self._scan(text)
                if is_rest or text[end:].strip(_NUMBER):
                    break
            except json.JSONDecodeError as error:
                if is_rest:
                    end = len(self._data) if 'Unterminated' in error.msg else self._pos + error.pos
                    raise self._describe_damage(where, error.msg, end) from None
            except RecursionError:
                raise JsonFault('is nested too deeply', where) from None
            except ValueError as error:  # an int of thousands of digits
                raise JsonFault(f'is damaged: {shorten(str(error))}', where) from None
            size *= 2  # doubling keeps the work for one huge element linear
            if len(self._data) - self._pos < size:
                self._fill(max(size, self._block))
        raw = self._data[self._pos : self._pos + end]
        self._pos += end
        return value if raw.isascii() else json.loads(raw.decode('utf-8', 'surrogateescape'))

    def _describe_damage(self, where: str, what: str, pos: int) -> JsonFault:
        if not self._data[pos:].strip():
            return JsonFault('ends in the middle: the file was cut off', where)
        return JsonFault(f'is damaged: {what}', f'{where}, byte {self._offset + pos:,}')

    # ---- single tokens

    def _expect(self, mark: bytes, meaning: str) -> None:
        if self._peek() != mark:
            raise self._build_fault(f'expected {meaning}')
        self._pos += 1

    def _peek(self) -> bytes:
        """Skip white space, and return the next byte, or ``b''`` at the end of the file."""
        while True:
            self._pos = _SPACE.match(self._data, self._pos).end()  # type: ignore[union-attr]
            if self._pos < len(self._data) or self._ended:
                return self._data[self._pos : self._pos + 1]
            self._fill(self._block)

    def _build_fault(self, what: str) -> JsonFault:
        rest = self._data[self._pos : self._pos + 20]
        if not rest:
            return JsonFault('ends in the middle: the file was cut off', self._describe_position())
        found = shorten(rest.decode('utf-8', 'replace'))
        return JsonFault(f'is not COCO JSON: {what}, found {found}', self._describe_position())

    def _describe_position(self) -> str:
        return f'byte {self._offset + self._pos:,}'


KEYS = ('images', 'annotations', 'categories')


def read_coco(path: str, source: str, faults: Faults, by_url: bool = False, masks: str = '') -> CocoFile:
    """Read a file into columns without raising; unreadable parts are recorded in ``faults``.

    Args:
        by_url (bool): True if ``coco_url`` gives the names of images, as in LVIS 1.0.
        masks (str): Part of the masks to read, a key of :data:`~mmguard.formats.coco.records.TYPES`.
    """
    reader = _Reader(source, faults, by_url, masks)
    try:
        with FILES.open(path) as file, _without_collection():
            types = {**dict.fromkeys(KEYS, Any), **TYPES.get(masks, {})}
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
    """Disable garbage collection: it takes longer than decoding if torch is loaded, and records have no cycles."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


@dataclass
class _Reader:
    """Collector that stores the batches of a COCO file in columns."""

    source: str
    faults: Faults
    by_url: bool
    masks: str
    coco: CocoFile = field(default_factory=CocoFile)
    parts: List[AnnotationColumns] = field(default_factory=list)
    seen: Set[str] = field(default_factory=set)

    def add(self, batch: Batch) -> None:
        coco, records = self.coco, batch.records
        if batch.first == 0:
            if batch.key in self.seen:
                self._forget(batch.key)
            self.seen.add(batch.key)
        if batch.key == 'images':
            if not batch.typed:
                records = read_images(records, batch.first, self.faults, self.source)
            add_images(coco.images, records, coco.ids, self.by_url, batch.typed)
        elif batch.key == 'categories':
            self._add_categories(records, batch.first)
        else:
            numbers: Iterable[int] = range(batch.first, batch.first + len(records))
            if not batch.typed:
                read = read_annotations(records, batch.first, self.faults, self.source)
                numbers, records = read, list(read.values())
            panoptic = are_panoptic(records)
            if panoptic:
                coco.panoptic.update(zip(numbers, records))
                records = list_segments(records)
            self.parts.append(build_annotation_columns(records, coco.ids, '' if panoptic else self.masks, batch.typed))

    def _forget(self, key: str) -> None:
        """Add a fault for a second array with the same key, and drop the first array, as JSON parsers do."""
        self.faults.add(f'has the key "{key}" twice: readers use the last', self.source)
        coco = self.coco
        if key == 'annotations':
            self.parts.clear()
            coco.panoptic.clear()
        elif key == 'images':
            coco.images = CocoFile().images
        else:
            coco.categories, coco.supercategories, coco.without_isthing = [], [], 0

    def _add_categories(self, records: List[Any], first: int) -> None:
        for number, record in enumerate(records, first):
            where = f'{self.source}: categories[{number}]'
            if not isinstance(record, dict):
                self.faults.add('a category is not an object', f'{where} is {shorten(record)}')
                continue
            name, parent = record.get('name'), record.get('supercategory')
            if not isinstance(name, str):
                self.faults.add('a category has no name', f'{where}: {shorten(record)}')
            elif not is_writable(name):
                self.faults.add('the name of a category has half of a surrogate pair', f'{where}: {shorten(name)}')
            self.coco.without_isthing += 'isthing' not in record
            self.coco.supercategories.append(parent if isinstance(parent, str) else '')
            # A category without an id cannot be referenced by an annotation.
            self.coco.categories.append((self.coco.ids.find_code(record.get('id')), str(name)))
