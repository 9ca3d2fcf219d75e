"""What is known of a run and its ranks: how each ended, and what it lacked before."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Dict, List, Optional, Sequence, Tuple

from mmguard.text import plural

#: How a rank ended: it raised; it raised because it waited for another rank in vain; it ended without an exception; an
#: iteration took too long.
RAISED, MISSED_ANOTHER, KILLED, STOOD_STILL = ('raised', 'missed another', 'killed', 'stood still')


@dataclass
class RankFacts:
    """How one rank ended.

    Args:
        rank (int): Its number.
        ending (str): ``RAISED``, ``MISSED_ANOTHER``, ``KILLED`` or ``STOOD_STILL``.
        words (str): ``'rank 0 ended by RuntimeError in iteration 37 (epoch 2), 2026-01-01T12:00:00'``.
        error (str): Type and message of its exception; empty where there is none.
        iteration (int, optional): Where it stood.
    """

    rank: int
    ending: str
    words: str = ''
    error: str = ''
    iteration: Optional[int] = None


@dataclass
class RunFacts:
    """What is known of a run as a whole.

    Args:
        silent (list[int]): Ranks that left no record, where others left one of their end.
        filled (dict[str, dict[int, int]]): Loss -> rank -> iterations in which it lacked it, and zeros stood in.
        first_filled (dict[int, tuple]): Rank -> the first such iteration, and its samples there.
    """

    silent: List[int] = field(default_factory=list)
    filled: Dict[str, Dict[int, int]] = field(default_factory=dict)
    first_filled: Dict[int, Tuple[int, List[str]]] = field(default_factory=dict)


def ranks_in_words(ranks: Sequence[int], one: str = '', many: str = '') -> str:
    """The first eight ranks, and a verb for them.

    Example:
        >>> ranks_in_words([3], 'was', 'were'), ranks_in_words([0, 2], 'was', 'were'), ranks_in_words([1])
        ('Rank 3 was', 'Ranks 0, 2 were', 'Rank 1')
    """
    listed = ', '.join(map(str, ranks[:8])) + (', ...' if len(ranks) > 8 else '')
    return f'{plural(len(ranks), "Rank")} {listed} {one if len(ranks) == 1 else many}'.rstrip()


def in_one_line(error: str, limit: int = 600) -> str:
    """An exception, as evidence."""
    text = ' '.join(error.split())
    return text if len(text) <= limit else f'{text[: limit - 3]}...'
