"""Results of properties on the screen, as JSON and as an HTML page."""

from __future__ import annotations

import html
import io
from pathlib import Path
from typing import Any, Dict, List, Sequence

import mmguard.tools.page as page
from mmguard.files.regular import read_regular
from mmguard.findings.finding import ERROR, INFO, PROVEN, Finding
from mmguard.properties.suite import PROPERTIES, PropertyRecord
from mmguard.text import quantity, visible
from mmguard.tools.console import Console, Text
from mmguard.version import __version__

_STYLES = {'broken': 'bold red', 'setting': 'bold yellow', 'holds': 'bold green', 'not tested': 'dim'}
_TONES = {'broken': 'error', 'setting': 'warning', 'holds': 'fine', 'not tested': 'info'}
#: Maximum number of parts of a property that are shown.
_SHOWN = 8
_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<title>mmguard: dry-run of {config}</title><style>{style}</style></head>
<body><main><h1>{config}</h1><p class="soft small">mmguard {version}</p>{parts}</main></body></html>
"""


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
    """Return the results as plain data for programs, without pictures."""
    properties: List[Dict[str, Any]] = []
    for one in records:
        results = [found._asdict() for found in one.results]
        for result in results:
            result['data'] = {key: value for key, value in result['data'].items() if key != 'picture'}
        properties.append(
            {**one._asdict(), 'advice': get_advice(one), 'seconds': round(one.seconds, 2), 'results': results}
        )
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


def as_page(config: str, records: Sequence[PropertyRecord]) -> str:
    """Return the results as one HTML document, with a picture of each failure that has one."""
    parts = []
    for one in records:
        parts.append(f'<div class="card verdict {_TONES[one.outcome]}"><strong>{one.outcome}</strong> {one.summary}')
        for found in one.results:
            words = html.escape(visible(f'{found.outcome}: {found}'))
            picture = str(found.data.get('picture', ''))
            figure = f'<img class="pixels" width="480" src="{html.escape(picture)}" alt="">' if picture else ''
            parts.append(f'<p class="small">{words}</p>{figure}')
        if get_advice(one):
            parts.append(f'<p>{html.escape(get_advice(one))}</p>')
        parts.append('</div>')
    style = read_regular(Path(str(page.__file__)).parent / 'templates' / 'page.css').decode()
    name = html.escape(visible(config))
    return _PAGE.format(config=name, style=style, version=__version__, parts=''.join(parts))
