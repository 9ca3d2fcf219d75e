"""The rules in words: for ``mmguard explain`` and docs/findings.md.

``python -m mmguard.findings.catalogue > docs/findings.md`` writes the page anew.
"""

from __future__ import annotations

from typing import List, NamedTuple

from mmguard.findings.engine import diagnose
from mmguard.findings.examples import EXAMPLES
from mmguard.findings.finding import Finding
from mmguard.findings.rules import RULES

INTRODUCTION = """# What mmguard can find

Every finding has a stable code, the evidence it rests on, and what to write. The most likely one comes first. What
labels show (MG1xx) stands here with an example: values, names and numbers are filled in from your files and your
config. What a config alone shows has codes MG2xx, what a run and its ranks left behind MG3xx, what is installed MG5xx.
What an error says (MG4xx) has [a page of its own](errors.md).
`mmguard explain CODE` prints one of them. Rules marked *on request* are looked for with `mmguard check --all` or
`--select` alone: they find nothing wrong, but show where an invalid label would.

(Written by `python -m mmguard.findings.catalogue > docs/findings.md`; a test keeps it current.)
"""

#: Codes of rules that were deleted: no other rule gets them, as they stand in old logs.
RETIRED = tuple(f'MG{number}' for number in (
    155, 166, 170, 171, 177, 217, 241, 242, 246, 410, 412, 419, 421, 427, 430, 431, 435, 436, 438, 439, 440, 446,
    449, 451, 455, 459, 460, 461, 462, 466, 467, 468, 470, 473, 477, 481, 482, 485, 486, 488, 489, 490, 493, 494,
    495, 496, 497, 501, 510, 511, 513, 514,
))  # fmt: skip


class Entry(NamedTuple):
    """What there is to say about a rule.

    Attributes:
        code, why, severity (str): As in the rule, or in its example.
        aliases (list[str]): Codes of rules that were joined with it.
        summary (str): What is wrong, one line.
        seen (str): What its example rests on; empty where a rule needs none.
        advice (str): What to write.
    """

    code: str
    aliases: List[str]
    severity: str
    summary: str
    why: str
    seen: str
    advice: str


def entries() -> List[Entry]:
    """All rules, by code."""
    found = []
    for rule in sorted(RULES, key=lambda rule: rule.code):
        severity = f'{rule.severity}, on request' if rule.on_request else rule.severity
        words = (severity, rule.summary, rule.why, '', rule.advice) if rule.code not in EXAMPLES else None
        if words is None:
            example = example_of(rule.code)
            words = (example.severity, example.title, rule.why, example.evidence, example.advice)
        found.append(Entry(rule.code, list(rule.aliases), *words))
    return found


def example_of(code: str) -> Finding:
    """What a rule finds in its example."""
    (example,) = [finding for finding in diagnose(EXAMPLES[code]()) if finding.code == code]
    return example


def page() -> str:
    """docs/findings.md."""
    lines = [INTRODUCTION, '| code | severity | what is wrong |', '| --- | --- | --- |']
    found = entries()
    for entry in found:
        summary = entry.summary.replace('|', '\\|')
        lines.append(f'| [{entry.code}](#{entry.code.lower()}) | {entry.severity} | {summary} |')
    for entry in found:
        lines += ['', f'## {entry.code}', '', f'**{entry.summary}**', '', entry.why, '']
        lines += [f'- Seen, for example: {entry.seen}.'] if entry.seen else []
        lines += [f'- {entry.advice}']
        lines += [f'- Formerly also {", ".join(entry.aliases)}.'] if entry.aliases else []
    return '\n'.join(lines) + '\n'


if __name__ == '__main__':
    print(page(), end='')
