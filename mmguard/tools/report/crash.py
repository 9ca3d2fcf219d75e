"""What FlightRecorderHook left: how each rank ended, and what was in its last batches."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import List, Sequence, Set, Tuple

from mmguard.labels.instances import describe_reasons
from mmguard.labels.tally import Tally
from mmguard.log.flight_record import KILLED, RUNNING, Flight, FlightBatch, read_flight
from mmguard.text.words import counted
from mmguard.tools.explain.sources import config_of

_FRAME = re.compile(r'^ *File "(.+)", line (\d+), in (.+)$', re.MULTILINE)

#: What the others raise when a rank is gone: mmguard, gloo, NCCL.
_OF_ANOTHER_RANK = re.compile('^AbsentRankError|by peer|remote process exited')


@dataclass
class RankCrash:
    """How one rank ended.

    Args:
        path (Path): Its file.
        flight (Flight): What it says.
    """

    path: Path
    flight: Flight

    @property
    def error(self) -> str:
        """Type and message of the exception; empty where there is none."""
        error = self.flight.exception
        return '' if error is None else f'{error.type}: {error.message}'

    @property
    def traceback(self) -> str:
        """That of the exception."""
        return '' if self.flight.exception is None else self.flight.exception.traceback

    @property
    def batches(self) -> List[FlightBatch]:
        """The newest first."""
        return self.flight.batches[::-1]

    @property
    def place(self) -> str:
        """The innermost line of the traceback, ``'loss.py:45 in forward'``."""
        frames = _FRAME.findall(self.traceback)
        return '{}:{} in {}'.format(*frames[-1]) if frames else ''

    @property
    def said(self) -> str:
        """``rank 0 ended by RuntimeError in iteration 37 (epoch 2), 2026-01-01T12:00:00``."""
        flight = self.flight
        how = self.error.partition(':')[0] if self.error else flight.reason
        verb = {'exception': 'ended by', KILLED: 'was', RUNNING: 'is'}.get(flight.reason, 'was recorded:')
        where = '' if flight.iter is None else f' in iteration {flight.iter:,}'
        where += '' if flight.epoch is None or not where else f' (epoch {flight.epoch:,})'
        when = f', {flight.time}' if flight.time else ''
        return f'rank {flight.rank} {verb} {how or "nothing of its end"}{where or " before the first"}{when}'


@dataclass
class Crash:
    """How a run ended.

    Args:
        ranks (list[RankCrash]): The one that ended first, in front: the others were mostly stopped because of it.
        silent (list[int]): Ranks that left no record.
        problems (list[str]): Records that cannot be read, or are still being written.
        is_damaged (bool): Whether one cannot be read.
    """

    ranks: List[RankCrash] = field(default_factory=list)
    silent: List[int] = field(default_factory=list)
    problems: List[str] = field(default_factory=list)
    is_damaged: bool = False

    @property
    def replay(self) -> str:
        """The command to go on with."""
        path = self.ranks[0].path
        config = config_of(path.parent)
        return f'mmguard replay {"CONFIG" if config is None else shlex.quote(str(config))} {shlex.quote(str(path))}'


def read_crash(paths: Sequence[Path], world_size: int = 0) -> Crash:
    """Reads the files of all ranks; what says nothing of an end, or cannot be read, is in ``problems``.

    Args:
        paths (list[Path]): The files.
        world_size (int): How many ranks there were, where that is known.
    """
    crash = Crash()
    there: Set[int] = set()
    for path in paths:
        try:
            flight = read_flight(str(path))
        except (OSError, ValueError) as error:
            crash.is_damaged = True
            crash.problems.append(f'{path}: {error.strerror or error}' if isinstance(error, OSError) else str(error))
            continue
        rank = RankCrash(path, flight)
        there.add(flight.rank)
        if flight.reason == RUNNING:
            crash.problems.append(f'{path}: {rank.said}')
        else:
            crash.ranks.append(rank)
        crash.problems += flight.unread.words()
    crash.ranks.sort(key=_order)
    # Only where the file of another rank is expected here: a lone file may have been sent by someone.
    crash.silent = [rank for rank in range(world_size) if rank not in there]
    return crash


def is_of_another_rank(error: str) -> bool:
    """Whether an exception only says that another rank is gone."""
    return bool(_OF_ANOTHER_RANK.search(error))


def _order(rank: RankCrash) -> Tuple[int, str, int]:
    # A launcher kills the others when one rank has raised something of its own.
    flight = rank.flight
    raised = flight.reason == 'exception' and not is_of_another_rank(rank.error)
    return 0 if raised else 1 if flight.reason == KILLED else 2, flight.time, flight.rank


def described(batch: FlightBatch) -> List[Tuple[str, str]]:
    """File -> what guards found in it, in words; empty where that is nothing."""
    return [
        (sample.source, '; '.join(_words(kind, tally) for kind, tally in sample.invalid.items()))
        for sample in batch.samples
    ]


def _words(kind: str, tally: Tally) -> str:
    changes = ((tally.skipped, 'skipped'), (tally.remapped, 'remapped'))
    amount = ', '.join(f'{counted(count, kind[:-1])} {change}' for count, change in changes if count)
    reasons = describe_reasons(tally)
    return f'{amount}: {reasons}' if reasons else amount
