"""Counters that live on the device until the hook reads them."""

from __future__ import annotations

from typing import List, Optional

import torch
from torch import Tensor

from mmguard.errors import LabelGuardError
from mmguard.nn.counting import RunningCounts
from mmguard.tally import SEVERAL


class CountsLabels:
    """Mixin of the guarded losses: adds up elements seen, skipped and remapped without a synchronisation.

    The counter is no buffer: DDP would overwrite a buffer with the one of rank 0, an EMA would
    average it, a checkpoint would carry it. Calls without gradient are not counted: a hard-example sampler looks at
    the losses under ``no_grad`` before the training call sees the same labels.

    Attributes:
        sources (list[str], optional): Files of the samples of the present batch; the hook sets them, so that
            ``on_invalid='raise'`` can name the file.
    """

    sources: Optional[List[str]] = None

    def __init__(self) -> None:
        super().__init__()
        self._running = RunningCounts()

    def _record(self, counts: Tensor) -> None:
        if torch.is_grad_enabled():
            self._running.add(counts)

    def take_counts(self) -> Optional[Tensor]:
        """int64 (3,): elements seen, skipped, remapped since the last call; ``None`` where nothing was seen."""
        counts, self._running.total = self._running.total, None
        return counts

    def _with_source(self, error: LabelGuardError, label: Optional[Tensor]) -> LabelGuardError:
        """Names the file of the first invalid element, where its first index is the sample in the batch.

        Labels of boxes and queries are flattened over the batch: their first index says nothing about the sample.
        """
        if not self.sources or not error.positions or label is None:
            return error
        if len(self.sources) == 1:
            source = self.sources[0]
        elif label.dim() > 1 and label.shape[0] == len(self.sources):
            source = self.sources[error.positions[0][0]]
        else:
            return error
        for tally in error.tallies:
            tally.source = source if len(self.sources) == 1 else SEVERAL
        return LabelGuardError(f'{source}: {error}', error.tallies, error.positions)
