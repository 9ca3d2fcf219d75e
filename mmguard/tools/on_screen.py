"""A finding on a screen: the words of every text, its code and what is to be written in colour."""

from __future__ import annotations

from mmguard.findings.finding import ERROR, INFO, WARNING, Finding
from mmguard.findings.wording import finding_text
from mmguard.text.console import Text
from mmguard.text.visible import visible

_STYLES = {ERROR: 'bold red', WARNING: 'bold yellow', INFO: 'bold green'}
#: A terminal breaks lines where it ends.
_UNBROKEN = 1 << 20


def finding_on_screen(finding: Finding, before: str = '', verbose: bool = False) -> Text:
    """A finding over several lines.

    Args:
        finding (Finding): It.
        before (str): Words in front of its code.
        verbose (bool): Every edit and every note; ``False``: three sentences.
    """
    code, _, rest = visible(finding_text(finding, _UNBROKEN, verbose)).partition(' ')
    cause, _, rest = rest.partition('\n')
    text = Text(before)
    text.append(f'{code} ', style=_STYLES.get(finding.severity, 'bold'))
    text.append(cause, style='bold')
    # Lines to write stand in backticks.
    for number, part in enumerate(f'\n{rest}'.split('`')):
        text.append(part, style='bold cyan' if number % 2 else '')
    return text
