"""Console of rich that escapes invisible characters, and the format of findings on the screen.

The commands need rich, which the ``[scan]`` extra installs; a training does not.
"""

from __future__ import annotations

from typing import Any, Iterator

from rich.console import Console as _Console
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from mmguard.findings.finding import ERROR, INFO, WARNING, Finding
from mmguard.findings.messages import UNBROKEN, format_finding
from mmguard.text import visible

__all__ = ['Console', 'Table', 'Text', 'render_finding']

_STYLES = {ERROR: 'bold red', WARNING: 'bold yellow', INFO: 'bold green'}


class Console(_Console):
    """``rich.Console`` that escapes control characters, and neither interprets markup nor highlights text."""

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, highlight=False, **options)

    def render(self, *arguments: Any, **options: Any) -> Iterator[Segment]:
        """Yield rich's segments with every invisible character escaped."""
        for segment in super().render(*arguments, **options):
            yield segment if segment.control else Segment(visible(segment.text), segment.style)


def render_finding(finding: Finding, before: str = '', verbose: bool = False) -> Text:
    """Format a finding as lines, of which the first begins with ``before``; ``verbose`` adds every edit and note."""
    code, _, rest = visible(format_finding(finding, UNBROKEN, verbose)).partition(' ')
    cause, _, rest = rest.partition('\n')
    text = Text(before)
    text.append(f'{code} ', style=_STYLES.get(finding.severity, 'bold'))
    text.append(cause, style='bold')
    steps = {visible(f'      {step}') for edit in finding.edits for step in edit.steps}
    for row in rest.split('\n'):
        text.append(f'\n{row}', style='bold cyan' if row in steps else '')
    return text
