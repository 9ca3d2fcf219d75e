"""Findings as text and as JSON."""

from __future__ import annotations

import itertools
import shlex
import textwrap
from dataclasses import replace
from typing import Any, Dict, List, Sequence

from mmguard.config.changes import REMOVED
from mmguard.findings.edits import MANUAL, Edit
from mmguard.findings.finding import Finding, plain
from mmguard.text.words import counted


def unpack(finding: Finding) -> Dict[str, Any]:
    """Return a finding as plain data, for JSON."""
    return {
        'code': finding.code,
        'severity': finding.severity,
        'certainty': finding.certainty,
        'title': finding.title,
        'evidence': finding.evidence,
        'places': list(finding.places),
        'value': plain(finding.value),
        'files': list(finding.files),
        'values': {str(value): count for value, count in sorted(finding.values.items())},
        'advice': finding.advice,
        'edits': [_unpack_edit(edit) for edit in finding.edits],
    }


def _unpack_edit(edit: Edit) -> Dict[str, Any]:
    return {
        'number': edit.number or None,
        'title': edit.title,
        'lines': edit.steps[len(edit.commands) :],
        'commands': list(edit.commands),
        'notes': list(edit.notes),
        'applicability': edit.applicability,
        'question': edit.question,
        'config': {path: 'removed' if value is REMOVED else plain(value) for path, value in edit.config},
        'options': {name: plain(value) for name, value in edit.options},
        'environment': {name: 'removed' if value is None else value for name, value in edit.environment},
        'verified': edit.verified,
        'doubt': edit.doubt,
        'files': {path: {name: plain(_table(value)) for name, value in changes} for path, changes in edit.files},
    }


def _table(value: Any) -> Any:
    """A table is written as pairs in an edit, which cannot change, and as a table for `mmguard fix`."""
    is_table = isinstance(value, tuple) and all(isinstance(pair, tuple) and len(pair) == 2 for pair in value)
    return {_key(key): label for key, label in value} if is_table and value else value


def _key(key: Any) -> str:
    return ','.join(map(str, key)) if isinstance(key, tuple) else str(key)


def finding_text(finding: Finding, width: int = 100, verbose: bool = True) -> str:
    """Return a finding in several lines: title, evidence with files and values, and what to write.

    Args:
        width (int): Longest line of prose; code and commands are never broken.
        verbose (bool): Every edit and every note; ``False``: the first edit.
    """
    rows = _wrapped(f'{finding.code} {finding.severity}: {finding.title}', width, '')
    rows += _wrapped(f'seen: {finding.evidence}', width, '  ')
    if finding.files:
        rows += _wrapped('in: ' + ', '.join(finding.files), width, '  ')
    if not finding.edits:
        rows += _wrapped(f'do: {finding.advice}', width, '  ')
    by_hand = '[by hand] ' if any(edit.number for edit in finding.edits) else ''
    for place, edit in enumerate(finding.edits if verbose else finding.edits[:1]):
        mark = f'[{edit.number}] ' if edit.number else by_hand
        rows += _wrapped(f'{"or" if place else "do"}: {mark}{f"{edit.question} {edit.title}".strip()}', width, '  ')
        rows += [f'      {step}' for step in edit.steps]
        rows += _wrapped(f'not verified: {edit.doubt}', width, '      ') if edit.verified is False else []
        rows += [row for note in edit.notes for row in _wrapped(note, width, '      ')] if verbose else []
    more = '' if verbose else _what_is_left(finding.edits)
    return '\n'.join([*rows, *[f'  more with --verbose: {more}'] * bool(more)])


def _what_is_left(edits: Sequence[Edit]) -> str:
    """Return what is not shown: other edits, and notes of the first."""
    left = []
    if len(edits) > 1:
        numbers = ', '.join(f'[{edit.number}]' for edit in edits[1:] if edit.number)
        if_no = ' if the answer is no' if edits[0].question else ''
        left.append(f'{counted(len(edits) - 1, "other way")}{f" ({numbers})" if numbers else ""}{if_no}')
    if edits and edits[0].notes:
        left.append(counted(len(edits[0].notes), 'note'))
    return ', '.join(left)


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
    return textwrap.wrap(
        text,
        max(width, 20),
        initial_indent=indent,
        subsequent_indent=indent + ('  ' if indent else ''),
        break_long_words=False,
        break_on_hyphens=False,
    )
