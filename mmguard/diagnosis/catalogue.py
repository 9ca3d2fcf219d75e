"""Causes in words: for ``mmguard explain`` and docs/causes.md.

``python -m mmguard.diagnosis.catalogue > docs/causes.md`` writes the page anew.
"""

from __future__ import annotations

from typing import List, NamedTuple

from mmguard.diagnosis.causes import CAUSES
from mmguard.diagnosis.examples import EXAMPLES
from mmguard.diagnosis.finding import Finding, diagnose

#: What the words of the example stand for is said once, at the top of the page.
INTRODUCTION = """# What a scan, a training or a report can find

Every finding has a stable code, the evidence it rests on, and the line to write. The most likely cause comes first. The
texts below are those of an example: values, names and numbers are filled in from your files and your config.
`mmguard explain CODE` prints one of them; rules that read a config alone have codes MG2xx.

(Written by `python -m mmguard.diagnosis.catalogue > docs/causes.md`; a test keeps it current.)
"""


class Entry(NamedTuple):
    """What there is to say about a cause.

    Attributes:
        code, why (str): As in the cause.
        example (Finding): What it finds in its example.
    """

    code: str
    why: str
    example: Finding


def entries() -> List[Entry]:
    """All causes, by code."""
    found = []
    for cause in CAUSES:
        (example,) = [finding for finding in diagnose(EXAMPLES[cause.code](), CAUSES) if finding.code == cause.code]
        found.append(Entry(cause.code, cause.why, example))
    return found


def page() -> str:
    """docs/causes.md."""
    lines = [INTRODUCTION, '| code | severity | for example |', '| --- | --- | --- |']
    found = entries()
    for entry in found:
        cause = entry.example.cause.replace('|', '\\|')
        lines.append(f'| [{entry.code}](#{entry.code.lower()}) | {entry.example.severity} | {cause} |')
    for entry in found:
        example = entry.example
        lines += ['', f'## {entry.code}', '', f'**{example.cause}**', '', entry.why, '']
        lines += [f'- Seen: {example.evidence}.', f'- {example.advice}']
    return '\n'.join(lines) + '\n'


if __name__ == '__main__':
    print(page(), end='')
