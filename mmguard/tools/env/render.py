"""Plain text of what is installed, a line each, then what is wrong and what to do: rich may be what is broken."""

from __future__ import annotations

from typing import List, Sequence

from mmguard.findings import Finding
from mmguard.findings.wording import finding_text
from mmguard.text.visible import visible
from mmguard.tools.env.table import Line

#: A terminal breaks lines where it ends.
_UNBROKEN = 1 << 20


def show(lines: List[Line], findings: Sequence[Finding], verbose: bool = False) -> None:
    """Print the lines and the findings; ``verbose``: with all edits and notes."""
    width = max(len(line.name) for line in lines)
    for line in lines:
        codes = f'  ({", ".join(line.codes)})' if line.codes else ''
        print(visible(f'{line.level:<7}  {line.name:<{width}}  {line.found}{codes}'))
    for finding in findings:
        print(visible(f'\n{finding_text(finding, _UNBROKEN, verbose)}'))
