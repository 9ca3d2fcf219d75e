"""Generator of docs/errors.md: ``python -m mmguard.findings.signatures > docs/errors.md``."""

from __future__ import annotations

from typing import List, Mapping

from mmguard.findings.plugins import list_rules
from mmguard.findings.signatures import SCAN, Signature, read_groups, read_signatures

INTRODUCTION = """# What an error says

`mmguard explain train.log`, `... 2>&1 | mmguard explain -`, or `mmguard explain work_dirs/x` names the error that ended
a training, what it means, and its causes, usual ones first. With `--config CONFIG` or `--data TARGET` it looks for
them itself. Causes that [a finding](findings.md) confirms come first, then causes that a line of the log supports (the
line is quoted); refuted causes are left out. If the log does not decide between several causes, each is listed with the
observation that does. Signs of a training that runs, but does not learn, are listed, too. An error that is not listed
is reported as not known.

(Written by `python -m mmguard.findings.signatures > docs/errors.md`; a test keeps it current.)
"""


def build_page() -> str:
    """Return the text of docs/errors.md."""
    lines = [INTRODUCTION, '| code | what the error says |', '| --- | --- |']
    for signature in sorted(read_signatures(), key=lambda signature: signature.code):
        lines.append(f'| [{signature.code}](#{signature.code.lower()}) | {_escape(signature.title)} |')
    for group, signatures in read_groups().items():
        lines += ['', f'## {group}']
        for signature in signatures:
            lines += _list_entry(signature)
    return '\n'.join(lines) + '\n'


def _list_entry(signature: Signature) -> List[str]:
    known = {rule.code for rule in list_rules()}
    lines = ['', f'### {signature.code}', '', f'**{_escape(signature.title)}**', '', _escape(signature.meaning), '']
    for number, cause in enumerate(signature.causes, 1):
        codes = ', '.join(f'[{code}](findings.md#{code.lower()})' for code in cause.codes if code in known)
        look = f' *{_escape(cause.look)}*' if cause.look else ''
        where = f' ({", ".join(name for name in cause.frameworks if name != "torch")})' if cause.frameworks else ''
        advice = f' {_escape(_join_by_framework(cause.advice))}' if cause.advice else ''
        lines.append(f'{number}. {_escape(cause.text)}{where}{look}{advice}{f" ({codes})" if codes else ""}')
    commands = {'torch': SCAN['torch']} if signature.command is SCAN else signature.command
    return [*lines, '', f'Next: {_join_by_framework({name: f"`{command}`" for name, command in commands.items()})}']


def _join_by_framework(texts: Mapping[str, str]) -> str:
    named = [f'{text} ({name})' for name, text in texts.items() if name != 'torch']
    return '; '.join([*named, *([texts['torch']] if 'torch' in texts else [])])


def _escape(text: str) -> str:
    # Outside of backticks a star or an underscore would start emphasis.
    parts = text.split('`')
    return '`'.join(part if place % 2 else part.replace('*', '\\*') for place, part in enumerate(parts)).replace(
        '|', '\\|'
    )


if __name__ == '__main__':
    print(build_page(), end='')
