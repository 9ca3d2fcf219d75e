"""Page of the error signatures, docs/errors.md."""

from __future__ import annotations

from typing import List

from mmguard.findings.signatures.signature import Signature, read_groups, read_signatures

INTRODUCTION = """# What an error says

`mmguard explain train.log`, `... 2>&1 | mmguard explain -`, or `mmguard explain work_dirs/x` names the error that ended
a training, what it means, and its causes in order. With `--config CONFIG` or `--data TARGET` it looks for the causes
itself: what [a finding](findings.md) confirms comes first, what it refutes last. An error that is not among these is
said to be not known.

(Written by `python -m mmguard.findings.signatures > docs/errors.md`; a test keeps it current.)
"""


def page() -> str:
    """Return docs/errors.md."""
    lines = [INTRODUCTION, '| code | what the error says |', '| --- | --- |']
    for signature in sorted(read_signatures(), key=lambda signature: signature.code):
        lines.append(f'| [{signature.code}](#{signature.code.lower()}) | {_escape(signature.title)} |')
    for group, signatures in read_groups().items():
        lines += ['', f'## {group}']
        for signature in signatures:
            lines += _list_entry(signature)
    return '\n'.join(lines) + '\n'


def _list_entry(signature: Signature) -> List[str]:
    lines = ['', f'### {signature.code}', '', f'**{_escape(signature.title)}**', '', _escape(signature.meaning), '']
    for number, cause in enumerate(signature.causes, 1):
        codes = ', '.join(f'[{code}](findings.md#{code.lower()})' for code in cause.codes)
        look = f' *{_escape(cause.look)}*' if cause.look else ''
        lines.append(f'{number}. {_escape(cause.text)}{look}{f" ({codes})" if codes else ""}')
    return [*lines, '', f'Next: `{signature.command}`']


def _escape(text: str) -> str:
    # Outside of backticks a star or an underscore would start emphasis.
    parts = text.split('`')
    return '`'.join(part if place % 2 else part.replace('*', '\\*') for place, part in enumerate(parts)).replace(
        '|', '\\|'
    )
