"""The folder of corrected copies: what may be one, how files get there, and the manifest."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, Optional, Set

from mmguard.files.inside import OutsideError, resolve_inside
from mmguard.files.regular import read_regular
from mmguard.files.whole import LOCK, NOT_REGULAR, is_draft, write_whole
from mmguard.tools.fix.options import CannotCorrect, FixOptions, NotCorrected
from mmguard.version import __version__

MANIFEST = 'manifest.json'
_LARGEST = 1 << 30
_WRITER = 'mmguard fix'


def check_places(target: Path, out: Path) -> None:
    """Refuses a folder in which originals could be overwritten, or that holds something else.

    Raises:
        CannotCorrect: It is, lies in, or holds TARGET; or it is not empty and no earlier output.
    """
    original, copies = target.resolve(), out.resolve()
    folder = original if target.is_dir() else original.parent
    if _is_one_of(folder, [copies, *(copies.parents if target.is_dir() else ())]):
        raise CannotCorrect(f'--out {out} is TARGET or lies in it; originals are never touched: name another folder')
    if _is_one_of(copies, folder.parents):
        raise CannotCorrect(f'--out {out} holds TARGET; originals are never touched: name another folder')
    if out.exists() and not out.is_dir():
        raise CannotCorrect(f'--out {out} is a file: name a folder')
    if out.is_dir() and read_manifest(out) is None and not all(map(_is_draft, out.iterdir())):
        raise CannotCorrect(f'--out {out} is not empty and was not written by mmguard fix: name another folder')


def read_manifest(folder: Path) -> Optional[Dict[str, Any]]:
    """The manifest of a folder; ``None`` where there is none of ours."""
    try:
        record = json.loads(read_regular(os.path.join(folder, MANIFEST), _LARGEST))
    except (OSError, ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) and record.get('written_by') == _WRITER else None


def digests_after(manifest: Dict[str, Any]) -> Set[str]:
    """The digests of the files that a manifest lists."""
    files = manifest.get('files')
    listed = [entry for entry in files if isinstance(entry, dict)] if isinstance(files, list) else []
    return {str(entry.get('sha256_after')) for entry in listed}


def begin(out: Path, target: str, options: FixOptions) -> None:
    """Marks a folder as ours, and removes what a run that was killed left half written.

    Raises:
        OSError: It cannot be written to.
    """
    write_manifest(out, target, options, finished=False)
    for place, _, names in os.walk(out):
        for path in (Path(place, name) for name in names):
            if _is_draft(path) and path.name != LOCK:
                path.unlink()


def write_manifest(out: Path, target: str, options: FixOptions, finished: bool = True, **found: Any) -> None:
    """Writes the manifest; of a run that has just begun ``finished=False``."""
    record = {
        'written_by': _WRITER,
        'version': __version__,
        'finished': finished,
        'target': target,
        'options': options.to_json(),
        **found,
    }
    text = json.dumps(record, indent=1, ensure_ascii=False) + '\n'
    # File names that are no UTF-8 are lone surrogates, which JSON can hold as an escape alone.
    write_whole(out / MANIFEST, text.encode(errors='backslashreplace'))


def _is_draft(path: Path) -> bool:
    return is_draft(path.name) and path.is_file() and not path.is_symlink()


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def place_in(out: Path, name: str, is_inside: Callable[[str], bool]) -> Path:
    """Return where the copy of a file goes.

    Args:
        out (Path): The folder of copies.
        name (str): The file, relative to the target.
        is_inside (callable): Tells whether a path is really inside of ``out``.

    Raises:
        NotCorrected: The name, or a link in ``out``, leads out of it.
    """
    try:
        path = Path(resolve_inside(str(out), name))
    except OutsideError as error:
        raise NotCorrected(str(error)) from error
    if path.parent != Path(os.path.normpath(out)) and not is_inside(str(path.parent)):
        raise NotCorrected(f'a link in {out} leads out of it: no copy is written there')
    return path


def link(file: str, path: Path, stays_link: bool) -> None:
    """Put a file that is not corrected into the copy.

    A hard link; a copy where the file system has none. A link that leads out of the target stays a link, so that what
    it leads to never becomes a file of the copy.

    Args:
        file (str): The file.
        path (Path): Where it goes.
        stays_link (bool): It is a link that leads out of the target.

    Raises:
        OSError: None of these can be made, or it is not a regular file.
    """
    source = Path(file)
    if not stat.S_ISREG(source.stat().st_mode):
        raise OSError(NOT_REGULAR)
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and path.samefile(source) and path.is_symlink() == stays_link:
        return
    if path.is_file() or path.is_symlink():
        path.unlink()
    if stays_link:
        path.symlink_to(source.resolve())
        return
    try:
        os.link(source.resolve(), path)
    except OSError:
        write_whole(path, source.read_bytes())


def _is_one_of(folder: Path, others: Iterable[Path]) -> bool:
    """Return True if a folder is among others, also under another spelling."""
    there = folder.exists()
    return any(other == folder or (there and other.exists() and other.samefile(folder)) for other in others)
