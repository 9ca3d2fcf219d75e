"""Which rank did not come to a collective, from what those that waited for it wrote."""

from __future__ import annotations

import re
from collections import Counter
from typing import Dict, Iterable, List, NamedTuple, Sequence

from mmguard.text import plural

_WAITED = re.compile(
    r'\[(?:[^][]*\b)?Rank (?P<rank>\d+)\][^\n]*?Watchdog caught collective operation timeout:[^\n]*?'
    r'SeqNum=(?P<number>\d+), OpType=(?P<operation>\w+)'
)
_BARRIER = re.compile(r'Ranks? (?P<ranks>\d+(?:, ?\d+)*) failed to pass monitoredBarrier')


class _Place(NamedTuple):
    """Where a rank waited: in which collective, and in the how many of them."""

    number: int
    operation: str


def absent_in(texts: Iterable[str]) -> str:
    """Who did not come, and how that is seen; empty where it cannot be seen."""
    places: Dict[int, _Place] = {}
    missing: List[int] = []
    for text in texts:
        for said in _BARRIER.finditer(text):
            missing += [int(rank) for rank in re.findall(r'\d+', said.group('ranks'))]
        for said in _WAITED.finditer(text):
            place = _Place(int(said.group('number')), said.group('operation'))
            places.setdefault(int(said.group('rank')), place)
    if missing:
        return f'{_ranks(sorted(set(missing)))} did not come to the barrier'
    return _of_places(places)


def _of_places(places: Dict[int, _Place]) -> str:
    if len(places) < 2:
        return ''
    last = max(place.number for place in places.values())
    behind = [rank for rank, place in places.items() if place.number < last]
    if behind and 2 * len(behind) <= len(places):
        where = ', '.join(f'{places[rank].operation} number {places[rank].number:,}' for rank in behind[:3])
        return f'{_ranks(behind)}, in {where}, while the others are in number {last:,}: a collective before was skipped'
    often, times = Counter(place.operation for place in places.values()).most_common(1)[0]
    others = [rank for rank, place in places.items() if place.operation != often]
    if others and times > len(others):
        called = ', '.join(sorted({places[rank].operation for rank in others}))
        return f'{_ranks(others)} called {called}, where the others called {often} (number {last:,})'
    silent = [rank for rank in range(max(places)) if rank not in places]
    if silent and not behind and not others:
        who = _ranks(sorted(places))
        return f'{_ranks(silent)}: {who} waited in {often} number {last:,} without it, and it says nothing of its own'
    return ''


def _ranks(ranks: Sequence[int]) -> str:
    return f'{plural(len(ranks), "rank")} {", ".join(map(str, ranks[:8]))}{", ..." if len(ranks) > 8 else ""}'
