"""Findings for readers and for programs."""

from __future__ import annotations

import textwrap
from typing import Any, Dict, List, Sequence

from mmguard.diagnosis.finding import Finding


def unpack(finding: Finding) -> Dict[str, Any]:
    """A finding as plain data, for JSON. ``lines`` are the config lines and commands of the advice."""
    return {
        'code': finding.code,
        'severity': finding.severity,
        'likelihood': round(finding.likelihood, 3),
        'cause': finding.cause,
        'evidence': finding.evidence,
        'files': list(finding.files),
        'values': {str(value): count for value, count in sorted(finding.values.items())},
        'advice': finding.advice,
        'lines': finding.lines,
    }


def finding_text(finding: Finding, width: int = 100) -> str:
    """A finding over several lines: cause, evidence with files and values, and what to write.

    Args:
        width (int): Longest line; what stands in backticks is never broken.
    """
    rows = _wrapped(f'{finding.code} {finding.severity}: {finding.cause}', width, '')
    rows += _wrapped(f'seen: {finding.evidence}', width, '  ')
    if finding.files:
        rows += _wrapped('in: ' + ', '.join(finding.files), width, '  ')
    rows += _wrapped(f'do: {finding.advice}', width, '  ')
    return '\n'.join(rows)


def findings_text(findings: Sequence[Finding], width: int = 100) -> str:
    """All findings, the most likely first, a blank line between them."""
    return '\n\n'.join(finding_text(finding, width) for finding in findings)


def _wrapped(text: str, width: int, indent: str) -> List[str]:
    # A command that is broken over lines cannot be copied: its spaces are hidden from the wrapping.
    parts = text.split('`')
    hidden = '`'.join(part.replace(' ', '\0') if i % 2 else part for i, part in enumerate(parts))
    rows = textwrap.wrap(
        hidden,
        max(width, 20),
        initial_indent=indent,
        subsequent_indent=indent + ('  ' if indent else ''),
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [row.replace('\0', ' ') for row in rows]
