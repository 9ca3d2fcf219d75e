"""Corrected copies of a target's label files, and the manifest of the changes."""

from __future__ import annotations

import json
import os
from collections import deque
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Optional, Union

from mmguard.files.containment import OutsideError, is_really_inside, resolve_inside
from mmguard.files.regular import (
    LOCK,
    check_regular,
    hold_folder,
    is_draft,
    open_regular,
    pin_folder,
    read_regular,
    write_whole,
)
from mmguard.formats.detection import detect
from mmguard.formats.files import walk
from mmguard.formats.format import (
    LARGEST,
    MANIFEST,
    WRITER,
    CannotCorrect,
    CannotScan,
    Format,
    LabelFiles,
    NotCorrected,
    compute_digest,
    correct_file,
    get_ending,
    get_folder,
)
from mmguard.formats.options import FixOptions
from mmguard.text import REPORT_ADVICE, describe_error
from mmguard.version import __version__

#: Beginning of a manifest of `mmguard fix`.
_HEAD = f'{{\n "written_by": "{WRITER}",'.encode()


class Copies(NamedTuple):
    """Result of `mmguard fix`: copied files, left-out files with reasons, number of linked images, internal errors."""

    done: List[Dict[str, Any]]
    left_out: List[Dict[str, str]]
    linked: int
    failures: List[Exception]

    @property
    def invalid(self) -> List[Dict[str, Any]]:
        """Records of the copies in which labels are still invalid."""
        return [record for record in self.done if record.get('invalid')]


def check_places(target: Path, out: Path) -> None:
    """Refuse ``--out`` if it is, contains or is inside TARGET, is a file, or has files that fix did not write."""
    original, copies = target.resolve(), out.resolve()
    folder = original if target.is_dir() else original.parent
    if _is_one_of(folder, [copies, *(copies.parents if target.is_dir() else ())]):
        raise CannotCorrect(f'--out {out} is TARGET or inside it; originals are never modified: name another folder')
    if _is_one_of(copies, folder.parents):
        raise CannotCorrect(f'--out {out} contains TARGET; originals are never modified: name another folder')
    if out.exists() and not out.is_dir():
        raise CannotCorrect(f'--out {out} is a file: name a folder')
    if out.is_dir() and not _is_output(out) and not all(map(_is_draft_file, out.iterdir())):
        raise CannotCorrect(f'--out {out} is not empty and was not written by mmguard fix: name another folder')


def _is_output(folder: Path) -> bool:
    with suppress(OSError), open_regular(folder / MANIFEST) as file:
        return file.read(len(_HEAD)) == _HEAD
    return False


def write_manifest(out: Path, target: str, options: FixOptions, finished: bool = True, **found: Any) -> None:
    """Write the manifest with the entries ``found``; a run first writes one with ``finished=False``."""
    record = {
        'written_by': WRITER,
        'version': __version__,
        'finished': finished,
        'target': target,
        'options': options.to_json(),
        **found,
    }
    text = json.dumps(record, indent=1, ensure_ascii=False) + '\n'
    # File names that are not UTF-8 contain lone surrogates, which JSON can hold only as escapes.
    write_whole(out / MANIFEST, text.encode(errors='backslashreplace'))


def _is_draft_file(path: Path) -> bool:
    return is_draft(path.name) and path.is_file() and not path.is_symlink()


@contextmanager
def place_in(out: Path, name: str) -> Iterator[Path]:
    """Yield the path for the copy of a file; refuse a name or a link that leads outside of ``out``."""
    try:
        path = Path(resolve_inside(str(out), name))
    except OutsideError as error:
        raise NotCorrected(str(error)) from error
    _check_inside(path.parent, out)
    path.parent.mkdir(parents=True, exist_ok=True)
    with pin_folder(path.parent, os.O_RDONLY) as folder:
        _check_inside(folder, out)  # what was opened, in case a link took its place
        yield folder / path.name


def _check_inside(folder: Path, out: Path) -> None:
    if not is_really_inside(str(folder), str(out)):
        raise NotCorrected('a link in --out leads outside of --out: no copy is written there')


def link(file: str, path: Path, stays_link: bool) -> None:
    """Create ``path`` as a hard link to an uncorrected file, or as a copy if the file system has no hard links.

    If ``stays_link`` is true, create a symbolic link instead, so that a file outside of the target is not copied.
    """
    check_regular(file)
    source = Path(file)
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
        write_whole(path, read_regular(source, LARGEST), mode=source.stat().st_mode)


def write_copies(
    target: Union[str, Path], out: Path, options: FixOptions, data_format: Optional[Format] = None
) -> Copies:
    """Write corrected copies of a target's label files to ``out``; by default, the format is detected."""
    target = os.fspath(target)
    check_places(Path(target), out)
    out = out.resolve()  # a link that takes its place later is refused
    files = (data_format or detect_correctable(target, options.suffix)).files(target, options)
    out.mkdir(parents=True, exist_ok=True)
    try:
        with hold_folder(out) as held:
            write_manifest(held, target, options, finished=False)
            for place, _, names in os.walk(held):  # partial files of a run that was killed
                for path in (Path(place, name) for name in names):
                    if _is_draft_file(path) and path.name != LOCK:
                        path.unlink()
            copies = _write(target, held, files)
            write_manifest(held, target, options, files=copies.done, left_out=copies.left_out)
    except BlockingIOError as error:
        raise CannotCorrect(
            f'another mmguard fix writes to --out {out}: wait for it, or name another folder (if none is '
            f'running, delete {out / LOCK})'
        ) from error
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(out)) from error
    return copies


def detect_correctable(target: str, suffix: Optional[str] = None) -> Format:
    """Return the format of a target whose label files `mmguard fix` can correct.

    Raises:
        CannotCorrect: The target does not exist, has no known format, or is a single label map.
    """
    if not os.path.exists(target):
        raise CannotCorrect(f'{target} does not exist: name a folder of label maps, a COCO JSON or a VOC folder')
    try:
        found = detect(target, suffix)
    except CannotScan as error:
        raise CannotCorrect(str(error)) from error
    if found is None:
        raise CannotCorrect(
            f'{target}: single label maps cannot be corrected. Name their folder, a COCO or LVIS .json, or a data.yaml'
        )
    return found


def _write(target: str, out: Path, files: LabelFiles) -> Copies:
    done: List[Dict[str, Any]] = []
    left_out: List[Dict[str, str]] = []
    failures: List[Exception] = []
    taken = {MANIFEST: 'the manifest'}
    linked = 0

    def leave_out(name: str, error: Exception) -> None:
        reason = getattr(error, 'strerror', None) or str(error) or type(error).__name__
        left_out.append({'file': name, 'reason': reason})

    for path, name in files.files:
        if is_really_inside(path, str(out)):  # a copy of an earlier run, next to a TARGET that is a file
            continue
        try:
            if name in files.images:
                with place_in(out, name) as place:
                    link(path, place, not is_really_inside(path, get_folder(target)))
                linked += 1
                continue
            data, corrected, mode = correct_file(target, files, path, name)
            new_name = name[: len(name) - len(get_ending(name))] + corrected.ending
            if new_name in taken:
                raise NotCorrected(f'its copy would have the same name as the copy of {taken[new_name]}')
            with place_in(out, new_name) as place:
                write_whole(place, corrected.data, mode=mode)
        except (NotCorrected, OSError, MemoryError) as error:
            leave_out(name, error)
            continue
        except Exception as error:  # continue with the other files
            left_out.append({'file': name, 'reason': f'{describe_error(error)}; {REPORT_ADVICE}'})
            failures.append(error)
            continue
        taken[new_name] = name
        done.append(
            {
                'file': name,
                'written': new_name,
                'changes': corrected.changes,
                'values': corrected.values,
                'counts': corrected.counts,
                **({'invalid': corrected.invalid} if corrected.invalid else {}),
                'sha256_before': compute_digest(data),
                'sha256_after': compute_digest(corrected.data),
            }
        )
    for entry in left_out:  # an earlier run may have written it
        for name in {entry['file'], f'{os.path.splitext(entry["file"])[0]}.png'} - taken.keys() - files.images:
            with suppress(OSError, NotCorrected), place_in(out, name) as place:
                place.unlink()
    searched = files.folder or target
    if os.path.isdir(searched):  # the scan reports these, too
        deque(walk(searched, lambda at, error: leave_out(os.path.relpath(at, searched), error)), maxlen=0)
    return Copies(done, left_out, linked, failures)


def _is_one_of(folder: Path, others: Iterable[Path]) -> bool:
    """Return True if a folder is identical to one of ``others``, even if their paths differ."""
    there = folder.exists()
    return any(other == folder or (there and other.exists() and other.samefile(folder)) for other in others)
