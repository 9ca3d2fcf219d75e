"""The scan on the screen: what is wrong first, then what was seen."""

from __future__ import annotations

from typing import Dict, List, Sequence

from mmguard.findings import LabelFacts
from mmguard.findings.views import has_config
from mmguard.text.console import Console, Table, Text
from mmguard.text.words import counted
from mmguard.tools.on_screen import finding_on_screen
from mmguard.tools.scan.names import printable
from mmguard.tools.scan.nnunet.render import show_cases
from mmguard.tools.scan.run import SetResult

#: What says how the files are to be read.
_OF_READERS = {'MG121'}
#: Shown for palette files whose reader is not known, whatever is found.
_OF_PALETTES = (
    "The files are palette PNGs: cv2.imread would read their colours, `.convert('L')` the brightness of these, "
    '`np.array(Image.open(path))` reads labels.'
)
_MOST_ROWS = 40
_MOST_FILES = 10
_BAR = 24


def show(console: Console, result: SetResult, verbose: bool = False) -> None:
    """Prints what was found in one data set; ``verbose``: with all edits and notes."""
    facts = result.facts
    console.rule(Text(printable(result.name), style='bold'))
    for note in result.notes:
        console.print(Text(f'note: {printable(note)}', style='dim'))
    console.print(Text(_seen(result)))
    for finding in result.findings:
        console.print(finding_on_screen(finding, '\n', verbose))
    if result.findings:
        if _hides_indices(result):
            console.print(Text(f'\nnote: {_OF_PALETTES}', style='dim'))
        console.print()
    elif result.said_before:
        console.print(Text(f'Nothing more: {", ".join(dict.fromkeys(result.said_before))} above.'))
    else:
        console.print(Text('Nothing found.', style='bold green'))
    if facts.maps is not None:
        for fault, files in facts.maps.unreadable.items():
            number = facts.maps.counts.get(f'unreadable {fault}', len(files))
            console.print(Text(f'{fault}: {counted(number, "file")}, first: {", ".join(files[:3])}', style='yellow'))
    if facts.histogram:
        console.print(_histogram(facts))
    if facts.volumes is not None:
        show_cases(console, facts.volumes)
    elif result.worst:
        console.print(_worst(result))


def _hides_indices(result: SetResult) -> bool:
    """Whether the files are palette PNGs, nobody knows what reads them, and no finding says so already."""
    maps, said = result.facts.maps, {finding.code for finding in result.findings}
    return maps is not None and 'palette8' in maps.forms and not has_config(result.facts) and not said & _OF_READERS


def show_failed(console: Console, failed: Sequence[str]) -> None:
    """Prints which data sets could not be opened, and why."""
    for failure in failed:
        console.print(Text(f'could not run: {printable(failure)}', style='bold red'))


def _seen(result: SetResult) -> str:
    facts = result.facts
    known = f', {result.reused:,} of them unchanged since the last scan' if result.reused else ''
    invalid = sum(facts.values.values()) + sum(n for reason, n in facts.reasons.items() if reason != 'label')
    # Nobody said how many classes there are.
    unknown = facts.num_classes == 256 and not facts.class_names
    classes = f'any value below {facts.num_classes:,} is valid' if unknown else counted(facts.num_classes, 'class')
    return (
        f'{counted(facts.files, "file")}{known}; {facts.total:,} {facts.kind}, {invalid:,} of them invalid in '
        f'{counted(facts.offending_files, "file")}; {classes}'
    )


def _histogram(facts: LabelFacts) -> Table:
    seen = facts.maps or facts.volumes or facts.annotations
    by_label = seen.files_with_class if seen is not None else {}
    seen_otherwise = facts.loader is not None and facts.loader.differing
    title = (
        'labels as this scan counts them; training sees others' if seen_otherwise else 'labels as training sees them'
    )
    table = Table(title=title, title_justify='left', show_edge=False, pad_edge=False)
    for heading in ('label', 'name'):
        table.add_column(heading)
    for heading in (facts.kind, 'share', 'files'):
        table.add_column(heading, justify='right')
    table.add_column('')
    rows: Dict[int, int] = dict(sorted(facts.histogram.items()))
    for missing in range(min(facts.num_classes, 256)) if len(facts.class_names) == facts.num_classes else ():
        rows.setdefault(missing, 0)
    whole, most = max(1, sum(rows.values())), max(rows.values())
    # Invalid labels are never among those left out.
    shown = sorted(rows, key=lambda label: (label not in facts.values, label))[:_MOST_ROWS]
    for label in sorted(shown):
        count = rows[label]
        style = 'red' if label in facts.values else 'dim' if label == facts.ignore_index or not count else ''
        cells: List[str] = [str(label), _name(label, facts), f'{count:,}', f'{100 * count / whole:.2f} %']
        cells += [f'{by_label[label]:,}' if label in by_label else '', '█' * round(_BAR * count / most)]
        table.add_row(*(Text(cell) for cell in cells), style=style)
    if len(rows) > len(shown):
        table.add_row(Text('...'), Text(f'{len(rows) - len(shown)} more'))
    return table


def _name(label: int, facts: LabelFacts) -> str:
    name = printable(facts.name_of(label))
    if label in facts.values:
        return f'invalid: {name}' if name else 'invalid'
    return 'ignored' if label == facts.ignore_index else name


def _worst(result: SetResult) -> Table:
    table = Table(title='worst files', title_justify='left', show_edge=False, pad_edge=False)
    table.add_column('file', overflow='fold')
    table.add_column('invalid', justify='right')
    table.add_column('values in the file (times)')
    for file in result.worst[:_MOST_FILES]:
        # Of colour files nothing is known but what the loader makes of them.
        values = ', '.join(f'{value} ({count:,})' for value, count in (file['stored'] or file['values']).items())
        table.add_row(Text(file['file']), Text(f'{file["invalid"]:,}'), Text(values))
    return table
