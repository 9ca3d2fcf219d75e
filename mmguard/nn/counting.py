"""Running counts of a loss, on the device until somebody reads them."""

from __future__ import annotations

from typing import Optional

from torch import Tensor

from mmguard.tally import Tally
from mmguard.torch_compat import outlives_call


class RunningCounts:
    """Adds up counts over calls without waiting for the device.

    An object of its own, no attribute of the loss: ``torch.export`` refuses a module that sets an attribute.

    Attributes:
        total (Tensor, optional): int64 (3,), elements seen, skipped, remapped; ``None`` before any call.
    """

    total: Optional[Tensor] = None

    def add(self, counts: Tensor) -> None:
        """Adds ``counts``, unless they belong to an export or a transform, outside of which they cannot live."""
        if not outlives_call(counts):
            return
        before = self.total
        # torch < 2.7 leaves the fake tensor of an export here.
        self.total = counts if before is None or not outlives_call(before) else before.to(counts.device) + counts


class KeepsTally:
    """Mixin of the losses: adds up elements seen, skipped and remapped over all calls, without waiting for the device.

    The counter is no buffer: a state_dict stays the stock one, DDP would overwrite a buffer with that of rank 0, and an
    average of models would average it.
    """

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)
        self._running = RunningCounts()

    @property
    def counts(self) -> Optional[Tensor]:
        """int64 (3,) on the device: elements seen, skipped, remapped since the last reset; ``None`` before any call.

        To add up ranks: ``torch.distributed.all_reduce(criterion.counts.clone())``.
        """
        return self._running.total

    def tally(self) -> Tally:
        """The running counts; reading them waits for the device, so do it once in a while, not in every step."""
        return Tally() if self.counts is None else Tally(*self.counts.tolist())

    def reset_tally(self) -> None:
        """Counts from 0 again."""
        self._running.total = None
