"""``label_guard.json``, beside the JSON lines: what was valid in a run, and the sums over all of its iterations."""

from __future__ import annotations

import json
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, Dict, List, Optional

from mmguard.files.whole import write_whole
from mmguard.labels.space import LabelSpace
from mmguard.log.files_seen import FilesSeen
from mmguard.log.ledger import Ledger
from mmguard.log.totals import LoopTotals
from mmguard.version import __version__

#: Counts up when a field changes its meaning.
FORMAT = 1
#: Seconds between two writings while a loop runs: where a run is killed, the counts of so long are missing, at most.
EVERY = 60.0


class RunRecord:
    """Keeps ``label_guard.json`` up to date: at the start and the end of a loop, and once a minute in between.

    A file of its own, not a first line of the log: there every line is an iteration, which is what readers
    (``pandas.read_json(lines=True)``, ``jq``) count on. A run that goes on in the same folder adds its own record to
    those of the file. A disk that is full never hurts a training: ``error`` says why nothing was written.

    Args:
        path (str): The file; its folder is made.
        config (str, optional): The config of the run.
        rank, world_size (int): Of this process.
        every (float): Least time between two writings while a loop runs, seconds.
        framework (str): Who trains: ``'openmmlab'``, ``'pytorch'`` (a loop of one's own) or ``'nnunet'``.
    """

    def __init__(
        self,
        path: str,
        config: Optional[str] = None,
        rank: int = 0,
        world_size: int = 1,
        every: float = EVERY,
        framework: str = 'openmmlab',
    ) -> None:
        self.path = path
        self.error: Optional[OSError] = None
        self._run: Dict[str, Any] = {
            'mmguard': __version__,
            'framework': framework,
            'config': config,
            'started': time.strftime('%Y-%m-%dT%H:%M:%S%z'),
            'rank': rank,
            'world_size': world_size,
            'modes': {},
        }
        self._modes: Dict[str, _Mode] = {}
        self._earlier: Optional[List[Any]] = None
        self._every = every
        self._written = 0.0

    def begin(self, mode: str, ledger: Ledger, valid: Optional[Dict[str, Any]] = None) -> None:
        """A loop begins.

        Args:
            mode (str): ``'train'``, ``'val'`` or ``'test'``.
            ledger (Ledger): Where it is counted.
            valid (dict, optional): What is valid in it, see :func:`valid_labels`; kept from its first time.
        """
        first = mode not in self._modes
        said = self._run['modes'].setdefault(mode, dict(valid or {}))
        state = self._modes.setdefault(mode, _Mode(said))
        state.take(ledger)
        said['ended'] = False
        if first:
            self.write()

    def see(self, mode: str, place: Dict[str, int]) -> None:
        """The loop goes on; ``place`` is the iteration, as in the lines of the log."""
        self._run['modes'][mode].update(place)
        if time.monotonic() - self._written >= self._every:
            self.write()

    def end(self, mode: str) -> None:
        """The loop came to its end."""
        self._modes[mode].fold()
        self._run['modes'][mode]['ended'] = True
        self.write()

    def write(self) -> bool:
        """Writes the file, whole or not at all. Returns False where it could not."""
        self._written = time.monotonic()
        if self._earlier is None:
            self._earlier = _runs_in(self.path)
        for mode, state in self._modes.items():
            self._run['modes'][mode].update(loops=state.loops(), totals=state.totals().to_json())
        record = {'format': FORMAT, 'runs': [*self._earlier, self._run]}
        try:
            # File names that are no UTF-8 are lone surrogates, which JSON can hold as an escape alone.
            text = json.dumps(record, ensure_ascii=False, indent=1).encode(errors='backslashreplace')
            write_whole(Path(self.path), text)
        except OSError as error:
            self.error = error
            return False
        self.error = None
        return True


class _Mode:
    """The loops of one mode: those that ended, and the one that runs.

    Args:
        said (dict): What the record says of the mode, the last iteration among it.
    """

    def __init__(self, said: Dict[str, Any]) -> None:
        self._said = said
        self._loops: Dict[str, int] = {}
        self._ended = LoopTotals()
        self._running: Optional[Ledger] = None
        self._files = FilesSeen()

    def take(self, ledger: Ledger) -> None:
        self.fold()
        self._running = ledger

    def fold(self) -> None:
        if self._running is not None:
            self._loops = self.loops()
            self._ended = self.totals()
            self._files = self._all_files()
            self._running = None

    def loops(self) -> Dict[str, int]:
        """Return where each loop was at its end (of a validation, the training iteration) -> its iterations."""
        place = self._said.get('step', self._said.get('iter'))
        running = 0 if self._running is None else self._running.iterations
        return {**self._loops, **({str(place): running} if running else {})}

    def totals(self) -> LoopTotals:
        totals = self._ended if self._running is None else self._ended + self._running.totals()
        files = self._all_files()
        return replace(totals, files=len(files), offending_files=files.offending)

    def _all_files(self) -> FilesSeen:
        """Not the sum over the loops: a validation sees the same files each time."""
        running = FilesSeen() if self._running is None else self._running.files
        if not len(self._files):
            return running
        self._files.merge(running)
        return self._files


def _runs_in(path: str) -> List[Any]:
    """The runs of a file that is there already; one that is none of this format is replaced."""
    try:
        record = json.loads(Path(path).read_bytes())
    except (OSError, ValueError):
        return []
    runs = record.get('runs') if isinstance(record, dict) and record.get('format') == FORMAT else None
    return runs if isinstance(runs, list) else []


def record_name(out_file: str) -> str:
    """The name beside that of the JSON lines.

    Example:
        >>> record_name('label_guard.jsonl'), record_name('guard.json')
        ('label_guard.json', 'guard.run.json')
    """
    stem = os.path.splitext(out_file)[0]
    return f'{stem}.json' if f'{stem}.json' != out_file else f'{stem}.run.json'


def space_to_json(kind: str, space: LabelSpace) -> Dict[str, Any]:
    """What a guard takes for valid, as plain data; ``kind`` is ``'pixels'`` or ``'instances'``."""
    return {
        'kind': kind,
        'num_classes': space.num_classes,
        **({'min_label': space.min_label} if getattr(space, 'min_label', 0) else {}),
        'ignore_index': space.ignore_index,
        'on_invalid': space.on_invalid,
        'label_map': {str(raw): label for raw, label in sorted(space.label_map.items())},
    }
