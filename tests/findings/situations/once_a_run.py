"""Answers that several tests ask for, found by one test process and read by the others."""

from __future__ import annotations

import pickle
from functools import lru_cache, wraps
from hashlib import sha1
from pathlib import Path
from typing import Any, Callable, Optional, TypeVar

from filelock import FileLock

_Answer = TypeVar('_Answer')


class Shared:
    """Where the processes of a run leave their answers; ``None``: there is one process."""

    folder: Optional[Path] = None


def once_a_run(find: Callable[[str], _Answer]) -> Callable[[str], _Answer]:
    """``lru_cache`` for a function of a name, in all test processes together."""

    @lru_cache(maxsize=None)
    @wraps(find)
    def answer(name: str) -> _Answer:
        if Shared.folder is None:
            return find(name)
        file = Shared.folder / sha1(f'{find.__module__}.{find.__name__}: {name}'.encode()).hexdigest()
        with FileLock(f'{file}.lock'):
            if not file.exists():
                file.write_bytes(pickle.dumps(find(name)))
            found: Any = pickle.loads(file.read_bytes())
        return found

    return answer
