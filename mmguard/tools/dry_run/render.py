"""Results of properties on the screen and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, List, Sequence

from mmguard.text import visible
from mmguard.tools.console import Text
from mmguard.version import __version__

if TYPE_CHECKING:
    from mmguard.properties.suite import Tested

_STYLES = {'broken': 'bold red', 'setting': 'bold yellow', 'holds': 'bold green', 'not tested': 'dim'}
#: Parts of a property that are shown.
_SHOWN = 8


def show(console: Any, tested: Tested) -> None:
    """Print a property: its outcome, and what was seen of each part that does not simply hold."""
    line = Text()
    line.append(f'{tested.outcome:>10} ', style=_STYLES[tested.outcome])
    line.append(f'{tested.summary} ({tested.name})')
    console.print(line, soft_wrap=True)
    results = [result for result in tested.results if result.outcome != 'holds']
    for result in results[:_SHOWN]:
        mark = '' if result.outcome == tested.outcome else f'{result.outcome}: '
        because = 'because ' if result.outcome == 'not tested' else ''
        subject = f'{result.subject}: ' if result.subject else ''
        console.print(visible(f'           {mark}{subject}{because}{result.evidence}'), soft_wrap=True)
    if len(results) > _SHOWN:
        console.print(f'           and {len(results) - _SHOWN} more (--json)')


def show_total(console: Any, tested: Sequence[Tested]) -> None:
    """Print how many properties have each outcome."""
    counts = {outcome: sum(one.outcome == outcome for one in tested) for outcome in _STYLES}
    words = ', '.join(f'{count} {outcome}' for outcome, count in counts.items() if count)
    console.print(f'\n{len(tested)} properties in {sum(one.seconds for one in tested):.0f} s: {words}')


def as_json(config: str, tested: Sequence[Tested]) -> Dict[str, Any]:
    """Return the same for programs."""
    properties: List[Dict[str, Any]] = [
        {
            'name': one.name,
            'summary': one.summary,
            'outcome': one.outcome,
            'seconds': round(one.seconds, 2),
            'results': [
                {'outcome': r.outcome, 'subject': r.subject, 'evidence': r.evidence, 'data': dict(r.data)}
                for r in one.results
            ],
        }
        for one in tested
    ]
    return {'mmguard': __version__, 'config': config, 'properties': properties}
