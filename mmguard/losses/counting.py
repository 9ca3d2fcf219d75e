"""Counters that live on the device until the hook reads them."""

from __future__ import annotations

from typing import List, Optional

from torch import Tensor

from mmguard.compat.torch_names import is_compiling
from mmguard.labels.errors import LabelGuardError
from mmguard.labels.tally import SEVERAL
from mmguard.log.messages import warn_unreported
from mmguard.nn.counting import AddsCounts


class CountsLabels(AddsCounts):
    """Mixin of the guarded losses: elements seen, skipped and remapped since the hook last read them.

    Attributes:
        sources (list[str], optional): Files of the samples of the current batch; the hook sets them, so that
            ``on_invalid='raise'`` can name the file.
    """

    sources: Optional[List[str]] = None

    def take_counts(self) -> Optional[Tensor]:
        """Return elements seen, skipped, remapped since the last call: int64 (3,); ``None`` if nothing was seen."""
        counts, self._counts = self._counts, None
        return counts

    def _record(self, counts: Tensor) -> None:
        if not is_compiling():
            warn_unreported(type(self).__name__)
        super()._record(counts)

    def _with_source(self, error: LabelGuardError, label: Optional[Tensor]) -> LabelGuardError:
        """Name the file of the first invalid element, if its first index is the sample in the batch.

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
