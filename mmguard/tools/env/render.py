"""What ``mmguard env`` shows: a line per thing that is installed, then what is wrong and what to do."""

from __future__ import annotations

from typing import Any, List, Sequence

from mmguard.findings import Finding
from mmguard.findings.finding import ERROR, INFO, WARNING
from mmguard.text.console import Text
from mmguard.tools.env.table import OK, Line
from mmguard.tools.on_screen import finding_on_screen

_STYLES = {OK: 'green', INFO: 'green', WARNING: 'yellow', ERROR: 'red'}


def show(console: Any, lines: List[Line], findings: Sequence[Finding], verbose: bool = False) -> None:
    """Prints the lines, and the findings below them; ``verbose``: with all edits and notes."""
    width = max(len(line.name) for line in lines)
    for line in lines:
        codes = f'  ({", ".join(line.codes)})' if line.codes else ''
        row = ((f'{line.level:<7}', _STYLES[line.level]), f'  {line.name:<{width}}  {line.found}{codes}')
        console.print(Text.assemble(*row), soft_wrap=True)
    for finding in findings:
        console.print()
        console.print(finding_on_screen(finding, verbose=verbose), soft_wrap=True)
