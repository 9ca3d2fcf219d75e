"""What ``label_guard.json`` says of a run: the labels that were valid, and the sums over all iterations."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Sequence

from mmguard.log.run_record import FORMAT
from mmguard.log.totals import LoopTotals
from mmguard.report.log_config import LoggedSpace


@dataclass
class LoggedMode:
    """One mode of a run, of all ranks.

    Args:
        totals (LoopTotals): Over all iterations, loops and ranks.
        ended (bool): Whether each rank closed its record: no iteration is missing.
        place (int): The last iteration that is counted.
        said (dict): What the record of the first rank says of valid labels.
    """

    totals: LoopTotals = field(default_factory=LoopTotals)
    ended: bool = True
    place: int = 0
    said: Dict[str, Any] = field(default_factory=dict)

    def space(self, kind: str) -> Optional[LoggedSpace]:
        """The labels that were valid: as the guard of that kind says, or else a loss that met others."""
        for guard in _dicts(self.said.get('guards')):
            if guard.get('kind') == kind and isinstance(guard.get('num_classes'), int):
                return self._space(guard, _label_map(guard.get('label_map')))
        losses = self.said.get('losses')
        for name, count in self.totals.losses.items():
            loss = losses.get(name) if isinstance(losses, dict) else None
            if count and isinstance(loss, dict) and isinstance(loss.get('num_classes'), int):
                return self._space(loss, {})
        return None

    def _space(self, said: Dict[str, Any], label_map: Dict[int, int]) -> LoggedSpace:
        ignored = said.get('ignore_index')
        return LoggedSpace(
            said['num_classes'],
            ignored if isinstance(ignored, int) else None,
            label_map,
            [str(name) for name in _list(self.said.get('classes'))],
            [str(root) for root in _list(self.said.get('data_roots'))],
        )


@dataclass
class LoggedRun:
    """A run, as its records say.

    Args:
        modes (dict[str, LoggedMode]): Mode -> what is known of it.
        ranks (int): How many ranks left a record.
        world_size (int): How many there were; 0 where nothing says so.
        framework (str): Who trained; empty where nothing says so.
        problems (list[str]): Records that cannot be read, and why.
    """

    modes: Dict[str, LoggedMode] = field(default_factory=dict)
    ranks: int = 0
    world_size: int = 0
    framework: str = ''
    problems: List[str] = field(default_factory=list)


def read_run(paths: Sequence[Path]) -> LoggedRun:
    """Adds up the records of all ranks. What cannot be read is told in ``problems``; nothing is raised."""
    run = LoggedRun()
    for path in paths:
        try:
            record = json.loads(path.read_bytes())
            if not isinstance(record, dict) or record.get('format') != FORMAT:
                raise ValueError(f'this mmguard reads format {FORMAT}')
            for part in _dicts(record.get('runs')):
                _add(run, part)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
            run.problems.append(f'{path} is left out: {type(error).__name__}: {error}')
            continue
        run.ranks += 1
    for mode in run.modes.values():
        if run.ranks > 1:
            mode.totals.files = 0  # several ranks have seen the same ones
    return run


def _add(run: LoggedRun, record: Dict[str, Any]) -> None:
    # All of it is read before any of it is added.
    modes = [
        (mode, said, LoopTotals.from_json(said['totals']), int(said.get('step', said.get('iter', 0))))
        for mode, said in record['modes'].items()
    ]
    run.framework = str(record.get('framework') or run.framework)
    run.world_size = max(run.world_size, int(record.get('world_size', 0)))
    for mode, said, totals, place in modes:
        known = run.modes.setdefault(mode, LoggedMode(said=said))
        known.totals = known.totals + totals
        known.ended = known.ended and said.get('ended') is True
        known.place = max(known.place, place)


def _label_map(said: Any) -> Dict[int, int]:
    try:
        return {int(raw): int(label) for raw, label in said.items()}
    except (AttributeError, TypeError, ValueError):
        return {}


def _list(value: Any) -> List[Any]:
    return value if isinstance(value, list) else []


def _dicts(value: Any) -> Iterator[Dict[str, Any]]:
    return (item for item in _list(value) if isinstance(item, dict))
