"""Trial copies of label files, as `mmguard fix` would write them, in a temporary folder; and their counts."""

from __future__ import annotations

import os
from contextlib import contextmanager
from copy import copy
from pathlib import Path
from typing import Dict, Iterator, Optional, Sequence

from mmguard.errors import CannotRun
from mmguard.files.regular import temporary_folder
from mmguard.findings.edits import FileChanges
from mmguard.formats.faults import Examples
from mmguard.formats.maps.read import FEW_FRACTIONS
from mmguard.formats.maps.summary import MAX_COLOURS, MapSummary
from mmguard.formats.maps.write import correct_map
from mmguard.formats.options import Colour, FixOptions, NotCorrected, Unreadable
from mmguard.labels.space import apply_label_map
from mmguard.scanning.copies import write_copies
from mmguard.storage.files import FILES
from mmguard.storage.urls import strip_secrets

#: Files above this size, in bytes, are not copied: it would take too long.
LARGEST = 32 << 20
#: Minimum cost of a file, in bytes: smaller files take as long.
_LEAST = 4096


class NotTried(CannotRun):
    """Reason why files are not copied for a trial, such as their size."""


@contextmanager
def copies_of(files: FileChanges) -> Iterator[Dict[str, str]]:
    """Yield file or folder -> its copy, as `mmguard fix` would write it with its options.

    Raises:
        NotTried, CannotCorrect, OSError: A file cannot be copied.
    """
    copies: Dict[str, str] = {}
    with temporary_folder() as folder:
        for number, (path, options) in enumerate(files):
            if _size(path) > LARGEST:
                raise NotTried(path)
            out = Path(folder, str(number))
            written = write_copies(path, out, FixOptions(**dict(options)), _link)
            for failure in written.failures:  # internal errors: not the fault of the file
                raise failure
            if written.left_out:
                raise NotTried(path)
            copies[path] = str(out / os.path.basename(path) if os.path.isfile(path) else out)
        yield copies


@contextmanager
def copies_of_maps(paths: Sequence[str], options: FixOptions) -> Iterator[Dict[str, str]]:
    """Write copies of a few label maps.

    Yields:
        dict[str, str]: Final path of a copy -> its temporary path.

    Raises:
        NotTried: A readable file would be left out.
    """
    copies: Dict[str, str] = {}
    with temporary_folder() as folder:
        for number, path in enumerate(paths):
            written = Path(folder, f'{number}.png')
            try:
                with FILES.open(strip_secrets(path)) as file:
                    data = file.read()
                written.write_bytes(correct_map(data, os.path.splitext(path)[1], options).data)
            except (OSError, Unreadable):  # another rule names the files that cannot be read
                continue
            except NotCorrected as error:
                raise NotTried(path) from error
            copies[name_of_copy(path)] = str(written)
        yield copies


def name_of_copy(path: str) -> str:
    """Return the name of a label map as `mmguard fix` writes it."""
    stem, ending = os.path.splitext(path)
    return path if ending.lower() == '.png' else f'{stem}.png'


def _size(path: str) -> int:
    if os.path.isfile(path):
        return os.path.getsize(path)
    size = 0
    for place, _, names in os.walk(path):
        labels = [name for name in names if _is_text(name)]
        size += sum(max(os.path.getsize(os.path.join(place, name)), _LEAST) for name in labels)
        if size > LARGEST:
            break
    return size


def _is_text(name: str) -> bool:
    return name.lower().endswith(('.xml', '.txt', '.json'))


def _link(file: str, path: Path, stays_link: bool) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    os.symlink(os.path.realpath(file), path)


_COLOURED = ('rgb', 'rgba')


def convert_counts(summary: MapSummary, options: FixOptions) -> Optional[MapSummary]:
    """Return the counts of a scan of the written copies; ``None`` if they are not known exactly.

    Values that no option maps are kept, so that they are visible; `mmguard fix` ignores them.
    """
    counts = _as_indices(summary, options)
    if counts is None or any(not 0 <= value <= 255 for value in counts):
        return None
    other = copy(summary)
    other.raw, other.loaded, other.files_with = counts, dict(counts), {}
    for value, files in summary.files_with.items():
        new = options.label_of(value)
        other.files_with[new] = max(files, other.files_with.get(new, 0))
    other.forms = {'gray8': sum(summary.forms.values())}
    other.lossy = other.gray_in_colour = other.black_palettes = other.uncounted = other.invalid_looked_at = (
        other.invalid_between
    ) = 0
    other.changes, other.fractions, other.colours, other.form_examples, other.examples = {}, {}, {}, {}, {}
    other.all_void = Examples()
    return other


def _as_indices(summary: MapSummary, options: FixOptions) -> Optional[Dict[int, int]]:
    """Return class index -> pixels."""
    if summary.lossy and options.threshold is None:
        return None
    if summary.fractions or options.scale is not None:
        return _scale_counts(summary, options)
    coloured = sum(summary.forms.get(form, 0) for form in _COLOURED)
    channels = coloured + summary.forms.get('gray_alpha', 0)
    counts: Dict[int, int] = {}
    if options.colours:
        # In a mixed folder, gray and colour values can be separated only if no colour is gray.
        apart = not summary.gray_in_colour or coloured == sum(summary.forms.values())
        if summary.uncounted or len(summary.colours) >= MAX_COLOURS or not apart:
            return None
        for name, count in summary.colours.items():
            index = options.colours.get(_rgb(name))
            if index is None:
                return None
            index = apply_label_map(options.label_map, index, options.ignore_index)
            counts[index] = counts.get(index, 0) + count
        if coloured == sum(summary.forms.values()):
            return counts
    elif channels != summary.gray_in_colour:
        return None
    for value, count in summary.raw.items():
        index = options.label_of(value)
        counts[index] = counts.get(index, 0) + count
    return counts


def _scale_counts(summary: MapSummary, options: FixOptions) -> Optional[Dict[int, int]]:
    """Return the counts of files whose values are fractions, or are scaled."""
    if options.scale is None or len(summary.fractions) >= FEW_FRACTIONS or set(summary.forms) != {'float'}:
        return None
    values: Dict[float, int] = {float(value): count for value, count in summary.raw.items()}
    for text, count in summary.fractions.items():
        values[int(float(text))] -= count  # the fraction was counted at its truncated value
        values[float(text)] = count
    counts: Dict[int, int] = {}
    for value, count in values.items():
        scaled = value * options.scale
        # Fractions are recorded with six digits.
        if abs(scaled - round(scaled)) > 1e-5 * options.scale:
            return None
        if count:
            index = options.label_of(round(scaled))
            counts[index] = counts.get(index, 0) + count
    return counts


def _rgb(name: str) -> Colour:
    red, green, blue = map(int, name.split(','))
    return red, green, blue
