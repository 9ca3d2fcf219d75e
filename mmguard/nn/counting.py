"""Running counts of a loss, on the device until somebody reads them."""

from __future__ import annotations

from typing import Any, Dict, Optional

import torch
from torch import Tensor

from mmguard.compat.torch_names import is_compiling, is_recomputed, outlives_call
from mmguard.functional.value_table import read_tally
from mmguard.labels.tally import Tally
from mmguard.nn.last_words import note, take_counts_of


class AddsCounts:
    """Mixin of modules: adds up the counts of training calls, without waiting for the device.

    Calls in evaluation mode or without gradient are not counted: validation is no training, and a hard-example sampler
    looks at the losses under ``no_grad`` before the training call sees the same labels. What activation checkpointing
    computes again is counted once.

    The sum is no buffer: a state_dict stays the stock one, DDP would overwrite a buffer with that of rank 0, and an
    average of models would average it.
    """

    training: bool

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._counts: Optional[Tensor] = None

    def _record(self, counts: Tensor) -> None:
        """Adds ``counts``, unless they belong to an export or a transform, outside of which they cannot live."""
        if not (self.training and torch.is_grad_enabled() and outlives_call(counts)) or is_recomputed():
            return
        # Labels of a subclass make counts of it, which may have rules of its own. torch 2.1 does not compile type().
        if not is_compiling() and type(counts) is not Tensor:
            counts = counts.as_subclass(Tensor)
        before = self._counts
        # torch.export before 2.7 leaves a fake tensor here.
        total = counts if before is None or not outlives_call(before) else before.to(counts.device) + counts
        # Not self._counts = total: torch.export before 2.7 refuses that statement in a module, and takes this call.
        setattr(self, '_counts', total)  # noqa: B010


class KeepsTally(AddsCounts):
    """Mixin of the losses: elements seen, skipped and remapped over all training calls, and which values.

    What was skipped or remapped since the last reset is also said at the end of the process that made the loss, in one
    line (the logger ``mmguard``).

    Export a loss in evaluation mode: ``torch.export`` before 2.7 keeps what was counted so far in the graph.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        note(self)

    def __setstate__(self, state: Dict[str, Any]) -> None:
        super().__setstate__(state)  # type: ignore[misc]
        note(self)

    def __del__(self) -> None:
        if self.__dict__.get('_counts') is not None:
            take_counts_of(self)

    @property
    def counts_by_value(self) -> Optional[Tensor]:
        """:attr:`counts` and, of class indices, the table of invalid values behind them."""
        counts = self._counts
        return counts if counts is None or outlives_call(counts) else None

    @property
    def counts(self) -> Optional[Tensor]:
        """int64 (3,) on the device: elements seen, skipped, remapped since the last reset; ``None`` before any call.

        To add up ranks: ``torch.distributed.all_reduce(criterion.counts.clone())``.
        """
        counts = self.counts_by_value
        return None if counts is None else counts[:3]

    def tally(self) -> Tally:
        """The running counts; reading them waits for the device, so do it once in a while, not in every step."""
        counts = self.counts_by_value
        return Tally() if counts is None else read_tally(counts)

    def reset_tally(self) -> None:
        """Counts from 0 again."""
        self._counts = None
