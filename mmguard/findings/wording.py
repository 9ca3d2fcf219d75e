"""Findings for readers and for programs."""

from __future__ import annotations

import itertools
import shlex
import textwrap
from dataclasses import replace
from typing import Any, Dict, List, Sequence

from mmguard.config.changes import REMOVED
from mmguard.findings.brief import brief
from mmguard.findings.edits import MANUAL, Edit
from mmguard.findings.finding import Finding, plain


def unpack(finding: Finding) -> Dict[str, Any]:
    """A finding as plain data, for JSON. ``lines`` are the config lines and commands of the advice."""
    return {
        'code': finding.code,
        'severity': finding.severity,
        'likelihood': round(finding.likelihood, 3),
        'cause': finding.cause,
        'evidence': finding.evidence,
        'places': list(finding.places),
        'value': plain(finding.value),
        'files': list(finding.files),
        'values': {str(value): count for value, count in sorted(finding.values.items())},
        'advice': finding.advice,
        'lines': finding.lines,
        'edits': [_unpack_edit(edit) for edit in finding.edits],
    }


def _unpack_edit(edit: Edit) -> Dict[str, Any]:
    return {
        'number': edit.number or None,
        'text': edit.text,
        'applicability': edit.applicability,
        'question': edit.question,
        'config': {path: 'removed' if value is REMOVED else plain(value) for path, value in edit.config},
        'options': {name: plain(value) for name, value in edit.options},
        'environment': {name: 'removed' if value is None else value for name, value in edit.environment},
        'files': {path: {name: plain(_table(value)) for name, value in changes} for path, changes in edit.files},
    }


def _table(value: Any) -> Any:
    """A table is written as pairs in an edit, which cannot change, and as a table for `mmguard fix`."""
    is_table = isinstance(value, tuple) and all(isinstance(pair, tuple) and len(pair) == 2 for pair in value)
    return {_key(key): label for key, label in value} if is_table and value else value


def _key(key: Any) -> str:
    return ','.join(map(str, key)) if isinstance(key, tuple) else str(key)


def finding_text(finding: Finding, width: int = 100, verbose: bool = True) -> str:
    """A finding over several lines: cause, evidence with files and values, and what to write.

    Args:
        width (int): Longest line; what stands in backticks is never broken.
        verbose (bool): Every edit and every note; ``False``: in three sentences.
    """
    short = brief(finding)
    rows = _wrapped(f'{finding.code} {finding.severity}: {finding.cause if verbose else short.cause}', width, '')
    rows += _wrapped(f'seen: {finding.evidence}', width, '  ')
    if finding.files:
        rows += _wrapped('in: ' + ', '.join(finding.files), width, '  ')
    by_hand = '[by hand]' if any(edit.number for edit in finding.edits) else ''
    marks = [f'[{edit.number}]' if edit.number else by_hand for edit in finding.edits] or ['']
    ways = [' '.join(filter(None, (edit.question, edit.text))) for edit in finding.edits] or [finding.advice]
    for place, (mark, words) in enumerate(zip(marks, ways if verbose else [short.advice])):
        rows += _wrapped(f'{"or" if place else "do"}: {mark} {words}'.replace(':  ', ': '), width, '  ')
    rows += [] if verbose or not short.left else [f'  more with --verbose: {short.left}']
    return '\n'.join(rows)


def numbered(findings: Sequence[Finding], first: int = 1) -> List[Finding]:
    """Findings whose edits have numbers, for `mmguard apply` (edits of a config) and `mmguard fix` (of label files)."""
    numbers = itertools.count(first)
    return [
        replace(
            finding,
            edits=tuple(
                replace(edit, number=next(numbers)) if _can_be_written(edit) else edit for edit in finding.edits
            ),
        )
        for finding in findings
    ]


def _can_be_written(edit: Edit) -> bool:
    return bool(edit.config or edit.files) and edit.applicability != MANUAL


def fix_hint(target: str, findings: Sequence[Finding], options: Sequence[str] = ()) -> str:
    """How a numbered edit of label files is written; empty where there is none.

    Args:
        target (str): What was scanned.
        options (list[str]): Of the scan: they are needed to find the same again.
    """
    numbers = [edit.number for finding in findings for edit in finding.edits if edit.number and edit.files]
    if not numbers:
        return ''
    words = shlex.join(['mmguard', 'fix', target, '--out', 'DIR', *options])
    return f'`{words} --edit N` writes {", ".join(f"[{number}]" for number in numbers)} (label files)'


def apply_hint(config: str, findings: Sequence[Finding], more: Sequence[str] = ()) -> str:
    """How a numbered edit of the config is written; empty where there is none."""
    if not any(edit.number and edit.config for finding in findings for edit in finding.edits):
        return ''
    words = shlex.join(['mmguard', 'apply', config, '-o', 'OUT.py', *more])
    return f'`{words} --edit N` writes [N], `--edit safe` all that ask nothing'


def findings_text(findings: Sequence[Finding], width: int = 100, verbose: bool = True) -> str:
    """All findings, the most likely first, a blank line between them."""
    return '\n\n'.join(finding_text(finding, width, verbose) for finding in findings)


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
