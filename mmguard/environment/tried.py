"""The versions that mmguard itself was run with: ``make matrix`` writes them, ``mmguard env`` compares."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, Iterator, List, Sequence

from mmguard.environment.facts import TRIAL, EnvironmentFacts
from mmguard.environment.verdict import ERROR, Verdict, version_key

#: Rows of versions (``torch``, ``numpy``, ``python``) and what the tests gave beside them.
TRIED = Path(__file__).with_name('tried.json')


def tried() -> List[Dict[str, Any]]:
    """The rows of ``make matrix``, in which every test passed or was skipped."""
    return [row for row in json.loads(TRIED.read_text(encoding='utf-8')) if not row['failed']]


def judge_tried(facts: EnvironmentFacts) -> Iterator[Verdict]:
    """Whether mmguard was run with this torch and this numpy, and whether its loss works here."""
    for name in ('torch', 'numpy'):
        if name in facts.versions:
            yield _of(name, facts.versions[name], [row[name] for row in tried()])
    if TRIAL in facts.errors and not {'torch', 'numpy', 'mmguard'} & {*facts.missing, *facts.errors}:
        advice = f'{facts.errors[TRIAL]}. The fault is in mmguard or in torch, not in your config: please report it'
        yield Verdict('a guarded loss', 'does not work here', ERROR, advice)


def _of(name: str, version: str, versions: Sequence[str]) -> Verdict:
    ordered = sorted(set(versions), key=version_key)
    older = [one for one in ordered if version_key(one) < version_key(version)]
    newer = [one for one in ordered if version_key(one) > version_key(version)]
    line = f'mmguard with {name}'
    if len(older) + len(newer) < len(ordered):
        return Verdict(line, f'{version} was tried')
    if not older:
        return Verdict(line, f'{version} is not supported', ERROR, f'mmguard needs {name} {ordered[0]} or newer')
    place = f'between {older[-1]} and {newer[0]}, which were' if newer else f'newer than {older[-1]}, the last that was'
    return Verdict(line, f'{version} was not tried; it is {place}')
