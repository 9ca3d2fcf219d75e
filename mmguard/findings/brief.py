"""What a screen says of a finding, in three sentences; `--verbose`, the page and the JSON say all."""

from __future__ import annotations

from typing import NamedTuple

from mmguard.findings.finding import Finding
from mmguard.text.words import counted, sentences

#: What is wrong, the question that decides where there is one, and what to write.
MOST = 3


class Brief(NamedTuple):
    """A finding in few words.

    Attributes:
        cause (str): What is wrong.
        advice (str): What to do, after the question that the first edit asks.
        left (str): How much is left out; empty where nothing is.
    """

    cause: str
    advice: str
    left: str


def brief(finding: Finding, most: int = MOST) -> Brief:
    """The first sentence of the cause, the first edit (or the advice), and as much more as ``most`` sentences hold.

    Of an edit its question and what is written come before what is only worth knowing.
    """
    edits = finding.edits
    cause = sentences(finding.cause)
    advice = sentences(f'{edits[0].question} {edits[0].text}' if edits else finding.advice)
    said = [*cause, *advice]
    asked = 1 if edits and edits[0].question else 0
    shown = sorted(sorted(range(len(said)), key=lambda n: _rank(n, len(cause), asked, said[n]))[:most])
    number = len(said) - len(shown)
    others = counted(len(edits) - 1, 'other way')
    numbers = ', '.join(f'[{edit.number}]' for edit in edits[1:] if edit.number)
    others += f' ({numbers})' if numbers else ''
    others += ' if the answer is no' if asked else ''
    left = [others] * (len(edits) > 1)
    left += [counted(number, 'note')] * bool(number)
    return Brief(
        ' '.join(said[n] for n in shown if n < len(cause)),
        ' '.join(said[n] for n in shown if n >= len(cause)),
        ', '.join(left),
    )


def _rank(place: int, causes: int, asked: int, text: str) -> int:
    if place == 0 or causes <= place < causes + asked:
        return 0
    return 1 if place >= causes and '`' in text else 2
