"""An append-only file of JSON lines that never hurts a training."""

from __future__ import annotations

import json
import os
from typing import Any, Dict, Optional

#: The log of a run, where nobody calls it otherwise.
NAME = 'label_guard.jsonl'


class JsonLines:
    """Appends one JSON object per line, each handed to the operating system at once.

    A process that dies loses no line already written. A last line that a killed process left half-written is ended
    first. A disk that is full is reported once and the lines are dropped: the training goes on.

    Args:
        path (str): The file; made, with its folder, at the first line.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.error: Optional[OSError] = None
        self._file: Optional[int] = None

    def write(self, record: Dict[str, Any]) -> bool:
        """Appends a record. Returns False where it could not (``error`` says why)."""
        if self.error is not None:
            return False
        # File names that are no UTF-8 reach Python as lone surrogates, which JSON can hold as an escape alone.
        line = json.dumps(record, ensure_ascii=False).encode(errors='backslashreplace') + b'\n'
        try:
            if self._file is None:
                self._file = self._open()
            while line:
                line = line[os.write(self._file, line) :]
        except OSError as error:
            self.error = error
            return False
        return True

    def _open(self) -> int:
        os.makedirs(os.path.dirname(self.path) or '.', exist_ok=True)
        file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        size = os.fstat(file).st_size
        if size:
            os.lseek(file, size - 1, os.SEEK_SET)
            if os.read(file, 1) != b'\n':
                os.write(file, b'\n')
        return file

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


def name_for_rank(name: str, rank: int) -> str:
    """The file of a rank.

    Example:
        >>> name_for_rank('label_guard.jsonl', 0), name_for_rank('label_guard.jsonl', 2)
        ('label_guard.jsonl', 'label_guard.rank2.jsonl')
    """
    stem, suffix = os.path.splitext(name)
    return name if rank == 0 else f'{stem}.rank{rank}{suffix}'
