"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from mmguard.errors import CannotRun


def write_whole(path: Path, content: bytes) -> None:
    """Writes a file beside its place, then gives it its name; on an error the one that is there stays as it was.

    Args:
        path (Path): Where the file is wanted; its folder is made.
        content (bytes): What it is to hold.

    Raises:
        OSError: It cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, draft = tempfile.mkstemp(prefix=f'.{path.name}.'[:40], suffix='.part', dir=str(path.parent))
    try:
        with os.fdopen(descriptor, 'wb') as file:
            file.write(content)
        # mkstemp's file is for its owner alone; this one is to be read by others, as any new file is.
        os.chmod(draft, 0o666 & ~_umask())
        os.replace(draft, path)
    except BaseException:
        os.unlink(draft)
        raise


def write_or_print(target: str, text: str) -> None:
    """Writes a text where ``--json`` says: a file, whole, or standard output for ``'-'``.

    Args:
        target (str): The file, or ``'-'``.
        text (str): It gets a newline at its end.

    Raises:
        CannotRun: The file cannot be written.
    """
    if target == '-':
        sys.stdout.write(text + '\n')
        sys.stdout.flush()
    else:
        try:
            write_whole(Path(target), (text + '\n').encode())
        except OSError as error:
            raise CannotRun(f'{target} cannot be written: {error.strerror or error}') from error


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
