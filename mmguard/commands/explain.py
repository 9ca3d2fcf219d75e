"""``mmguard explain``."""

from __future__ import annotations

import argparse
from typing import Any, Dict, Tuple

from mmguard.errors import CannotRun

#: Code -> summary, and the rest.
Words = Dict[str, Tuple[str, str]]


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        'explain',
        help='what a code such as MG102 means, why it matters, what to write',
        description='Prints what a code means: MG1xx are causes that a scan, a training or a report finds, MG2xx rules '
        'that read a config. Without a code: all of them, one line each. Exit code: 0, or 2 for an unknown code.',
    )
    parser.add_argument('code', nargs='?', metavar='CODE', help='MG102, for example')
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    texts = causes_in_words()
    code = (args.code or '').strip().upper()
    if code not in texts:
        texts.update(rules_in_words())
    if not code:
        for known, (summary, _) in sorted(texts.items()):
            print(f'{known}  {summary}')
        return 0
    if code not in texts:
        raise CannotRun(f'no such code: {args.code}. Known: {", ".join(sorted(texts))}')
    summary, text = texts[code]
    print(f'{code}  {summary}\n\n{text}')
    return 0


def causes_in_words() -> Words:
    """Of what files, trainings and configs show."""
    from mmguard.diagnosis.catalogue import entries

    return {
        entry.code: (
            entry.example.cause,
            f'Why it matters: {entry.why}\n\nFor example: {entry.example.evidence}.\n\n'
            f'What to write: {entry.example.advice}',
        )
        for entry in entries()
    }


def rules_in_words() -> Words:
    """Of the rules over configs."""
    from mmguard.check.rules import RULES

    return {r.code: (r.summary, f'Why it matters: {r.why}\n\nWhat to write: {r.advice}') for r in RULES}
