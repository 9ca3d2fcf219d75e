"""The log of a training loop of your own, in the form that ``LabelGuardHook`` writes and ``mmguard report`` reads."""

from __future__ import annotations

import atexit
import os
import warnings
from dataclasses import replace
from typing import Any, Dict, Optional, Sequence, Set

import torch.distributed as dist

from mmguard.labels.space import check_int
from mmguard.labels.tally import Tally
from mmguard.log.iteration_stats import KINDS, IterationStats
from mmguard.log.run_log import MAX_MB, RunLog
from mmguard.text.visible import visible


class TallyLog:
    """Appends one line to ``label_guard.jsonl`` for each iteration in which something was skipped or remapped.

    A line is handed to the operating system at once, so a training that dies loses none. The sums over all iterations
    stand beside it, in ``label_guard.json``: they are brought up to date once a minute, by ``close``, and when Python
    ends. A disk that is full is reported once, and the training goes on.

    Args:
        folder (str): Where the files are; made at the first iteration.
        rank (int, optional): Of this process; every other than 0 has files of its own, ``label_guard.rank1.jsonl``.
            ``None``: that of torch.distributed, 0 where nothing is distributed.
        num_classes (int, optional): Labels ``[0, num_classes)`` are valid: the report then needs no ``--num-classes``.
        ignore_index (int, optional): The label that takes no part.
        max_log_mb (float): What the file of lines may grow to, in MB; then the sums go on alone.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder, TallyLog(folder, num_classes=264) as log:
        ...     log.write(1, [Tally(total=4)])  # no line: nothing to report
        ...     log.write(2, [Tally(total=4, skipped=1, values={600: 1}, source='image_id 42', reasons={'label': 1})])
        ...     print(open(log.path).read()[:42])
        {"mode": "train", "iter": 2, "skipped_pixe
    """

    def __init__(
        self,
        folder: str,
        rank: Optional[int] = None,
        num_classes: Optional[int] = None,
        ignore_index: Optional[int] = None,
        max_log_mb: float = MAX_MB,
    ) -> None:
        distributed = dist.is_available() and dist.is_initialized()
        if rank is None:
            rank = dist.get_rank() if distributed else 0
        world_size = dist.get_world_size() if distributed else rank + 1
        for name, value in (('num_classes', num_classes), ('ignore_index', ignore_index)):
            if value is not None:
                check_int(name, value)
        self._folder = folder
        self._log = RunLog(folder, rank, world_size, framework='pytorch', max_mb=max_log_mb)
        self._num_classes = num_classes
        self._ignore_index = ignore_index
        self._open: Set[str] = set()
        atexit.register(self._close_at_exit)

    @property
    def path(self) -> str:
        """The file of lines."""
        return self._log.path or ''

    def write(self, iteration: int, tallies: Sequence[Tally], kind: str = 'instances', mode: str = 'train') -> None:
        """Takes an iteration, also one without anything to report: the sums count it.

        Args:
            iteration (int): Its number, counted from 1 over the whole training.
            tallies (Sequence[Tally]): One per image, as ``return_tally=True`` gives them.
            kind (str): What they count: ``'instances'`` or ``'pixels'``.
            mode (str): ``'train'``, ``'val'`` or ``'test'``.

        Raises:
            TypeError: ``iteration`` is no integer.
            ValueError: An unknown ``kind``.
        """
        if kind not in KINDS:
            raise ValueError(f'kind must be one of {", ".join(map(repr, KINDS))}, got {kind!r}')
        place = check_int('iteration', iteration)
        span = _span(tallies, kind)
        if mode not in self._open:
            self._open.add(mode)
            self._log.begin(mode, self._valid(kind))
        self._log.see(mode, {'iter': place}, span, [str(t.source) for t in tallies if t.source is not None])
        self._warn_of_problems()

    def close(self) -> None:
        """Writes the sums. An iteration that is written afterwards begins a new count in the same file."""
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
        if os.path.isdir(self._folder):  # a temporary folder that was taken away is not made again
            self.close()

    def _valid(self, kind: str) -> Dict[str, Any]:
        """What is valid, for the record."""
        if self._num_classes is None:
            return {}
        return {'guards': [{'kind': kind, 'num_classes': self._num_classes, 'ignore_index': self._ignore_index}]}

    def _warn_of_problems(self) -> None:
        for problem in self._log.take_problems():
            warnings.warn(f'mmguard: {visible(problem)}', stacklevel=3)


def _span(tallies: Sequence[Tally], kind: str) -> IterationStats:
    offending = [tally for tally in tallies if tally]
    span = IterationStats(iterations=1, samples=len(tallies), offending_samples=len(offending))
    # The values stand with the files.
    setattr(span, kind, replace(sum(tallies, Tally()), values={}, other_values=0, source=None))
    span.offending[kind] = offending
    span.offending_iterations = int(bool(offending))
    if kind == 'instances':
        span.empty_images = sum(tally.total == tally.skipped for tally in tallies)
    return span
