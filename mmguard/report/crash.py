"""What FlightRecorderHook left: how each rank ended, and what was in its last batches."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence, Set, Tuple

from mmguard.instances import describe_reasons
from mmguard.log.flight_record import KILLED, RUNNING, read_record
from mmguard.log.totals import KINDS
from mmguard.report.run_files import config_of
from mmguard.tally import Tally
from mmguard.words import counted, plural

_FRAME = re.compile(r'^\s*File "(.+)", line (\d+), in (.+)$', re.MULTILINE)

#: What the others raise when a rank is gone: mmguard, gloo, NCCL.
_OF_ANOTHER_RANK = re.compile('^AbsentRankError|by peer|remote process exited')


@dataclass
class CrashBatch:
    """A recorded batch.

    Args:
        iteration (int, optional): As the console counts.
        samples (list[tuple]): File -> what guards found in it (kind -> tally).
        losses (dict[str, float], optional): ``None``: training ended within this iteration.
    """

    iteration: Optional[int]
    samples: List[Tuple[str, Dict[str, Tally]]]
    losses: Optional[Dict[str, float]]


@dataclass
class RankCrash:
    """How one rank ended.

    Args:
        path (Path): Its file.
        rank (int): Of the process.
        reason (str): ``'exception'``, ``KILLED``, or what the watchdog said.
        time (str): When.
        iteration, epoch (int, optional): Where it stood.
        error (str): Type and message of the exception; empty where there is none.
        traceback (str): Of the exception.
        batches (list[CrashBatch]): The newest first.
    """

    path: Path
    rank: int = 0
    reason: str = ''
    time: str = ''
    iteration: Optional[int] = None
    epoch: Optional[int] = None
    error: str = ''
    traceback: str = ''
    batches: List[CrashBatch] = field(default_factory=list)

    @property
    def place(self) -> str:
        """The innermost line of the traceback, ``'loss.py:45 in forward'``."""
        frames = _FRAME.findall(self.traceback)
        return '{}:{} in {}'.format(*frames[-1]) if frames else ''

    @property
    def told(self) -> str:
        """``rank 0 ended by RuntimeError in iteration 37 (epoch 2), 2026-01-01T12:00:00``."""
        how = self.error.partition(':')[0] if self.error else self.reason
        verb = {'exception': 'ended by', KILLED: 'was', RUNNING: 'is'}.get(self.reason, 'was recorded:')
        where = '' if self.iteration is None else f' in iteration {self.iteration:,}'
        where += '' if self.epoch is None or not where else f' (epoch {self.epoch:,})'
        return f'rank {self.rank} {verb} {how or "nothing that it told"}{where or " before the first"}, {self.time}'


@dataclass
class Crash:
    """How a run ended.

    Args:
        ranks (list[RankCrash]): The one that ended first, in front: the others were mostly stopped because of it.
        silent (list[int]): Ranks that left no record.
        problems (list[str]): Records that cannot be read, or are still being written.
    """

    ranks: List[RankCrash] = field(default_factory=list)
    silent: List[int] = field(default_factory=list)
    problems: List[str] = field(default_factory=list)

    @property
    def replay(self) -> str:
        """The command to go on with."""
        path = self.ranks[0].path
        config = config_of(path.parent)
        return f'mmguard replay {"CONFIG" if config is None else shlex.quote(str(config))} {shlex.quote(str(path))}'


def read_crash(paths: Sequence[Path], world_size: int = 0) -> Crash:
    """Reads the files of all ranks; what says nothing of an end is told in ``problems``.

    Args:
        paths (list[Path]): The files.
        world_size (int): How many ranks there were, where that is known.
    """
    crash = Crash()
    there: Set[int] = set()
    for path in paths:
        try:
            rank = _rank_crash(path, read_record(str(path)))
            there.add(rank.rank)
            if rank.reason == RUNNING:
                crash.problems.append(f'{path}: {rank.told}')
            else:
                crash.ranks.append(rank)
        except OSError as error:
            crash.problems.append(f'{path}: {error.strerror or error}')
        except (ValueError, TypeError, AttributeError, KeyError) as error:
            crash.problems.append(str(error) if str(path) in str(error) else f'{path}: damaged ({error})')
    crash.ranks.sort(key=_order)
    # Only where the file of another rank is expected here: a lone file may have been sent by someone.
    crash.silent = [rank for rank in range(world_size) if rank not in there]
    return crash


def _order(rank: RankCrash) -> Tuple[int, str, int]:
    # A launcher kills the others when one rank has raised something of its own.
    raised = rank.reason == 'exception' and not _OF_ANOTHER_RANK.search(rank.error)
    return 0 if raised else 1 if rank.reason == KILLED else 2, rank.time, rank.rank


def _rank_crash(path: Path, record: Dict[str, Any]) -> RankCrash:
    error = record.get('exception') or {}
    batches = [_batch(batch) for batch in reversed(record['batches'])]
    return RankCrash(
        path,
        int(record.get('rank', 0)),
        str(record.get('reason', '')),
        str(record.get('time', '')),
        _number(record.get('iter')),
        _number(record.get('epoch')),
        f'{error.get("type")}: {error.get("message")}' if error else '',
        str(error.get('traceback') or ''),
        batches,
    )


def _batch(record: Dict[str, Any]) -> CrashBatch:
    samples = [(str(sample.get('source')), _tallies(sample)) for sample in record['samples']]
    losses = record.get('losses')
    found = None if losses is None else {str(name): float(value) for name, value in losses.items()}
    return CrashBatch(_number(record.get('iter')), samples, found)


def _number(value: Any) -> Optional[int]:
    return value if isinstance(value, int) else None


def _tallies(sample: Dict[str, Any]) -> Dict[str, Tally]:
    record = sample.get('tallies') or {}
    tallies = {kind: Tally.from_json({'source': None, **record[kind]}) for kind in KINDS if kind in record}
    return {kind: tally for kind, tally in tallies.items() if tally}


def described(batch: CrashBatch) -> List[Tuple[str, str]]:
    """File -> what guards found in it, in words; empty where that is nothing."""
    return [
        (source, '; '.join(_words(kind, tally) for kind, tally in found.items())) for source, found in batch.samples
    ]


def _words(kind: str, tally: Tally) -> str:
    changes = ((tally.skipped, 'skipped'), (tally.remapped, 'remapped'))
    amount = ', '.join(f'{counted(count, kind[:-1])} {change}' for count, change in changes if count)
    reasons = describe_reasons(tally)
    return f'{amount}: {reasons}' if reasons else amount


def silent_ranks(ranks: Sequence[int]) -> str:
    """What it means that ranks left no record."""
    listed = ', '.join(map(str, ranks[:8])) + (', ...' if len(ranks) > 8 else '')
    return (
        f'{plural(len(ranks), "rank")} {listed} left no record: ended well, never began to train, or wrote it '
        f'on another machine'
    )
