"""Results of ``dry-run`` on the screen and as JSON."""

from __future__ import annotations

import io
from typing import Any, Dict, Iterator, List, Sequence, Tuple

from mmguard.commands.console import Console, Text
from mmguard.findings.finding import ERROR, INFO, PROVEN, Finding
from mmguard.properties.result import OUTCOMES
from mmguard.properties.suite import PropertyRecord
from mmguard.text import quantity, visible
from mmguard.version import __version__

_STYLES = {'broken': 'bold red', 'not run': 'bold yellow', 'ran': 'bold green', 'note': 'dim'}
#: Maximum number of lines per property and outcome, and of names of parts per line.
_SHOWN, _NAMED = 8, 4
#: Faults that a dry run cannot detect.
BLIND_SPOTS = (
    'left/right flips of content, permuted validation files, BGR in training only, augmentations that depend on '
    'content, and faults that occur only in eval mode, with several GPUs or in worker processes'
)


def show(console: Any, records: Sequence[PropertyRecord], seconds: float) -> None:
    """Print the results grouped by outcome, the worst first, then the counts of outcomes and ``BLIND_SPOTS``."""
    for outcome in OUTCOMES:
        for record in records if outcome != 'not run' else ():
            lines = [f'{record.name}: {line}' for line in _group(record, outcome)]
            _print(console, outcome, lines)
            if outcome == 'broken' and lines:
                console.print(f'         do: {record.advice}', soft_wrap=True)
        if outcome == 'not run':
            _print(console, outcome, list_reasons(records))
    counts = {outcome: sum(one.outcome == outcome for one in records) for outcome in OUTCOMES}
    words = ', '.join(f'{outcome}: {count}' for outcome, count in counts.items() if count)
    number = quantity(len(records), 'property', 'properties')
    console.print(f'\n{seconds:.0f} s; {number} ({words}). No dry run can see: {BLIND_SPOTS}.', soft_wrap=True)


def _print(console: Any, outcome: str, lines: Sequence[str]) -> None:
    for line in lines[:_SHOWN]:
        label = outcome if outcome == 'note' else outcome.upper()
        console.print(Text.assemble((f'{label:8} ', _STYLES[outcome]), visible(line)), soft_wrap=True)
    if len(lines) > _SHOWN:
        console.print(f'         and {len(lines) - _SHOWN} more (--json)')


def _group(record: PropertyRecord, outcome: str) -> Iterator[str]:
    """Yield a line per distinct evidence among the results with this outcome: its subjects, then the evidence."""
    groups: Dict[str, List[str]] = {}
    for result in record.results:
        if result.outcome == outcome:
            groups.setdefault(result.evidence, []).append(result.subject)
    for evidence, subjects in groups.items():
        named = ', '.join(filter(None, subjects[:_NAMED]))
        named += f' and {len(subjects) - _NAMED} more' if len(subjects) > _NAMED else ''
        yield f'{named}: {evidence}' if named and evidence else named or evidence


def list_reasons(records: Sequence[PropertyRecord]) -> List[str]:
    """Return why properties were not run, one line for each reason."""
    reasons: Dict[Tuple[str, str], List[str]] = {}
    for record in records:
        for result in record.results:
            if result.outcome == 'not run':
                names = reasons.setdefault((result.subject, result.evidence), [])
                names += [] if record.name in names else [record.name]
    return [f'{", ".join(names)}: {": ".join(filter(None, reason))}' for reason, names in reasons.items()]


def as_json(config: str, records: Sequence[PropertyRecord], seconds: float) -> Dict[str, Any]:
    """Return the results as plain data for ``--json``."""
    properties = [
        {**one._asdict(), 'seconds': round(one.seconds, 2), 'results': [found._asdict() for found in one.results]}
        for one in records
    ]
    known = dict(config=config, seconds=round(seconds, 2), properties=properties)
    return {'mmguard': __version__, **known, 'not_seen': BLIND_SPOTS}


def build_findings(records: Sequence[PropertyRecord]) -> List[Finding]:
    """Return a finding per broken result (an error) and per note (a remark), with the property's name as code."""
    severities, findings = {'broken': ERROR, 'note': INFO}, []
    for one in records:
        for found in one.results:
            if found.outcome in severities and found.data.get('tested', True):
                title, severity = f'{found.outcome}: {one.summary}.', severities[found.outcome]
                findings.append(Finding(one.name, title, str(found), one.advice, PROVEN, severity))
    return findings


def as_text(records: Sequence[PropertyRecord], seconds: float) -> str:
    """Return the text that `mmguard dry-run` prints for the results."""
    lines = io.StringIO()
    show(Console(file=lines), records, seconds)
    return lines.getvalue()
