"""The rules in words, without a config: ``python -m mmguard.check.catalogue > docs/rules.md`` writes the page anew."""

from __future__ import annotations

from typing import Type

from mmguard.check.rule import Rule
from mmguard.check.rules import RULES


def page() -> str:
    """docs/rules.md."""
    rules = sorted(RULES, key=lambda rule: rule.code)
    lines = [
        '# What `mmguard check` looks for',
        '',
        'Written by `python -m mmguard.check.catalogue`; a test keeps it current. `mmguard explain CODE` prints one of '
        'them. Rules marked *on request* are looked for with `--all` or `--select` alone: they find nothing wrong, but '
        'show where an invalid label would.',
        '',
        '| code | severity | what is wrong |',
        '| --- | --- | --- |',
    ]
    lines += [f'| [{r.code}](#{r.code.lower()}) | {_severity(r)} | {_cell(r.summary)} |' for r in rules]
    for rule in rules:
        lines += [
            '',
            f'## {rule.code}',
            '',
            f'**{rule.summary}**',
            '',
            rule.why,
            '',
            f'*{_severity(rule)}.* {rule.advice}',
        ]
    return '\n'.join(lines) + '\n'


def _severity(rule: Type[Rule]) -> str:
    return f'{rule.severity}, on request' if rule.on_request else rule.severity


def _cell(text: str) -> str:
    return text.replace('|', '\\|')


if __name__ == '__main__':
    print(page(), end='')
