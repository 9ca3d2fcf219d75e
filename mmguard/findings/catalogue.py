"""Descriptions of the rules, for ``mmguard explain`` and docs/findings.md.

``python -m mmguard.findings.catalogue > docs/findings.md`` regenerates the page.
"""

from __future__ import annotations

from string import Formatter
from typing import Type

from mmguard.findings.plugins import list_own_rules, list_rules
from mmguard.findings.rule import Rule
from mmguard.language import Message, as_message, join, translate

INTRODUCTION = """# What mmguard can find

Every finding has a stable code, its evidence, and its correction. Codes MG1xx are about labels, MG2xx about a config,
MG39x, MG58x and MG59x about either. All other MG3xx are about a run and its ranks, and all other MG5xx about the
installed packages. Error messages (MG4xx) have [a page of their own](errors.md). `mmguard explain CODE` prints the
entry of one code. Words in capitals are filled in from your files and your config.

(Written by `python -m mmguard.findings.catalogue > docs/findings.md`; a test keeps it current.)
"""

#: Codes of deleted rules, which occur in old logs and are never reused.
RETIRED = tuple(f'MG{number}' for number in (
    126, 155, 166, 170, 171, 177, 206, 212, 213, 217, 218, 219, 220, 226, 228, 241, 242, 243, 245, 246, 254, 301, 302,
    410, 412, 419, 421, 427, 430, 431, 435, 436, 438, 439, 440, 446, 449, 451, 455, 459, 460, 461, 462, 463, 466, 467,
    468, 470, 471, 473, 477, 481, 482, 485, 486, 487, 488, 489, 490, 493, 494, 495, 496, 497, 498, 501, 503, 504,
    505, 507, 510, 511, 512, 513, 514,
))  # fmt: skip

#: Meaning of placeholders in advice whose names are not self-explanatory.
_PLACEHOLDERS = {
    'enough': 'the highest label + 1',
    'first': 'the lowest of these ids',
    'last': 'num_classes - 1',
    'next': 'the declared ignore label, or the first number above the declared labels',
    'pairs': 'a table from each id to its class',
    'void': 'the ignored label',
}


def find_rule(code: str) -> Type[Rule]:
    """Return the rule with this code, or the rule into which the rule with this code was merged.

    Raises:
        LookupError: No rule has this code.
    """
    for rule in list_rules():
        if code in (rule.code, *rule.aliases):
            return rule
    raise LookupError(code)


def describe(rule: Type[Rule]) -> str:
    """Return the output of `mmguard explain CODE`: summary, reason, example, limits and advice of a rule."""
    parts = [
        f'{rule.code}  {translate(rule.summary)}',
        translate('Why it matters: {why}', why=as_message(rule.why)),
        translate(
            'Wrong:\n{wrong}\nRight:\n{right}', wrong=_indent(rule.example.wrong), right=_indent(rule.example.right)
        ),
        translate('Known limits: {limits}', limits=as_message(rule.limits)) if rule.limits else '',
        translate('What to do: {advice}', advice=name_placeholders(translate(rule.advice))),
        translate(_explain_placeholders(rule.advice)),
    ]
    return '\n\n'.join(filter(None, parts))


def name_placeholders(template: str) -> str:
    """Return a template with its placeholders in capitals.

    Example:
        >>> name_placeholders('Labels outside 0..{last}: {values}.')
        'Labels outside 0..LAST: VALUES.'
    """
    return ''.join(text + (name or '').upper() for text, name, _, _ in Formatter().parse(template))


def _explain_placeholders(template: str) -> str:
    """Explain unclear placeholders of a template, e.g. ``'(LAST is num_classes - 1.)'``; return ``''`` without any."""
    names = dict.fromkeys(name for _, name, _, _ in Formatter().parse(template) if name)
    texts = [
        Message('{name} is {meaning}', name=name.upper(), meaning=Message(_PLACEHOLDERS[name]))
        for name in names
        if name in _PLACEHOLDERS
    ]
    return Message('({texts}.)', texts=join('; ', texts)) if texts else ''


def build_page() -> str:
    """Return the text of docs/findings.md."""
    rules = list_own_rules()
    lines = [INTRODUCTION, '| code | severity | what is wrong |', '| --- | --- | --- |']
    for rule in rules:
        summary = rule.summary.replace('|', '\\|')
        lines.append(f'| [{rule.code}](#{rule.code.lower()}) | {rule.severity} | {summary} |')
    for rule in rules:
        lines += ['', f'## {rule.code}', '', f'**{rule.summary}**', '', rule.why, '']
        lines += ['```text', f'wrong:  {rule.example.wrong}', f'right:  {rule.example.right}', '```', '']
        lines += [f'- Known limits: {rule.limits}'] if rule.limits else []
        lines += [f'- What to do: {name_placeholders(rule.advice)} {_explain_placeholders(rule.advice)}'.rstrip()]
        lines += [f'- Formerly also {", ".join(rule.aliases)}.'] if rule.aliases else []
    return '\n'.join(lines) + '\n'


def _indent(text: str) -> str:
    return '\n'.join(f'  {line}' for line in text.splitlines())


if __name__ == '__main__':
    print(build_page(), end='')
