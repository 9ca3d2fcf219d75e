"""Output of a scan on the screen, as JSON and as an HTML page."""

from __future__ import annotations

import io
import os
import sys
from dataclasses import asdict, replace
from math import log
from statistics import median
from typing import Any, Dict, List, Optional, Sequence, Tuple

from mmguard.commands.console import Console, Table, Text, render_finding
from mmguard.commands.spinner import Spinner
from mmguard.facts.volumes import VolumeFacts
from mmguard.files.containment import locate_file
from mmguard.findings import LabelFacts
from mmguard.findings.messages import unpack
from mmguard.formats.faults import make_printable
from mmguard.formats.format import Source
from mmguard.language import Message, as_message, join, translate
from mmguard.scanning.run import SetResult
from mmguard.text import align_right, quantity


class ScanProgress:
    """Progress of a scan in the text of a spinner: the number of files read and, on a terminal, of all files."""

    def __init__(self, spinner: Spinner) -> None:
        self._spinner = spinner
        self._name = ''
        self._done = 0
        self._total: Optional[int] = None

    def start(self, source: Source) -> None:
        """Start counting the files of a source."""
        self._name, self._done = make_printable(source.name), 0
        self._total = source.count() if self._spinner.is_terminal else None

    def advance(self, files: int) -> None:
        self._done += files
        total = () if self._total is None else (f'{self._total:,}',)
        self._spinner.text = translate(join(': ', (self._name, join(' / ', (quantity(self._done, 'file'), *total)))))


#: Maximum number of cases, table rows and files on the screen; ``--json`` writes all.
_MOST_CASES, _MOST_ROWS, _MOST_FILES = 60, 40, 10
#: Width of the longest bar, and of a table without bars, in columns.
_BAR, _WITHOUT_BAR = 24, 56


def name_from_here(results: Sequence[SetResult]) -> None:
    """Make the names of files inside the working directory relative to it, so that editors and programs open them."""
    for result in results:

        def name(file: str, roots: Sequence[str] = result.roots) -> str:
            for known in (file, file.partition(': ')[0]):  # a place in the file may follow
                path = locate_file(known, roots)
                if path and not os.path.isabs(path) and not path.startswith(os.pardir):
                    return path + file[len(known) :]
            return file

        result.findings = [replace(one, files=tuple(map(name, one.files))) for one in result.findings]
        result.worst = [{**file, 'file': name(file['file'])} for file in result.worst]
        offending = result.facts.offending
        for first in list(offending)[:1]:  # all names are relative to one folder; finding each file may take minutes
            folder = name(first)[: -len(first)] if name(first).endswith(first) else ''
            result.facts.offending = {folder + file: count for file, count in offending.items()}


def show(console: Console, result: SetResult, verbose: bool = False) -> None:
    """Print the findings of one data set; ``verbose`` adds all edits and notes."""
    facts = result.facts
    console.rule(Text(make_printable(result.name), style='bold'))
    for note in result.notes:
        console.print(Text(make_printable(translate('note: {note}', note=as_message(note))), style='dim'))
    console.print(Text(_describe_counts(result)))
    for finding in result.findings:
        console.print(render_finding(finding, '\n', verbose))
    if result.findings:
        console.print()
    elif result.said_before:
        codes = ', '.join(dict.fromkeys(result.said_before))
        console.print(Text(translate('No other findings: see {codes} above.', codes=codes)))
    elif not result.hidden:
        console.print(Text(translate('Nothing found.'), style='bold green'))
    if facts.maps is not None:
        for fault, files in facts.maps.unreadable.items():
            number = facts.maps.counts.get(f'unreadable {fault}', len(files))
            named = dict(fault=as_message(fault), number=quantity(number, 'file'), files=', '.join(files[:3]))
            console.print(Text(translate('{fault}: {number}, first: {files}', **named), style='yellow'))
    if facts.histogram:
        console.print(_format_histogram(facts, max(0, min(_BAR, console.width - _WITHOUT_BAR))))
    _show_class_weights(console, facts)
    if facts.volumes is not None:
        show_cases(console, facts.volumes)
    elif result.worst:
        console.print(_find_worst(result))


def show_failed(console: Console, failed: Sequence[str]) -> None:
    """Print the data sets that could not be opened, with the reasons."""
    for failure in failed:
        console.print(Text(translate('could not run: {failure}', failure=make_printable(failure)), style='bold red'))


def as_text(results: Sequence[SetResult], failed: Sequence[str], width: int = 100) -> str:
    """Return the text that `mmguard scan` prints for the data sets."""
    lines = io.StringIO()
    console = Console(file=lines, width=width, soft_wrap=True)
    for result in results:
        show(console, result)
    show_failed(console, failed)
    return lines.getvalue()


def _describe_counts(result: SetResult) -> str:
    facts = result.facts
    invalid = sum(facts.values.values()) + sum(n for reason, n in facts.reasons.items() if reason != 'label')
    classes = quantity(facts.num_classes, 'class')
    if not facts.has_known_classes:
        classes = Message('any value below {number:,} is valid', number=facts.num_classes)
    return translate(
        '{files}; {total:,} {kind}, {invalid:,} of them invalid in {offending}; {classes}',
        files=quantity(facts.files, 'file'),
        total=facts.total,
        kind=Message(facts.kind),
        invalid=invalid,
        offending=quantity(facts.offending_files, 'file'),
        classes=classes,
    )


def _format_histogram(labels: LabelFacts, bar: int) -> Table:
    seen = labels.maps or labels.volumes or labels.annotations
    by_label = seen.files_with_class if seen is not None else {}
    differs = labels.loader is not None and labels.loader.differing
    title = 'labels as this scan counts them, not as training sees them' if differs else 'labels as training sees them'
    table = Table(title=translate(title), title_justify='left', show_edge=False, pad_edge=False)
    table.add_column(translate('label'), no_wrap=True)
    table.add_column(translate('name'), overflow='fold')
    for heading in (labels.kind, 'share', 'files'):
        table.add_column(translate(heading), justify='right', no_wrap=True)
    if bar:
        table.add_column('')
    rows: Dict[int, int] = dict(sorted(labels.histogram.items()))
    for missing in range(min(labels.num_classes, 256)) if len(labels.class_names) == labels.num_classes else ():
        rows.setdefault(missing, 0)
    whole, most = max(1, sum(rows.values())), max(rows.values())
    # Invalid labels are always shown.
    shown = sorted(rows, key=lambda label: (label not in labels.values, label))[:_MOST_ROWS]
    for label in sorted(shown):
        count = rows[label]
        style = 'red' if label in labels.values else 'dim' if label == labels.ignore_index or not count else ''
        cells: List[str] = [str(label), _name_label(label, labels), f'{count:,}', f'{100 * count / whole:.2f} %']
        cells += [f'{by_label[label]:,}' if label in by_label else '']
        cells += [_choose_block() * round(bar * count / most)] if bar else []
        table.add_row(*(Text(cell) for cell in cells), style=style)
    if len(rows) > len(shown):
        table.add_row(Text('...'), Text(translate('{more} more', more=len(rows) - len(shown))))
    return table


def _show_class_weights(console: Console, labels: LabelFacts) -> None:
    weights = weigh_classes(labels)
    for formula, values in weights.items():
        line = f'class_weight=[{", ".join(f"{value:.4g}" for value in values)}],  # {formula}'
        console.print(Text(line), soft_wrap=True)  # one line to paste
    unseen = [label for label, count in enumerate(_count_pixels(labels)) if not count] if weights else []
    if unseen:
        named = ', '.join(map(str, unseen[:_MOST_ROWS])) + (', ...' if len(unseen) > _MOST_ROWS else '')
        console.print(Text(translate('(weight 1 for classes without a pixel: {classes})', classes=named)))


def _choose_block() -> str:
    """Return the bar character that standard output can encode."""
    encoding = getattr(sys.stdout, 'encoding', None) or 'ascii'
    try:
        '█'.encode(encoding)
    except (LookupError, UnicodeError):
        return '#'
    return '█'


def _name_label(label: int, labels: LabelFacts) -> str:
    name = make_printable(labels.name_of(label))
    if label in labels.values:
        return translate('invalid: {name}', name=name) if name else translate('invalid')
    return translate('ignored') if label == labels.ignore_index else name


def _find_worst(result: SetResult) -> Text:
    lines = []
    for file in result.worst[:_MOST_FILES]:
        # For color files, only the values after loading are known.
        values = ', '.join(f'{value} ({count:,})' for value, count in (file['stored'] or file['values']).items())
        lines.append((f'{file["invalid"]:,}', f'{file["file"]}  {values}'.rstrip()))
    heading = f'{translate("file")}  {translate("values in the file (count)")}'
    return _list_files(translate('worst files'), translate('invalid'), heading, lines)


def show_cases(console: Console, volumes: VolumeFacts) -> None:
    """Print each fault with its case, its file, its number of voxels, and its slices."""
    rows = [(fault.case, fault.file, kind, fault) for kind in volumes.faults for fault in volumes.find_faults(kind)]
    rows.sort(key=lambda row: row[:3])
    lines = [
        (f'{fault.voxels:,}' if fault.voxels else '', make_printable(': '.join(filter(None, (*names, fault.detail)))))
        for *names, fault in rows[:_MOST_CASES]
    ]
    if lines:
        console.print(_list_files('cases', 'voxels', 'case: file: what', lines))
    if len(rows) > _MOST_CASES:
        console.print(Text(f'... and {len(rows) - _MOST_CASES:,} more: --json FILE lists all', style='dim'))


def _list_files(title: str, number: str, name: str, lines: Sequence[Tuple[str, str]]) -> Text:
    """Format one line per file: a number, then the file, which is not wrapped so that it can be copied."""
    rows = [f'{align_right(one, 10)}  {file}' for one, file in ((number, name), *lines)]
    return Text('\n'.join([title, *rows]))


def as_json(target: str, results: Sequence[SetResult], failed: Sequence[str]) -> Dict[str, Any]:
    """Return the whole scan as one JSON object; empty facts are left out."""
    sets = [
        {
            'name': result.name,
            'clean': result.is_clean,
            'findings': [unpack(finding) for finding in result.findings],
            'facts': _convert_keys(_as_dict(result.facts)),
            'class_weight': weigh_classes(result.facts),
            'worst': result.worst,
            'notes': result.notes,
            'hidden': [finding.code for finding in result.hidden],
        }
        for result in results
    ]
    return {'target': target, 'datasets': sets, 'failed': list(failed)}


def _as_dict(facts: LabelFacts) -> Dict[str, Any]:
    """Return facts as plain data; facts about boxes, COCO and YOLO are in the object ``annotations``."""
    plain = asdict(replace(facts, boxed=[]))
    boxes, coco, yolo = (plain.pop(name) for name in ('boxes', 'coco', 'yolo'))
    if plain['annotations'] is not None:
        plain['annotations'].update(**boxes, **coco, yolo=yolo)
    return plain


def as_page(target: str, results: Sequence[SetResult], drawn: Optional[int] = None) -> str:
    """Return the HTML page; ``drawn`` is the number of files with pictures per data set."""
    from mmguard.commands.page.html import DRAWN, build_page

    return build_page(f'Labels of {target}', results, DRAWN if drawn is None else drawn)


def _convert_keys(value: Any) -> Any:
    """Return plain data without empty values and with strings as keys: a color becomes ``'255,0,0'``."""
    if isinstance(value, dict):
        plain: Dict[str, Any] = {}
        for key, item in value.items():
            if item not in (None, '', 0, [], {}, ()):
                plain[','.join(map(str, key)) if isinstance(key, tuple) else str(key)] = _convert_keys(item)
        return plain
    return [_convert_keys(item) for item in value] if isinstance(value, (list, tuple)) else value


#: Weight of a class without pixels, whose frequency has no inverse; 1 is the weight in a loss without class weights.
UNSEEN = 1.0


def compute_enet_weights(pixels: Sequence[int]) -> List[float]:
    """Return the weight 1 / ln(1.02 + p) of each class, where p is the class's share of all pixels.

    Weights are between 1.4 and 50.5, or 1 for a class without pixels. Source: Paszke et al., "ENet", arXiv:1606.02147.

    Example:
        >>> [round(weight, 2) for weight in compute_enet_weights([90, 10, 0])]
        [1.53, 8.82, 1.0]
    """
    total = sum(pixels)
    return [1 / log(1.02 + count / total) if count else UNSEEN for count in pixels]


def compute_median_frequency_weights(pixels: Sequence[int], pixels_of_files: Sequence[int]) -> List[float]:
    """Return the weight median(f) / f of each class, where f is its share of all pixels in files with this class.

    Source: Eigen and Fergus, "Predicting Depth, Surface Normals and Semantic Labels", arXiv:1411.4734.

    Args:
        pixels (Sequence[int]): Number of pixels of each class.
        pixels_of_files (Sequence[int]): For each class, number of all pixels in the files that contain the class.

    Example:
        >>> compute_median_frequency_weights([80, 20, 10, 0], [100, 100, 50, 0])
        [0.25, 1.0, 1.0, 1.0]
    """
    shares = [count / whole if count else 0.0 for count, whole in zip(pixels, pixels_of_files)]
    middle = median(share for share in shares if share)
    return [middle / share if share else UNSEEN for share in shares]


def weigh_classes(labels: LabelFacts) -> Dict[str, List[float]]:
    """Compute class weights from the pixels that are neither ignored nor invalid, as {formula: weights}.

    Returns:
        dict[str, list[float]]: Empty if the data set is not for training or has no valid pixel of a label map, if the
        number of classes is unknown, or if the labels of the config's loader differ from those of the scan.
    """
    is_training = not labels.split or 'train' in labels.split.split(', ')
    if labels.maps is None or not is_training or not labels.has_known_classes:
        return {}
    pixels = _count_pixels(labels)
    if not any(pixels) or (labels.loader is not None and labels.loader.differing):
        return {}
    pixels_of_files = [labels.maps.pixels_with_class.get(label, 0) for label in range(labels.num_classes)]
    median_frequency = compute_median_frequency_weights(pixels, pixels_of_files)
    return {'enet': compute_enet_weights(pixels), 'median_frequency': median_frequency}


def _count_pixels(labels: LabelFacts) -> List[int]:
    """Return the number of pixels of each class; 0 for an ignored class."""
    counts = {**labels.histogram, **({} if labels.ignore_index is None else {labels.ignore_index: 0})}
    return [counts.get(label, 0) for label in range(labels.num_classes)]
