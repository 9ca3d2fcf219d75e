"""Ranks that did not join a collective, found in what the waiting ranks wrote."""

from __future__ import annotations

import re
from collections import Counter
from typing import Dict, Iterable, List, NamedTuple, Sequence

from mmguard.text.words import plural

_WAITED = re.compile(
    r'\[(?:[^][]*\b)?Rank (?P<rank>\d+)\][^\n]*?Watchdog caught collective operation timeout:[^\n]*?'
    r'SeqNum=(?P<number>\d+), OpType=(?P<operation>\w+)'
)
_BARRIER = re.compile(r'Ranks? (?P<ranks>\d+(?:, ?\d+)*) failed to pass monitoredBarrier')


class _Place(NamedTuple):
    """Place where a rank waited: the collective, and its sequence number."""

    number: int
    operation: str


def find_missing_ranks(texts: Iterable[str]) -> str:
    """Name the ranks that did not join a collective, and the evidence; empty if it cannot be seen."""
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
    return _compare_places(places)


def _compare_places(places: Dict[int, _Place]) -> str:
    if len(places) < 2:
        return ''
    last = max(place.number for place in places.values())
    late = [rank for rank, place in places.items() if place.number < last]
    if late and 2 * len(late) <= len(places):
        where = ', '.join(f'{places[rank].operation} number {places[rank].number:,}' for rank in late[:3])
        return f'{_ranks(late)}, in {where}, while the others are in number {last:,}: a collective before was skipped'
    often, times = Counter(place.operation for place in places.values()).most_common(1)[0]
    others = [rank for rank, place in places.items() if place.operation != often]
    if others and times > len(others):
        called = ', '.join(sorted({places[rank].operation for rank in others}))
        return f'{_ranks(others)} called {called}, where the others called {often} (number {last:,})'
    silent = [rank for rank in range(max(places)) if rank not in places]
    if silent and not late and not others:
        who = _ranks(sorted(places))
        return f'{_ranks(silent)}: {who} waited in {often} number {last:,} without it, and it wrote nothing itself'
    return ''


def _ranks(ranks: Sequence[int]) -> str:
    return f'{plural(len(ranks), "rank")} {", ".join(map(str, ranks[:8]))}{", ..." if len(ranks) > 8 else ""}'
