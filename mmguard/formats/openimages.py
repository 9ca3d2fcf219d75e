"""OpenImages: boxes in a csv file, as fractions of the image size."""

from __future__ import annotations

import csv
import os
from collections import Counter
from itertools import islice
from typing import Dict, Iterator, List, Optional, Sequence, Tuple

from mmguard.files.containment import find_inside
from mmguard.files.regular import open_regular
from mmguard.findings.facts import AnnotationFacts, LabelFacts
from mmguard.formats.faults import Faults
from mmguard.formats.files import find_missing_files
from mmguard.formats.format import Format
from mmguard.formats.table import NO_NUMBER, facts_of, table_of_names
from mmguard.text import shorten


class OpenImages(Format):
    """A csv of boxes and one of classes, which only an mmdet config names together."""

    name = 'openimages'

    def detect(self, target: str) -> bool:
        return False


#: Column indices that mmdet reads, regardless of the header.
_LABEL, _LEFT, _RIGHT, _TOP, _BOTTOM, _COLUMNS = 2, 4, 5, 6, 7, 13
#: Common values of the columns after the box.
_FLAGS = {'0', '1', '-1'}
_RECORD_ADVICE = (
    'Correct the rows listed, or download the file again: a label of the label file, corners that are numbers and '
    'flags that are integers.'
)


def scan_openimages(
    ann_file: str,
    label_file: str,
    num_classes: Optional[int] = None,
    images: Optional[str] = None,
) -> LabelFacts:
    """Read the boxes of OpenImages. Never raise because of the content of the files.

    Boxes are checked as fractions: the inside of an image is (0, 1). A label is a line index of ``label_file``, which
    is ``class-descriptions-boxable.csv``; missing images are reported if ``images`` is given.

    Returns:
        LabelFacts: ``kind='instances'``; examples show fractions as in the file.
    """
    faults = Faults()
    annotations = AnnotationFacts(format='openimages', labelled_by='class list', names_from='')
    annotations.record_advice = _RECORD_ADVICE
    ids = [(row[0], row[1]) for _, row in _read_rows(label_file, 2, faults)]
    mids, names = [mid for mid, _ in ids], [name for _, name in ids]
    place_of: Dict[str, int] = {}
    rows: List[Tuple[int, str, Tuple[float, ...]]] = []
    source = os.path.basename(ann_file)
    for number, row in _read_rows(ann_file, _COLUMNS, faults, headers=1):
        if not _FLAGS.issuperset(row[_BOTTOM + 1 : _COLUMNS]):
            _check_flags(row, f'{source}: row {number}', faults)
        try:
            corners = tuple(float(row[side]) for side in (_LEFT, _TOP, _RIGHT, _BOTTOM))
        except ValueError:
            faults.add(
                'a corner is not a number: mmdet stops here',
                f'{source}: row {number}: {shorten(row[_LEFT : _BOTTOM + 1])}',
            )
            corners = (NO_NUMBER,) * 4
        rows.append((place_of.setdefault(f'{row[0]}.jpg', len(place_of)), row[_LABEL], corners))
    rows_of = Counter(mid for _, mid, _ in rows)
    unknown = sorted(set(rows_of) - set(mids))
    for mid in unknown:
        faults.add('a label is not in the label file: mmdet stops here', f'{source}: {shorten(mid)}')
    table = table_of_names(list(place_of), [(1.0, 1.0)] * len(place_of), rows, mids, mids)
    table.categories = names
    annotations.categories = dict(enumerate(names))
    annotations.left_out_names = {mid: rows_of[mid] for mid in unknown}
    if images is not None:
        annotations.missing, annotations.missing_files = find_missing_files(images, list(place_of), faults)
        folder = images
        table.path_of = lambda place: find_inside(folder, table.images[place])
    facts = facts_of(table, num_classes, names, annotations)
    annotations.over_edge = 0  # an edge of one pixel has no meaning for fractions
    annotations.box_examples.pop('over_edge', None)
    annotations.unreadable = faults.to_dict()
    return facts


def _check_flags(row: Sequence[str], where: str, faults: Faults) -> None:
    for flag in row[_BOTTOM + 1 : _COLUMNS]:
        try:
            int(flag)
        except ValueError:
            faults.add('a flag (IsOccluded, ...) is not an integer: mmdet stops here', f'{where}: {shorten(flag)}')


def _read_rows(path: str, columns: int, faults: Faults, headers: int = 0) -> Iterator[Tuple[int, List[str]]]:
    """Yield index and columns of the rows after the header that have enough columns."""
    source = os.path.basename(path) or path
    empty = True
    try:
        with open_regular(path) as binary:
            lines = (line.decode('utf-8') for line in binary)
            for number, row in islice(enumerate(csv.reader(lines), 1), headers, None):
                empty = False
                if len(row) < columns:
                    faults.add(f'a row has fewer than {columns} columns', f'{source}: row {number}')
                else:
                    yield number, row
    except UnicodeDecodeError:
        faults.add('is not UTF-8', source)
    except csv.Error as error:
        faults.add(f'is not a csv: {error}', source)
    except (OSError, ValueError) as error:
        faults.add(f'cannot be opened: {getattr(error, "strerror", None) or error}', source)
    if empty:
        faults.add('the file is empty', source)
