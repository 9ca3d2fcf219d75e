"""Output of findings as text and as JSON."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import Any, Dict, List, Optional, Sequence

from mmguard.config.changes import REMOVED
from mmguard.findings.edits import Edit, to_plain
from mmguard.findings.finding import Finding
from mmguard.language import Message, as_message, join, translate
from mmguard.text import Rows, Wrapped, lay_out, quantity

#: Width at which no line is broken, for terminals, which wrap long lines themselves.
UNBROKEN = 1 << 20


def unpack(finding: Finding) -> Dict[str, Any]:
    """Convert a finding to plain data, for JSON."""
    return {
        'code': finding.code,
        'severity': finding.severity,
        'certainty': finding.certainty,
        'title': finding.title,
        'evidence': finding.evidence,
        'places': list(finding.places),
        'value': to_plain(finding.value),
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
        'if_not': edit.if_not,
        'config': {path: 'removed' if value is REMOVED else to_plain(value) for path, value in edit.config},
        'options': to_plain(edit.options),
        'environment': {name: 'removed' if value is None else value for name, value in edit.environment.items()},
        'verified': edit.verified,
        'doubt': edit.doubt,
        'files': to_plain(edit.files),
    }


def format_finding(finding: Finding, width: int = 100, verbose: bool = True) -> str:
    """Format a finding over several lines: title, evidence with files and values, and corrections.

    Args:
        width (int): Longest line of prose; code and commands are never broken.
        verbose (bool): Show every edit and every note. If false, show only the first edit, without its notes.
    """
    title, severity = as_message(finding.title), Message(finding.severity)
    rows: Rows = [Wrapped(Message('{code} {severity}: {title}', code=finding.code, severity=severity, title=title))]
    texts = [Message('seen: {evidence}', evidence=as_message(finding.evidence))]
    if finding.files:
        texts.append(Message('in: {files}', files=', '.join(finding.files)))
    if not finding.edits:
        texts.append(Message('do: {advice}', advice=as_message(finding.advice)))
    rows += [Wrapped(text, '  ', '    ') for text in texts]
    by_hand = Message('[by hand] ') if any(edit.number for edit in finding.edits) else ''
    for place, edit in enumerate(finding.edits if verbose else finding.edits[:1]):
        mark = f'[{edit.number}] ' if edit.number else by_hand
        what = join(' ', map(as_message, filter(None, (edit.question, edit.title))))
        label = Message('or' if place else 'do')
        rows.append(Wrapped(Message('{label}: {mark}{what}', label=label, mark=mark, what=what), '  ', '    '))
        rows += [f'      {step}' for step in edit.steps]
        doubt = [Message('not verified: {doubt}', doubt=as_message(edit.doubt))] if edit.verified is False else []
        rows += [Wrapped(text, ' ' * 6, ' ' * 8) for text in (*doubt, *(edit.notes if verbose else ()))]
        if edit.if_not:
            rows.append(Wrapped(Message('if not: {if_not}', if_not=as_message(edit.if_not)), '  ', '    '))
    more = '' if verbose else _count_hidden(finding.edits)
    rows += [Message('  more with --verbose: {more}', more=more)] if more else []
    return lay_out(rows, max(width, 20))


def _count_hidden(edits: Sequence[Edit]) -> Message:
    """Return a text that counts the hidden edits (all but the first) and the notes of the first edit."""
    left = []
    if len(edits) > 1:
        numbers = ', '.join(f'[{edit.number}]' for edit in edits[1:] if edit.number)
        ways = join(' ', filter(None, (quantity(len(edits) - 1, 'other way'), numbers and f'({numbers})')))
        left.append(Message('{ways} for the answer "no"', ways=ways) if edits[0].question else ways)
    if edits and edits[0].notes:
        left.append(quantity(len(edits[0].notes), 'note'))
    return join(', ', left)


def number_edits(findings: Sequence[Finding], known: Optional[Dict[str, int]] = None) -> List[Finding]:
    """Number the edits of findings, for `mmguard apply` (config edits) and `mmguard fix` (label files).

    Edits that write the same changes have the same number.

    Args:
        known (dict, optional): Numbers of earlier findings' edits, to which the new numbers are added.
    """
    numbers = {} if known is None else known
    return [
        replace(
            finding,
            edits=tuple(
                replace(edit, number=numbers.setdefault(repr((edit.config, edit.files)), len(numbers) + 1))
                if (edit.config or edit.files) and not edit.is_manual
                else edit
                for edit in finding.edits
            ),
        )
        for finding in findings
    ]


def fix_hint(target: str, findings: Sequence[Finding], options: Sequence[str] = ()) -> str:
    """Return a sentence with the command that writes numbered edits of label files, or ``''`` without such edits.

    Args:
        target (str): The target of the scan.
        options (list[str]): Options of the scan; the numbers of the edits depend on these options.
    """
    numbers = {edit.number: None for finding in findings for edit in finding.edits if edit.number and edit.files}
    if not numbers:
        return ''
    words = shlex.join(['mmguard', 'fix', target, '--out', 'DIR', *options])
    listed = ', '.join(f'[{number}]' for number in numbers)
    return translate('`{command} --edit N` writes {numbers} (label files)', command=words, numbers=listed)


def apply_hint(config: str, findings: Sequence[Finding], arguments: Sequence[str] = ()) -> str:
    """Return a sentence with the command that writes numbered edits of the config, or ``''`` without such edits."""
    if not any(edit.number and edit.config for finding in findings for edit in finding.edits):
        return ''
    words = shlex.join(['mmguard', 'apply', config, '-o', 'OUT.py', *arguments])
    return translate('`{command} --edit N` writes edit [N], `--edit safe` all edits without a question', command=words)


def format_findings(findings: Sequence[Finding], width: int = 100, verbose: bool = True) -> str:
    """Format all findings, the most likely first, with blank lines between them."""
    return '\n\n'.join(format_finding(finding, width, verbose) for finding in findings)
