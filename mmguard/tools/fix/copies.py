"""Corrected copies of the label files of a target, and the manifest that says what was changed."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any, Callable, Dict, List, NamedTuple, Set, Union

from mmguard.files.inside import tell_inside
from mmguard.files.regular import open_regular
from mmguard.files.whole import LOCK, hold_folder, write_whole
from mmguard.text.failures import REPORT_IT, words_of
from mmguard.tools.fix.checked import check_for
from mmguard.tools.fix.label_files import LabelFiles, ending_of, unchanged
from mmguard.tools.fix.options import CannotCorrect, FixOptions, NotCorrected
from mmguard.tools.fix.output import (
    begin,
    check_places,
    digest,
    digests_after,
    link,
    place_in,
    read_manifest,
    write_manifest,
)
from mmguard.tools.fix.plan import files_of
from mmguard.tools.storage.urls import is_url

Link = Callable[[str, Path, bool], None]


class Copies(NamedTuple):
    """What became of the files.

    Attributes:
        done (list[dict]): Those with a copy, as the manifest has them.
        left_out (list[dict]): Those without, and why.
        linked (int): Images.
        failures (list[Exception]): Of those without, what nobody foresaw: a fault of mmguard's own.
    """

    done: List[Dict[str, Any]]
    left_out: List[Dict[str, str]]
    linked: int
    failures: List[Exception]


def write_copies(target: Union[str, Path], out: Path, options: FixOptions, to_link: Link = link) -> Copies:
    """Writes corrected copies of the label files of a target.

    Args:
        target (str): A folder of label maps, a COCO or LVIS JSON, a VOC folder (or one of XML files), a folder or
            data.yaml of YOLO, or a folder or JSON of Labelme.
        out (Path): Where the copies go.
        options (FixOptions): What is valid.
        to_link (callable): Puts an image next to its annotations, as :func:`~mmguard.tools.fix.output.link` does.

    Raises:
        CannotCorrect, OSError: Nothing could be done.
    """
    target = os.fspath(target)
    check_is_local(target)
    check_places(Path(target), out)
    found = files_of(target, options)
    final = _final(target, options)
    out.mkdir(parents=True, exist_ok=True)
    try:
        with hold_folder(out):
            begin(out, target, options)
            copies = _write(target, out, found, final, to_link)
            write_manifest(out, target, options, files=copies.done, left_out=copies.left_out)
    except BlockingIOError as error:
        raise CannotCorrect(
            f'another mmguard fix writes to --out {out}: wait for it, or name another folder (where none runs, delete '
            f'{out / LOCK})'
        ) from error
    return copies


def check_is_local(target: str) -> None:
    """Refuse a URL.

    Raises:
        CannotCorrect: It is one.
    """
    if is_url(target):
        raise CannotCorrect(f'{target}: fix reads a disk: copy the data here or mount the storage, then fix the copy')


def _final(target: str, options: FixOptions) -> Set[str]:
    """Digests of what was corrected by the same rules: it is not mapped a second time."""
    earlier = read_manifest(Path(target)) if os.path.isdir(target) else None
    if earlier is None:
        return set()
    if earlier.get('finished') is False:
        raise CannotCorrect(
            f'{target} is what an interrupted mmguard fix of {earlier.get("target")} left: run that again first'
        )
    return digests_after(earlier) if earlier.get('options') == options.to_json() else set()


def _write(
    target: str,
    out: Path,
    found: LabelFiles,
    final: Set[str],
    to_link: Link,
) -> Copies:
    done: List[Dict[str, Any]] = []
    left_out: List[Dict[str, str]] = []
    failures: List[Exception] = []
    taken: Dict[str, str] = {}
    linked = 0
    is_of_target = tell_inside(target if os.path.isdir(target) else os.path.dirname(target))
    is_in_out = tell_inside(str(out))
    for path, name in found.files:
        try:
            if name in found.images:
                to_link(path, place_in(out, name, is_in_out), not is_of_target(path))
                linked += 1
                continue
            data = _read(path)
            if path != target and not is_of_target(path):
                raise NotCorrected('a link that leads out of TARGET: copy what it leads to there (cp -L)')
            before = digest(data)
            corrected = unchanged(data, name) if before in final else found.correct(data, name)
            new_name = name[: len(name) - len(ending_of(name))] + corrected.ending
            if new_name in taken:
                raise NotCorrected(f'its copy would have the name of that of {taken[new_name]}')
            write_whole(place_in(out, new_name, is_in_out), corrected.data, check_for(corrected.ending))
        except (NotCorrected, OSError, MemoryError) as error:
            left_out.append(
                {'file': name, 'reason': getattr(error, 'strerror', None) or str(error) or type(error).__name__}
            )
            continue
        except Exception as error:  # the other files are written all the same
            left_out.append({'file': name, 'reason': f'{words_of(error)}; {REPORT_IT}'})
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
                'sha256_before': before,
                'sha256_after': digest(corrected.data),
            }
        )
    for entry in left_out:  # an earlier run may have written it
        for name in {entry['file'], f'{os.path.splitext(entry["file"])[0]}.png'} - taken.keys():
            with suppress(OSError, NotCorrected):
                place_in(out, name, is_in_out).unlink()
    return Copies(done, left_out, linked, failures)


def _read(path: str) -> bytes:
    with open_regular(path) as file:
        return file.read()
