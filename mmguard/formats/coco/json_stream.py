"""Reader of the arrays of one large JSON object, a few thousand elements at a time.

``json.load`` of a COCO annotation file needs ten times the memory of the file. Here only one block of the file is
decoded at a time: by msgspec into typed records, which skips unused keys, or by the standard library if the block
contains something unusual such as NaN.
"""

from __future__ import annotations

import codecs
import json
import re
from typing import Any, BinaryIO, Callable, Iterator, List, Mapping, NamedTuple, Optional, Tuple

from mmguard.text import shorten

#: Number of bytes decoded at a time.
BLOCK = 1 << 21
_SPACE = re.compile(rb'[ \t\r\n]*')
_ENDS_ELEMENT = re.compile(r'[ \t\r\n]*[,\]]')
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_TEXT_SPACE = re.compile(r'[ \t\r\n]*')
#: Possible ends of an object element that is followed by another. A cut is verified by decoding it.
_CUTS = (b'},', b']},')
#: Values that json parses and msgspec rejects, because they are not valid JSON.
_NO_JSON = (b'NaN', b'Infinity')
_UTF8_BOM = b'\xef\xbb\xbf'
#: Python rejects an int of more than 4,300 digits, which always contains one whole window of this length.
_DIGITS = 2048


class JsonFault(ValueError):
    """A fault at which reading the file has to stop."""

    def __init__(self, what: str, at: str) -> None:
        super().__init__(f'{what} ({at})')
        self.what = what
        self.at = at


class Batch(NamedTuple):
    """Consecutive elements of an array."""

    key: str  #: Key of the array in the top-level object.
    first: int  #: Index of the first element. Every array in the file begins with a batch whose ``first`` is 0.
    records: List[Any]  #: Records of the requested type, or the output of ``json``.
    typed: bool  #: True if they are of the requested type.


class Stream:
    """Reader of the arrays of the top-level object of a JSON file, ``block`` bytes at a time.

    Args:
        types (dict[str, type]): Key of an array -> msgspec type of its elements. Other keys are skipped.
        warn (callable): Called with a fault and its place if reading can continue.

    Raises:
        ModuleNotFoundError: msgspec is not installed.
    """

    def __init__(
        self, file: BinaryIO, types: Mapping[str, Any], warn: Callable[[str, str], None], block: int = BLOCK
    ) -> None:
        self._file = file
        self._block = block
        self._types = dict(types)
        # Imported here because only this scan needs it.
        import msgspec

        self._decoders = {key: msgspec.json.Decoder(List[kind]) for key, kind in types.items()}  # type: ignore[valid-type]
        self._other_types, self._no_json = msgspec.ValidationError, msgspec.DecodeError
        self._warn = warn
        self._buffer = b''
        self._pos = 0
        self._offset = 0  # of the buffer in the file
        self._ended = False
        self._utf8: Any = codecs.getincrementaldecoder('utf-8')()  # a block may end inside a character
        self._cuts = list(_CUTS)
        self._scan = json.JSONDecoder().raw_decode

    def __iter__(self) -> Iterator[Batch]:
        """Iterate over the batches of all arrays.

        Raises:
            JsonFault: The file is damaged or not a JSON object. Batches before the damage have been yielded.
        """
        self._begin()
        self._expect(b'{', 'an object {...} with "images", "annotations" and "categories"')
        if self._peek() == b'}':
            self._pos += 1
        else:
            yield from self._members()
        self._skip_space()
        if self._pos < len(self._buffer):
            self._warn('there is more behind the end of the JSON object', self._here())

    def _begin(self) -> None:
        self._fill()
        if not self._buffer:
            raise JsonFault('the file is empty', 'byte 0')
        if self._buffer.startswith(_UTF8_BOM):
            self._warn(
                'begins with a byte-order mark, which pycocotools cannot read: save it as UTF-8 without', 'byte 0'
            )
            self._pos = len(_UTF8_BOM)
        elif b'\0' in self._buffer[:4]:
            raise JsonFault('is not UTF-8 text (UTF-16, or no text at all)', 'byte 0')

    def _members(self) -> Iterator[Batch]:
        while True:
            key = self._key()
            self._expect(b':', "':' behind a key")
            if key in self._types and self._peek() == b'[':
                yield from self._elements(key)
            else:
                value = self._value()
                if key in self._types:
                    self._warn(f'"{key}" is not a list but {shorten(value)}', self._here())
                    yield Batch(key, 0, [], False)
            mark = self._peek()
            self._pos += 1
            if mark == b'}':
                return
            if mark != b',':
                self._pos -= 1
                raise self._fault("expected ',' or '}'")

    def _elements(self, key: str) -> Iterator[Batch]:
        self._pos += 1
        number = 0
        if self._peek() == b']':
            self._pos += 1
            yield Batch(key, 0, [], False)
            return
        while True:
            records, typed, ended = self._typed_block(key) or self._plain_block(key, number)
            yield Batch(key, number, records, typed)
            number += len(records)
            if ended:
                return

    # ---- blocks of elements

    def _typed_block(self, key: str) -> Optional[Tuple[List[Any], bool, bool]]:
        """Decode up to the end of the array or of an element; return ``None`` if no such end is found.

        The end is guessed, then verified: a block that starts at an element becomes valid JSON by closing the bracket
        only if it ends with an element (or with the array).
        """
        if len(self._buffer) - self._pos < self._block:
            self._fill()
        end = self._buffer.find(b'}]', self._pos)
        if end >= 0:
            decoded = self._decoded(key, end + 1)
            if decoded is not None:
                self._pos = end + 2
                return (*decoded, True)
        for place, mark in enumerate(self._cuts):
            cut = self._buffer.rfind(mark, self._pos)
            decoded = None if cut < 0 else self._decoded(key, cut + len(mark) - 1)
            if decoded is not None:
                self._cuts.insert(0, self._cuts.pop(place))  # likely to match the next time
                self._pos = cut + len(mark)
                return (*decoded, False)
        return None

    def _decoded(self, key: str, end: int) -> Optional[Tuple[List[Any], bool]]:
        block = b'[%b]' % self._buffer[self._pos : end]
        try:
            decoded = self._decoders[key].decode(block)
            if not _holds_long_number(block):  # msgspec skips numbers that json.load rejects
                return decoded, True
        except self._other_types:
            pass  # valid JSON of other types, to be checked one by one
        except (self._no_json, UnicodeDecodeError, RecursionError):
            if not any(word in block for word in _NO_JSON):
                return None
        try:
            return json.loads(block), False
        except (ValueError, RecursionError):
            return None

    def _plain_block(self, key: str, number: int) -> Tuple[List[Any], bool, bool]:
        """Decode element by element with ``json``: slower, but with the exact fault and place."""
        while True:
            text = self._buffer[self._pos :].decode('utf-8', 'surrogateescape')
            records, at, ended = [], 0, False
            error: Optional[Exception] = None
            while not ended:
                start = _TEXT_SPACE.match(text, at).end()  # type: ignore[union-attr]
                try:
                    record, stop = self._scan(text, start)
                except (ValueError, RecursionError) as caught:
                    error = caught
                    break
                mark = _ENDS_ELEMENT.match(text, stop)
                if mark is None:
                    if text[stop:].strip():
                        error = json.JSONDecodeError("Expecting ',' delimiter", text, stop)
                    break
                records.append(record)
                at, ended = mark.end(), text[mark.end() - 1] == ']'
            if records:
                self._pos += len(text[:at].encode('utf-8', 'surrogateescape'))
                return records, False, ended
            if self._ended:
                raise self._element_fault(f'{key}[{number}]', error)
            # Doubling the buffer keeps the work for one huge element linear.
            self._fill(max(self._block, len(self._buffer)))

    def _element_fault(self, where: str, error: Optional[Exception]) -> JsonFault:
        if isinstance(error, RecursionError):
            return JsonFault('is nested too deeply', where)
        if (
            isinstance(error, json.JSONDecodeError)
            and len(error.doc.rstrip()) > error.pos
            and 'Unterminated' not in str(error)
        ):
            at = self._offset + self._pos + len(error.doc[: error.pos].encode('utf-8', 'surrogateescape'))
            return JsonFault(f'is damaged: {error.msg}', f'{where}, byte {at:,}')
        if error is not None and not isinstance(error, json.JSONDecodeError):
            return JsonFault(f'is damaged: {shorten(str(error))}', where)
        return JsonFault('ends in the middle: the file was cut off', where)

    # ---- single tokens

    def _key(self) -> str:
        self._skip_space()
        while True:
            found = _STRING.match(self._buffer, self._pos)
            if found or self._ended or self._buffer[self._pos : self._pos + 1] != b'"':
                break
            self._fill()
        if found is None:
            raise self._fault('expected a key')
        self._pos = found.end()
        try:
            return str(json.loads(found.group().decode('utf-8', 'replace')))
        except ValueError:
            raise self._fault('expected a key') from None

    def _value(self) -> Any:
        """Decode a value that is not streamed."""
        while True:
            text = self._buffer[self._pos :].decode('utf-8', 'surrogateescape')
            error: Optional[Exception] = None
            try:
                value, stop = self._scan(text, _TEXT_SPACE.match(text).end())  # type: ignore[union-attr]
                # A number may continue after the block: 100 and .5 are one value.
                if self._ended or text[stop:].strip('0123456789.eE+-'):
                    self._pos += len(text[:stop].encode('utf-8', 'surrogateescape'))
                    return value
            except (ValueError, RecursionError) as caught:
                error = caught
            if self._ended:
                raise self._element_fault(f'behind byte {self._offset + self._pos:,}', error)
            self._fill(max(self._block, len(self._buffer)))

    def _expect(self, mark: bytes, meaning: str) -> None:
        if self._peek() != mark:
            raise self._fault(f'expected {meaning}')
        self._pos += 1

    def _peek(self) -> bytes:
        self._skip_space()
        return self._buffer[self._pos : self._pos + 1]

    def _skip_space(self) -> None:
        while True:
            self._pos = _SPACE.match(self._buffer, self._pos).end()  # type: ignore[union-attr]
            if self._pos < len(self._buffer) or self._ended:
                return
            self._fill()

    def _fill(self, size: int = 0) -> None:
        more = self._file.read(size or self._block)
        self._ended = not more
        self._check_text(more)
        self._offset += self._pos
        self._buffer = self._buffer[self._pos :] + more
        self._pos = 0

    def _check_text(self, more: bytes) -> None:
        """Warn of bytes that are not UTF-8: other readers decode the whole file, including keys skipped here."""
        if self._utf8 is None or (more.isascii() and not self._utf8.getstate()[0] and more):
            return
        try:
            self._utf8.decode(more, final=not more)
        except UnicodeDecodeError:
            self._warn('holds bytes that are not UTF-8', f'behind byte {self._offset + len(self._buffer):,}')
            self._utf8 = None

    def _fault(self, what: str) -> JsonFault:
        rest = self._buffer[self._pos : self._pos + 20]
        if not rest:
            return JsonFault('ends in the middle: the file was cut off', self._here())
        return JsonFault(f'is no COCO JSON: {what}, found {shorten(rest.decode("utf-8", "replace"))}', self._here())

    def _here(self) -> str:
        return f'byte {self._offset + self._pos:,}'


def _holds_long_number(block: bytes) -> bool:
    return any(block[start : start + _DIGITS].isdigit() for start in range(0, len(block), _DIGITS))
