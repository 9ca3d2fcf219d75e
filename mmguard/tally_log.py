"""The log of a training loop of your own, in the form that ``LabelGuardHook`` writes and ``mmguard report`` reads."""

from __future__ import annotations

import os
import warnings
from typing import Optional, Sequence

import torch.distributed as dist

from mmguard.labels import check_int
from mmguard.log.json_lines import NAME, JsonLines, name_for_rank
from mmguard.log.ledger import Span
from mmguard.log.totals import KINDS
from mmguard.tally import Tally


class TallyLog:
    """Appends one line to ``label_guard.jsonl`` for each iteration in which something was skipped or remapped.

    A line is handed to the operating system at once, so a training that dies loses none. A disk that is full is told
    once, and the training goes on.

    Args:
        folder (str): Where the file is; made at the first line.
        rank (int, optional): Of this process; every other than 0 has a file of its own, ``label_guard.rank1.jsonl``.
            ``None``: that of torch.distributed, 0 where nothing is distributed.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     log = TallyLog(folder)
        ...     log.write(1, [Tally(total=4)])  # nothing to tell
        ...     log.write(2, [Tally(total=4, skipped=1, values={600: 1}, source='image_id 42', reasons={'label': 1})])
        ...     print(open(log.path).read()[:42])
        {"mode": "train", "iter": 2, "skipped_pixe
    """

    def __init__(self, folder: str, rank: Optional[int] = None) -> None:
        if rank is None:
            rank = dist.get_rank() if dist.is_available() and dist.is_initialized() else 0
        self._lines = JsonLines(os.path.join(folder, name_for_rank(NAME, rank)))
        self._told = False

    @property
    def path(self) -> str:
        """The file."""
        return self._lines.path

    def write(self, iteration: int, tallies: Sequence[Tally], kind: str = 'instances', mode: str = 'train') -> None:
        """Takes an iteration.

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
        offending = [tally for tally in tallies if tally]
        if not offending:
            return
        span = Span(iterations=1, offending_iterations=1, samples=len(tallies), offending_samples=len(offending))
        setattr(span, kind, sum(tallies, Tally()))
        span.offending[kind] = offending
        if kind == 'instances':
            span.empty_images = sum(tally.total == tally.skipped for tally in tallies)
        if not self._lines.write({'mode': mode, 'iter': place, **span.to_json(str)}) and not self._told:
            self._told = True
            warnings.warn(f'mmguard: {self.path} cannot be written: {self._lines.error}', stacklevel=2)
