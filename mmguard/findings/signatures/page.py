"""The signatures in words, for docs/errors.md."""

from __future__ import annotations

from typing import List

from mmguard.findings.signatures import GROUPS, SIGNATURES, Signature

INTRODUCTION = """# What an error says

`mmguard explain train.log`, `... 2>&1 | mmguard explain -`, or `mmguard explain work_dirs/x` names the error that ended
a training, what it means, and its causes in order. With `--config CONFIG` or `--data TARGET` it looks for the causes
itself: what [a finding](findings.md) confirms comes first, what it refutes last. An error that is not among these is
said to be not known.

(Written by `python -m mmguard.findings.signatures > docs/errors.md`; a test keeps it current.)
"""


def page() -> str:
    """docs/errors.md."""
    lines = [INTRODUCTION, '| code | what the error says |', '| --- | --- |']
    for signature in sorted(SIGNATURES, key=lambda signature: signature.code):
        lines.append(f'| [{signature.code}](#{signature.code.lower()}) | {_escaped(signature.summary)} |')
    for group, signatures in GROUPS.items():
        lines += ['', f'## {group}']
        for signature in signatures:
            lines += _entry(signature)
    return '\n'.join(lines) + '\n'


def _entry(signature: Signature) -> List[str]:
    lines = ['', f'### {signature.code}', '', f'**{_escaped(signature.summary)}**', '', _escaped(signature.meaning), '']
    for number, cause in enumerate(signature.causes, 1):
        codes = ', '.join(f'[{code}](findings.md#{code.lower()})' for code in cause.codes)
        tell = f' *{_escaped(cause.tell)}*' if cause.tell else ''
        lines.append(f'{number}. {_escaped(cause.text)}{tell}{f" ({codes})" if codes else ""}')
    return [*lines, '', f'Next: `{signature.command}`']


def _escaped(text: str) -> str:
    # Outside of backticks a star or an underscore would start emphasis.
    parts = text.split('`')
    return '`'.join(part if place % 2 else part.replace('*', '\\*') for place, part in enumerate(parts)).replace(
        '|', '\\|'
    )
