"""Facts about a run and its ranks: how each rank ended, and which losses and gradients were missing."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Dict, Iterable, List, NamedTuple, Optional, Sequence, Tuple

from mmguard.language import Message, join
from mmguard.text import plural, quantity

#: End of a rank: by its own exception, by an exception because another rank did not join, killed, or unknown.
RAISED, MISSED_ANOTHER, KILLED, UNCLEAR = ('raised', 'missed another', 'killed', 'unclear')


@dataclass
class RankFacts:
    """End of the training on one rank."""

    rank: int  #: Number of the rank.
    ending: str  #: ``RAISED``, ``MISSED_ANOTHER``, ``KILLED`` or ``UNCLEAR``.
    words: str = ''  #: Description: ``'rank 0 ended in iteration 37, 2026-01-01T12:00:00: killed'``.
    error: str = ''  #: Type and message of the exception; empty if the rank raised none.
    iteration: Optional[int] = None  #: Last iteration of the rank.
    record: str = ''  #: Path of the rank's flight record.


@dataclass
class RunFacts:
    """Facts about a whole run: ranks without a record of their end, and losses that were replaced by zero."""

    silent: List[int] = field(default_factory=list)  #: Ranks without a record of their end, if other ranks have one.
    #: Loss -> rank -> number of iterations in which a zero replaced the missing loss.
    filled: Dict[str, Dict[str, int]] = field(default_factory=dict)
    #: Rank -> (first iteration in which a loss was replaced, names of the rank's samples in this iteration).
    first_filled: Dict[int, Tuple[int, List[str]]] = field(default_factory=dict)


def name_ranks(ranks: Sequence[int], singular_verb: str = '', plural_verb: str = '') -> str:
    """Return the start of a sentence: the first eight ranks, and the verb in the singular or the plural.

    Example:
        >>> name_ranks([3], 'was', 'were'), name_ranks([0, 2], 'was', 'were'), name_ranks([1])
        ('Rank 3 was', 'Ranks 0, 2 were', 'Rank 1')
    """
    listed = ', '.join(map(str, ranks[:8])) + (', ...' if len(ranks) > 8 else '')
    verb = Message(singular_verb if len(ranks) == 1 else plural_verb)
    return join(' ', (plural(len(ranks), 'Rank'), listed, *([verb] if verb else [])))


def format_exception(error: str, limit: int = 600) -> str:
    """Format an exception as one line of at most ``limit`` characters."""
    text = ' '.join(error.split())
    return text if len(text) <= limit else f'{text[: limit - 3]}...'


_WAITED = re.compile(
    r'\[(?:[^][]*\b)?Rank (?P<rank>\d+)\][^\n]*?Watchdog caught collective operation timeout:[^\n]*?'
    r'SeqNum=(?P<number>\d+), OpType=(?P<operation>\w+)'
)
_BARRIER = re.compile(r'Ranks? (?P<ranks>\d+(?:, ?\d+)*) failed to pass monitoredBarrier')


class _Place(NamedTuple):
    """Collective in which a rank waited: its sequence number, and its operation such as ``'ALLREDUCE'``."""

    number: int
    operation: str


def find_missing_ranks(texts: Iterable[str]) -> str:
    """Return a sentence that names the ranks missing from a collective, or ``''`` if these ranks are unknown."""
    places: Dict[int, _Place] = {}
    missing: List[int] = []
    for text in texts:
        for said in _BARRIER.finditer(text):
            missing += [int(rank) for rank in re.findall(r'\d+', said.group('ranks'))]
        for said in _WAITED.finditer(text):
            place = _Place(int(said.group('number')), said.group('operation'))
            places.setdefault(int(said.group('rank')), place)
    if missing:
        return Message('{ranks} did not reach the barrier', ranks=_format_ranks(sorted(set(missing))))
    return _compare_places(places)


def _compare_places(places: Dict[int, _Place]) -> str:
    if len(places) < 2:
        return ''
    last = max(place.number for place in places.values())
    late = [rank for rank, place in places.items() if place.number < last]
    if late and 2 * len(late) <= len(places):
        where = join(
            ', ',
            (
                Message('{operation} number {number:,}', operation=places[rank].operation, number=places[rank].number)
                for rank in late[:3]
            ),
        )
        return Message(
            '{ranks} waited in {where} while other ranks were in number {last:,}, so an earlier collective was skipped',
            ranks=_format_ranks(late),
            where=where,
            last=last,
        )
    often, times = Counter(place.operation for place in places.values()).most_common(1)[0]
    others = [rank for rank, place in places.items() if place.operation != often]
    if others and times > len(others):
        called = ', '.join(sorted({places[rank].operation for rank in others}))
        return Message(
            '{ranks} called {called}, while the other ranks called {often} (number {last:,})',
            ranks=_format_ranks(others),
            called=called,
            often=often,
            last=last,
        )
    silent = [rank for rank in range(max(places)) if rank not in places]
    if silent and not late and not others:
        who = _format_ranks(sorted(places))
        return Message(
            '{ranks} left no record, while {who} waited in {often} number {last:,}',
            ranks=_format_ranks(silent),
            who=who,
            often=often,
            last=last,
        )
    return ''


_SAID = re.compile(
    r'Parameter(?P<named>s|\s+indices) which did not receive grad for rank (?P<rank>\d+):[ \t]*(?P<list>[^\n]*)'
)
#: Maximum number of parameters, or of their parts, that are named.
_FEW = 8


class UnusedParameters(NamedTuple):
    """Parameters without a gradient, by rank."""

    indices: Dict[int, Tuple[int, ...]]  #: Rank -> numbers of the parameters.
    names: Dict[int, Tuple[str, ...]]  #: Rank -> names of the parameters, if torch or a hook reported names.

    @property
    def everywhere(self) -> bool:
        """True if two or more ranks, numbered from 0 without a gap, lack the same gradients: the model is the cause."""
        ranks = sorted(self.indices)
        return len(ranks) > 1 and ranks == list(range(len(ranks))) and len(set(self.indices.values())) == 1

    @property
    def lines(self) -> List[str]:
        """Lines that name parameters without a gradient, one line per group of ranks with the same parameters."""
        if self.everywhere:
            indices, names = next(iter(self.indices.values())), next(iter(self.names.values()), ())
            return [
                Message(
                    'without a gradient on all ranks that raised ({ranks}): {what}',
                    ranks=_format_ranks(self.indices),
                    what=_describe(indices, names),
                )
            ]
        groups: Dict[Tuple[Tuple[int, ...], Tuple[str, ...]], List[int]] = {}
        for rank, indices in sorted(self.indices.items()):
            groups.setdefault((indices, self.names.get(rank, ())), []).append(rank)
        differ: List[str] = (
            [Message('the parameters without a gradient differ between {ranks}', ranks=_format_ranks(self.indices))]
            if len(groups) > 1
            else []
        )
        return differ + [
            Message('without a gradient on {ranks}: {what}', ranks=_format_ranks(ranks), what=_describe(*lacked))
            for lacked, ranks in groups.items()
        ]


def _format_ranks(ranks: Iterable[int]) -> str:
    known = sorted(ranks)
    return join(' ', (plural(len(known), 'rank'), _join_numbers(known)))


def find_unused(texts: Iterable[str]) -> UnusedParameters:
    """Collect the parameters without a gradient from the ranks' exceptions."""
    found = UnusedParameters({}, {})
    for text in texts:
        for said in _SAID.finditer(text):
            rank = int(said.group('rank'))
            if said.group('named') == 's':
                found.names[rank] = tuple(name.strip() for name in said.group('list').split(',') if name.strip())
            else:
                found.indices[rank] = tuple(int(one) for one in re.findall(r'\d+', said.group('list')))
    return found


def count_by_part(names: Sequence[str]) -> Dict[str, int]:
    """Count parameters by part of the model: the path up to the innermost head, or without a head its first two levels.

    Example:
        >>> count_by_part(['roi_head.mask_head.conv.weight', 'roi_head.mask_head.conv.bias', 'backbone.norm.bias'])
        {'roi_head.mask_head': 2, 'backbone.norm': 1}
    """
    parts: Dict[str, int] = {}
    for name in names:
        steps = name.split('.')
        heads = [place for place, step in enumerate(steps) if 'head' in step]
        part = '.'.join(steps[: heads[-1] + 1] if heads else steps[:2] if len(steps) > 2 else steps)
        parts[part] = parts.get(part, 0) + 1
    return parts


def _describe(indices: Sequence[int], names: Sequence[str]) -> str:
    if not names:
        number = plural(len(indices), 'number')
        return Message(
            '{parameters}, {number} {indices}',
            parameters=quantity(len(indices), 'parameter'),
            number=number,
            indices=_join_numbers(indices),
        )
    parts = count_by_part(names)
    shown = join(
        ', ',
        (join('', (part, ' (', quantity(number, 'parameter'), ')')) for part, number in list(parts.items())[:_FEW]),
    )
    more = len(parts) - _FEW
    return shown if more <= 0 else Message('{first} and {more:,} more', first=shown, more=more)


def _join_numbers(numbers: Sequence[int]) -> str:
    return ', '.join(map(str, numbers[:_FEW])) + (', ...' if len(numbers) > _FEW else '')
