"""Record of one label map, and the journal of records on disk."""

from __future__ import annotations

import hashlib
import json
import os
from array import array
from dataclasses import dataclass, field
from functools import partial
from typing import IO, Any, Dict, Iterable, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from mmguard.files.typed_json import decode
from mmguard.formats.files import Stamp, get_stamp

Shape = Tuple[int, int]

#: Types of the fields in a line of a journal; an edited or damaged line is not used.
_TYPES: Dict[str, Any] = {
    **dict.fromkeys(('raw', 'loaded', 'between'), Dict[int, int]),
    **dict.fromkeys(('fractions', 'colors'), Dict[str, int]),
    **dict.fromkeys(('path', 'image', 'backend', 'form', 'image_form', 'fault', 'detail', 'image_fault'), str),
    'changes': List[str],
}
_PAIRS = {'stamp', 'image_stamp', 'shape', 'image_shape'}


class MapItem(NamedTuple):
    """A label map to read, and its image, if known."""

    path: str
    image: Optional[str] = None


@dataclass
class MapRecord:
    """Record of one label map, as stored and as loaded by the framework."""

    path: str  #: The file.
    stamp: Optional[Stamp] = None  #: Its size and modification time; ``None``: the file does not exist.
    image: Optional[str] = None  #: The image that it labels.
    image_stamp: Optional[Stamp] = None  #: Stamp of the image.
    backend: str = 'pillow'  #: Decoder that ``loaded`` refers to.
    form: str = ''  #: Form of the file, see :class:`~mmguard.findings.facts.MapFacts`.
    shape: Optional[Shape] = None  #: (height, width).
    image_form: str = ''  #: Form of the image.
    image_shape: Optional[Shape] = None  #: (height, width) of the image as it is shown, turned if its EXIF tag says so.
    #: Value as stored -> pixels, the most frequent ones; of color files only if they hold gray values.
    raw: Dict[int, int] = field(default_factory=dict)
    #: Value as loaded (uint8, before any shift or map) -> elements; ``None``: as ``raw``.
    loaded: Optional[Dict[int, int]] = None
    #: Changes made by the loader: ``'wrapped'``, ``'colors'``, ``'scaled'``, ``'truncated'``.
    changes: List[str] = field(default_factory=list)
    #: Values of float files that are not integers -> pixels; the lowest few.
    fractions: Dict[str, int] = field(default_factory=dict)
    #: ``'r,g,b'`` -> pixels, for color files with at most 256 colors.
    colors: Dict[str, int] = field(default_factory=dict)
    lossy: bool = False  #: Compressed with loss.
    is_black: bool = False  #: The palette shows all values that occur as black.
    #: Value as loaded -> pixels of it that have a lower and a higher neighbor; only for values that were invalid when
    #: the file was read.
    between: Dict[int, int] = field(default_factory=dict)
    fault: str = ''  #: Fault of the file, in two or three words; empty: it was read.
    detail: str = ''  #: The decoder's error message.
    image_fault: str = ''  #: Fault of the image.

    @property
    def as_loaded(self) -> Dict[int, int]:
        """Value as loaded -> elements."""
        return self.raw if self.loaded is None else self.loaded

    def decode(self, stored: int) -> int:
        """Return the loaded value of a value in ``raw``, 0 to 255."""
        if 'scaled' in self.changes and self.loaded is not None:
            return dict(zip(sorted(self.raw), sorted(self.loaded)))[stored]
        return stored % 256

    def to_line(self) -> str:
        """Return the record as one line of JSON, without empty fields; invalid characters in file names are kept."""
        return json.dumps({key: value for key, value in vars(self).items() if value or key == 'path'})

    @classmethod
    def from_line(cls, line: str) -> MapRecord:
        """Read a line written by ``to_line``.

        Raises:
            ValueError: The line is not a record.
        """
        try:
            words: Dict[str, Any] = json.loads(line)
            for key in set(_TYPES).intersection(words):
                words[key] = decode(_TYPES[key], words[key])
            for key in _PAIRS.intersection(words):
                words[key] = _parse_pair(words[key])
            record = cls(**words)
        except (TypeError, AttributeError, ValueError, RecursionError) as error:
            raise ValueError(f'not a record of a label map: {line[:80]!r}') from error
        if not all(0 <= value < 256 for value in record.as_loaded):
            raise ValueError(f'a value as loaded is above 255: {line[:80]!r}')
        return record


def _parse_pair(value: Any) -> Tuple[int, int]:
    if not isinstance(value, list) or [type(number) for number in value] != [int, int]:
        raise ValueError(f'{value!r:.80} is not a pair of integers')
    return value[0], value[1]


#: Maximum number of bytes of a line.
_LONGEST = 1 << 25


class Journal:
    """Journal of one JSON line per file, keyed by path, size and modification time; its folder is created.

    Looking up costs 16 bytes of memory per file; the lines stay on disk. Without ``resume`` it starts empty.

    Raises:
        OSError: The journal cannot be written.
    """

    def __init__(self, path: str, resume: bool) -> None:
        self.path = path
        folder = os.path.dirname(os.path.abspath(path))
        os.makedirs(folder, exist_ok=True)
        self._keys = np.empty(0, np.uint64)
        self._places = np.empty(0, np.int64)
        self._lines: Optional[IO[bytes]] = None
        torn = False
        if resume and os.path.exists(path):
            torn = self._index()
            self._lines = open(path, 'rb')  # noqa: SIM115  closed in close()
        self._out = open(path, 'ab' if resume else 'wb')  # noqa: SIM115
        if torn:
            self._out.write(b'\n')

    def _index(self) -> bool:
        keys, places = array('Q'), array('q')
        place, line = 0, b'\n'
        with open(self.path, 'rb') as lines:
            for line in iter(partial(lines.readline, _LONGEST), b''):
                try:
                    keys.append(_hash_path(json.loads(line)['path']))
                    places.append(place)
                except (ValueError, TypeError, KeyError, RecursionError):
                    pass  # torn by a kill, or damaged: that file is read again
                place += len(line)
        order = np.argsort(np.frombuffer(keys, np.uint64), kind='stable') if keys else np.empty(0, np.int64)
        self._keys = np.frombuffer(keys, np.uint64)[order] if keys else self._keys
        self._places = np.frombuffer(places, np.int64)[order] if keys else self._places
        return not line.endswith(b'\n')

    def find(self, item: MapItem, invalid: Sequence[bool], backend: str) -> Optional[MapRecord]:
        """Return the record of a file if it and its image are unchanged and the record has all that is needed.

        ``None`` otherwise: a value that is ``invalid`` now was not inspected if it was valid when the file was read.
        """
        line = self.find_line(item.path)
        if line is None:
            return None
        try:
            record = MapRecord.from_line(line)
        except ValueError:
            return None
        image_stamp = None if item.image is None else get_stamp(item.image)
        same = (record.path, record.stamp, record.image, record.image_stamp, record.backend)
        if same != (item.path, get_stamp(item.path), item.image, image_stamp, backend):
            return None
        looked_at = 'colors' not in record.changes
        if looked_at and any(invalid[v] and v not in record.between for v in record.as_loaded):
            return None
        return record

    def find_line(self, path: str) -> Optional[str]:
        """Return the last line about a file; ``None`` if the journal has none."""
        at = int(np.searchsorted(self._keys, np.uint64(_hash_path(path)), side='right')) - 1
        if self._lines is None or at < 0 or int(self._keys[at]) != _hash_path(path):
            return None
        self._lines.seek(int(self._places[at]))
        return self._lines.readline(_LONGEST).decode(errors='replace')

    def append(self, lines: Iterable[str]) -> None:
        """Write lines and flush them to the system, so that a kill loses nothing."""
        self._out.write(''.join(f'{line}\n' for line in lines).encode())
        self._out.flush()

    def close(self) -> None:
        self._out.close()
        if self._lines is not None:
            self._lines.close()

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *exception: Any) -> None:
        self.close()


def get_default_journal(target: str) -> str:
    """Return the path of a target's journal: in the user's cache, because data sets are often read-only."""
    cache = os.environ.get('XDG_CACHE_HOME') or os.path.join(os.path.expanduser('~'), '.cache')
    where = os.path.realpath(target)
    name = ''.join(c if c.isalnum() and c.isascii() else '_' for c in os.path.basename(where))[:40] or 'scan'
    return os.path.join(cache, 'mmguard', 'scan', f'{name}-{_hash_path(where):016x}.jsonl')


def _hash_path(path: str) -> int:
    return int.from_bytes(hashlib.blake2b(os.fsencode(path), digest_size=8).digest(), 'little')
