"""Sources of an error: a file, standard input, or the folder of a run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Iterator, List, Optional

from mmguard.errors import CannotRun
from mmguard.log.run_log import FLIGHT
from mmguard.text import visible_name

_PIECE = 1 << 20
_ENDINGS = ('.log', '.out', '.err', '.txt')
#: Maximum number of files that are read in the folder of a run.
_FILES = 64


def read_pieces(target: str) -> Iterator[bytes]:
    """Yield the content of a file (``-``: standard input), piece by piece."""
    if target == '-':
        try:
            yield from iter(lambda: sys.stdin.buffer.read(_PIECE), b'')
        except OSError as error:  # closed, or a folder
            raise CannotRun(f'standard input cannot be read: {error.strerror or error}') from error
        return
    path = Path(target)
    if path.suffix == '.ipynb':
        raise CannotRun(
            f'{visible_name(target)} is a notebook: copy the output of its cell, and paste it into `mmguard explain -`'
        )
    if path.name.startswith(Path(FLIGHT).stem):
        yield from _read_flight_record(path)
    else:
        try:
            with open(path, 'rb') as file:
                yield from iter(lambda: file.read(_PIECE), b'')
        except OSError as error:
            raise CannotRun(f'{visible_name(target)} cannot be read: {error.strerror or error}') from error


def find_logs(folder: Path) -> List[Path]:
    """Return the logs and flight records of the newest run in or below a folder."""
    found = [path for path in folder.rglob('*') if path.suffix in _ENDINGS or path.name.startswith(Path(FLIGHT).stem)]
    files = [path for path in found if path.is_file() and path.stat().st_size]
    if not files:
        raise CannotRun(
            f'{visible_name(str(folder))}: no log below this folder ({", ".join(_ENDINGS)}, {FLIGHT}). You can also '
            f'pipe in the output of a training: `... 2>&1 | mmguard explain -`'
        )
    newest = max(files, key=lambda path: path.stat().st_mtime)
    together = [path for path in files if path.parent == newest.parent]
    return sorted(together, key=lambda path: (path.stat().st_mtime, str(path)))[-_FILES:]


def _read_flight_record(path: Path) -> Iterator[bytes]:
    from mmguard.log.flight_record import read_flight

    try:
        flight = read_flight(str(path))
    except (OSError, ValueError):
        return  # `mmguard report` explains what is wrong with it
    if flight.exception is not None:
        yield mark_rank(flight.exception.traceback, flight.rank)


def mark_rank(traceback: str, rank: int) -> bytes:
    """Return a rank's traceback with the rank before every line, as torchrun prints it."""
    return ''.join(f'[rank{rank}]: {line}\n' for line in traceback.splitlines()).encode('utf-8', 'replace')


def find_config(folder: Path) -> Optional[Path]:
    """Return the config that mmengine wrote next to a run's log; ``None`` if it is missing."""
    paths = (folder / name for name in ('vis_data/config.py', 'config.py'))
    return next((path for path in paths if path.is_file()), None)
