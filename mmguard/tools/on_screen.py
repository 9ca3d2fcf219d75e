"""Findings on a screen, with coloured codes and code samples."""

from __future__ import annotations

from mmguard.findings.finding import ERROR, INFO, WARNING, Finding
from mmguard.findings.wording import finding_text
from mmguard.text import visible
from mmguard.tools.console import Text

_STYLES = {ERROR: 'bold red', WARNING: 'bold yellow', INFO: 'bold green'}
#: A terminal breaks lines where it ends.
_UNBROKEN = 1 << 20


def finding_on_screen(finding: Finding, before: str = '', verbose: bool = False) -> Text:
    """Format a finding over several lines, with text before its code; ``verbose``: with every edit and note."""
    code, _, rest = visible(finding_text(finding, _UNBROKEN, verbose)).partition(' ')
    cause, _, rest = rest.partition('\n')
    text = Text(before)
    text.append(f'{code} ', style=_STYLES.get(finding.severity, 'bold'))
    text.append(cause, style='bold')
    steps = {visible(f'      {step}') for edit in finding.edits for step in edit.steps}
    for row in rest.split('\n'):
        text.append(f'\n{row}', style='bold cyan' if row in steps else '')
    return text
