"""Results of properties on the screen and as JSON."""

from __future__ import annotations

import io
from typing import Any, Dict, List, Sequence

from mmguard.findings.finding import ERROR, INFO, PROVEN, Finding
from mmguard.properties.suite import PROPERTIES, PropertyRecord
from mmguard.text import quantity, visible
from mmguard.tools.console import Console, Text
from mmguard.version import __version__

_STYLES = {'broken': 'bold red', 'setting': 'bold yellow', 'holds': 'bold green', 'not tested': 'dim'}
#: Maximum number of parts of a property that are shown.
_SHOWN = 8


def show(console: Any, record: PropertyRecord) -> None:
    """Print a property: its outcome, and the results for each part where it does not simply hold."""
    line = Text()
    line.append(f'{record.outcome:>10} ', style=_STYLES[record.outcome])
    line.append(f'{record.summary} ({record.name})')
    console.print(line, soft_wrap=True)
    results = [result for result in record.results if result.outcome != 'holds']
    for result in results[:_SHOWN]:
        mark = '' if result.outcome == record.outcome else f'{result.outcome}: '
        because = 'because ' if result.outcome == 'not tested' else ''
        subject = f'{result.subject}: ' if result.subject else ''
        console.print(visible(f'           {mark}{subject}{because}{result.evidence}'), soft_wrap=True)
    if len(results) > _SHOWN:
        console.print(f'           and {len(results) - _SHOWN} more (--json)')
    if get_advice(record):
        console.print(f'           do: {get_advice(record)}', soft_wrap=True)


def get_advice(record: PropertyRecord) -> str:
    """Return what to do if a property is broken; empty if it is not."""
    return PROPERTIES[record.name].advice if record.outcome == 'broken' else ''


def show_total(console: Any, records: Sequence[PropertyRecord]) -> None:
    """Print the number of properties per outcome."""
    counts = {outcome: sum(one.outcome == outcome for one in records) for outcome in _STYLES}
    words = ', '.join(f'{outcome}: {count}' for outcome, count in counts.items() if count)
    seconds = sum(one.seconds for one in records)
    console.print(f'\n{quantity(len(records), "property", "properties")} in {seconds:.0f} s; {words}')


def as_json(config: str, records: Sequence[PropertyRecord]) -> Dict[str, Any]:
    """Return the results as plain data for programs."""
    properties = [
        {
            **one._asdict(),
            'advice': get_advice(one),
            'seconds': round(one.seconds, 2),
            'results': [found._asdict() for found in one.results],
        }
        for one in records
    ]
    return {'mmguard': __version__, 'config': config, 'properties': properties}


def build_findings(records: Sequence[PropertyRecord]) -> List[Finding]:
    """Return broken properties as errors and settings as remarks, with the name of the property as code."""
    severities = {'broken': ERROR, 'setting': INFO}
    return [
        Finding(
            one.name, f'{found.outcome}: {one.summary}.', str(found), get_advice(one), PROVEN, severities[found.outcome]
        )
        for one in records
        for found in one.results
        if found.outcome in severities
    ]


def as_text(records: Sequence[PropertyRecord]) -> str:
    """Return the output of the command."""
    lines = io.StringIO()
    console = Console(file=lines)
    for one in records:
        show(console, one)
    show_total(console, records)
    return lines.getvalue()
