"""An append-only file of JSON lines that never hurts a training."""

from __future__ import annotations

import json
import os
from typing import Any, Dict, Optional

#: The log of a run, where nobody calls it otherwise.
NAME = 'label_guard.jsonl'
#: What the file may grow to, in MB (2**20 bytes).
MAX_MB = 256
_FULL = 'limit reached: no further lines, label_guard.json goes on with the sums'


class JsonLines:
    """Appends one JSON object per line, each handed to the operating system at once.

    A process that dies loses no line already written. A last line that a killed process left half-written is ended
    first. A line that cannot be written is dropped, the next one is tried again: the training goes on either way.

    Args:
        path (str): The file; made, with its folder, at the first line.
        max_mb (float): Its largest size, in MB (2**20 bytes). One last line says that it is reached.

    Attributes:
        error (OSError, optional): Why the last line could not be written; ``None`` where it was.
        is_full (bool): Whether the size is reached.
    """

    def __init__(self, path: str, max_mb: float = MAX_MB) -> None:
        self.path = path
        self.error: Optional[OSError] = None
        self.is_full = False
        self._max_size = int(max_mb * 2**20)
        self._size = 0
        self._file: Optional[int] = None

    def write(self, record: Dict[str, Any]) -> bool:
        """Appends a record. Returns False where it could not (``error`` or ``is_full`` say why)."""
        if self.is_full:
            return False
        line = encoded(record)
        try:
            if self._file is None:
                self._file = self._open()
            if self._size + len(line) > self._max_size:
                self.is_full = True
                line = encoded({'note': _FULL})
            while line:
                written = os.write(self._file, line)
                self._size += written
                line = line[written:]
            self.error = None
        except OSError as error:
            self.error = error
            self.close()  # opened anew, it ends the torn line
        return self.error is None and not self.is_full

    def _open(self) -> int:
        os.makedirs(os.path.dirname(self.path) or '.', exist_ok=True)
        file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        self._size = os.fstat(file).st_size
        if self._size:
            os.lseek(file, self._size - 1, os.SEEK_SET)
            if os.read(file, 1) != b'\n':
                self._size += os.write(file, b'\n')
        return file

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


def encoded(record: Dict[str, Any]) -> bytes:
    """A record as one line."""
    # File names that are no UTF-8 reach Python as lone surrogates, which JSON can hold as an escape alone.
    return json.dumps(record, ensure_ascii=False).encode(errors='backslashreplace') + b'\n'


def name_for_rank(name: str, rank: int) -> str:
    """The file of a rank.

    Example:
        >>> name_for_rank('label_guard.jsonl', 0), name_for_rank('label_guard.jsonl', 2)
        ('label_guard.jsonl', 'label_guard.rank2.jsonl')
    """
    stem, suffix = os.path.splitext(name)
    return name if rank == 0 else f'{stem}.rank{rank}{suffix}'
