"""The records of a scan on disk: append only, so that an interrupted scan loses nothing and goes on."""

from __future__ import annotations

import hashlib
import json
import os
from array import array
from functools import partial
from typing import IO, Any, Iterable, Optional, Sequence

import numpy as np

from mmguard.tools.scan.record import MapItem, MapRecord, Stamp
from mmguard.tools.storage.urls import is_url

#: More bytes have no line of ours.
_LONGEST = 1 << 25


class Journal:
    """One JSON line per file, keyed by path, size and time of change; its folder is made.

    Looking up costs 16 bytes of memory per file; the lines stay on disk. Without ``resume`` it starts empty.

    Raises:
        OSError: It cannot be written.
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
                    keys.append(_key(json.loads(line)['path']))
                    places.append(place)
                except (ValueError, TypeError, KeyError, RecursionError):
                    pass  # torn by a kill, or damaged: that file is read again
                place += len(line)
        order = np.argsort(np.frombuffer(keys, np.uint64), kind='stable') if keys else np.empty(0, np.int64)
        self._keys = np.frombuffer(keys, np.uint64)[order] if keys else self._keys
        self._places = np.frombuffer(places, np.int64)[order] if keys else self._places
        return not line.endswith(b'\n')

    def find(
        self, item: MapItem, stamp: Optional[Stamp], image_stamp: Optional[Stamp], invalid: Sequence[bool], backend: str
    ) -> Optional[MapRecord]:
        """Return the record of a file, if the file and its image are unchanged and it says all that is asked.

        A value that was valid when the file was read, and is ``invalid`` now, has not been looked at more closely.
        """
        line = self.line_of(item.path)
        if line is None:
            return None
        try:
            record = MapRecord.from_line(line)
        except ValueError:
            return None
        same = (record.path, record.stamp, record.image, record.image_stamp, record.backend)
        if same != (item.path, stamp, item.image, image_stamp, backend):
            return None
        looked_at = 'colours' not in record.changes
        if looked_at and any(invalid[v] and v not in record.between for v in record.as_loaded):
            return None
        return record

    def line_of(self, path: str) -> Optional[str]:
        """The last line about a file; ``None`` where there is none."""
        at = int(np.searchsorted(self._keys, np.uint64(_key(path)), side='right')) - 1
        if self._lines is None or at < 0 or int(self._keys[at]) != _key(path):
            return None
        self._lines.seek(int(self._places[at]))
        return self._lines.readline(_LONGEST).decode(errors='replace')

    @property
    def resumed(self) -> bool:
        """Whether it holds anything of an earlier scan."""
        return bool(self._keys.size)

    def append(self, lines: Iterable[str]) -> None:
        """Writes lines and hands them to the system, so that a kill loses nothing."""
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


def default_journal(target: str) -> str:
    """Where the journal of a target lies: in the user's cache, because data sets are often read-only."""
    cache = os.environ.get('XDG_CACHE_HOME') or os.path.join(os.path.expanduser('~'), '.cache')
    where = target if is_url(target) else os.path.realpath(target)
    name = ''.join(c if c.isalnum() and c.isascii() else '_' for c in os.path.basename(where))[:40] or 'scan'
    return os.path.join(cache, 'mmguard', 'scan', f'{name}-{_key(where):016x}.jsonl')


def _key(path: str) -> int:
    return int.from_bytes(hashlib.blake2b(os.fsencode(path), digest_size=8).digest(), 'little')
