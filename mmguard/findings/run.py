"""Facts about a run and its ranks: how each ended, and what it lacked before."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Dict, List, Optional, Sequence, Tuple

from mmguard.text.words import plural

#: Ends of a rank: it raised; it raised because another rank did not join; it ended without an exception; an iteration
#: took too long.
RAISED, MISSED_ANOTHER, KILLED, STOOD_STILL = ('raised', 'missed another', 'killed', 'stood still')


@dataclass
class RankFacts:
    """End of one rank.

    Args:
        rank (int): Its number.
        ending (str): ``RAISED``, ``MISSED_ANOTHER``, ``KILLED`` or ``STOOD_STILL``.
        words (str): ``'rank 0 ended by RuntimeError in iteration 37 (epoch 2), 2026-01-01T12:00:00'``.
        error (str): Type and message of its exception; empty without one.
        iteration (int, optional): Its last iteration.
    """

    rank: int
    ending: str
    words: str = ''
    error: str = ''
    iteration: Optional[int] = None


@dataclass
class RunFacts:
    """Facts about a run as a whole.

    Args:
        silent (list[int]): Ranks that left no record of their end, although others did.
        filled (dict[str, dict[int, int]]): Loss -> rank -> iterations in which zeros replaced its missing loss.
        first_filled (dict[int, tuple]): Rank -> the first such iteration, and its samples there.
    """

    silent: List[int] = field(default_factory=list)
    filled: Dict[str, Dict[int, int]] = field(default_factory=dict)
    first_filled: Dict[int, Tuple[int, List[str]]] = field(default_factory=dict)


def name_ranks(ranks: Sequence[int], one: str = '', many: str = '') -> str:
    """Name the first eight ranks, with a verb.

    Example:
        >>> name_ranks([3], 'was', 'were'), name_ranks([0, 2], 'was', 'were'), name_ranks([1])
        ('Rank 3 was', 'Ranks 0, 2 were', 'Rank 1')
    """
    listed = ', '.join(map(str, ranks[:8])) + (', ...' if len(ranks) > 8 else '')
    return f'{plural(len(ranks), "Rank")} {listed} {one if len(ranks) == 1 else many}'.rstrip()


def format_exception(error: str, limit: int = 600) -> str:
    """Format an exception as evidence, in one line."""
    text = ' '.join(error.split())
    return text if len(text) <= limit else f'{text[: limit - 3]}...'
