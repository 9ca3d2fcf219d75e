"""Log for your own training loop, in the format of ``LabelGuardHook`` and ``mmguard report``."""

from __future__ import annotations

import atexit
import os
import warnings
from typing import Any, Dict, Optional, Sequence, Set

import torch.distributed as dist

from mmguard.labels.rules import check_int
from mmguard.labels.tally import Tally
from mmguard.log.run_log import RunLog
from mmguard.log.statistics import KINDS, ModeStats, Stats
from mmguard.text import visible


class TallyLog:
    """Log that gets a line in ``label_guard.jsonl`` for each iteration in which something was skipped or remapped.

    A line is passed to the operating system immediately, so a training that dies loses none. The sums over all
    iterations are in ``label_guard.json`` next to it, updated once a minute, by ``close``, and when Python ends. A
    full disk is reported once, and the training continues. Ranks of ``torch.distributed`` have their own files,
    ``label_guard.rank1.jsonl`` and so on.

    Args:
        folder (str): Folder of the files; created at the first iteration.
        num_classes (int, optional): Labels ``[0, num_classes)`` are valid; without it, no report names a cause.
        ignore_index (int, optional): The label that is excluded.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder, TallyLog(folder, num_classes=264) as log:
        ...     _ = log.write(1, [Tally(total=4)])  # no line: nothing to report
        ...     _ = log.write(2, [Tally(4, skipped=1, values={600: 1}, source='image_id 42', reasons={'label': 1})])
        ...     print(open(log.path).read()[:42])
        {"mode": "train", "iter": 2, "skipped_pixe
    """

    def __init__(self, folder: str, num_classes: Optional[int] = None, ignore_index: Optional[int] = None) -> None:
        ranks = dist.is_available() and dist.is_initialized()
        for name, value in (('num_classes', num_classes), ('ignore_index', ignore_index)):
            if value is not None:
                check_int(name, value)
        rank, world_size = (dist.get_rank(), dist.get_world_size()) if ranks else (0, 1)
        self._folder = folder
        self._log = RunLog(folder, rank, world_size, framework='pytorch')
        self._num_classes = num_classes
        self._ignore_index = ignore_index
        self._open: Set[str] = set()
        atexit.register(self._close_at_exit)

    @property
    def path(self) -> str:
        """The file of lines."""
        return self._log.lines

    @property
    def modes(self) -> Dict[str, ModeStats]:
        """``'train'``, ``'val'`` or ``'test'`` -> its statistics."""
        return self._log.modes

    def write(self, iteration: int, tallies: Sequence[Tally], kind: str = 'instances', mode: str = 'train') -> Stats:
        """Add an iteration, also one without anything to report: the sums count it.

        Args:
            iteration (int): Its number, counted from 1 over the whole training.
            tallies (Sequence[Tally]): One per image, as ``return_tally=True`` returns them.
            kind (str): What they count: ``'instances'`` or ``'pixels'``.
            mode (str): ``'train'``, ``'val'`` or ``'test'``.

        Returns:
            Stats: Their sum.

        Raises:
            TypeError: ``iteration`` is not an integer.
            ValueError: An unknown ``kind``.
        """
        if kind not in KINDS:
            raise ValueError(f'kind must be one of {", ".join(map(repr, KINDS))}, got {kind!r}')
        place = {'iter': check_int('iteration', iteration)}
        stats = Stats()
        for tally in tallies:
            stats.add_image({kind: vars(tally)})
        if kind == 'instances':
            stats.empty_images = sum(tally.total == tally.skipped for tally in tallies)
        if mode not in self._open:
            self._open.add(mode)
            guard = {'kind': kind, 'num_classes': self._num_classes, 'ignore_index': self._ignore_index}
            self._log.begin(mode, {} if self._num_classes is None else {'guards': [guard]})
        sources = [str(tally.source) for tally in tallies if tally.source is not None]
        self._log.see(mode, place, stats.end_iteration(), sources)
        self._warn_of_problems()
        return stats

    def close(self) -> None:
        """Write the sums. An iteration that is written afterwards starts a new count in the same file."""
        for mode in self._open:
            self._log.end(mode)
        self._open.clear()
        self._log.close()
        self._warn_of_problems()

    def __enter__(self) -> TallyLog:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def _close_at_exit(self) -> None:
        if os.path.isdir(self._folder):  # a removed temporary folder is not created again
            self.close()

    def _warn_of_problems(self) -> None:
        for problem in self._log.take_problems():
            warnings.warn(f'mmguard: {visible(problem)}', stacklevel=3)
