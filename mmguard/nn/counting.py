"""Running counts of a loss, on the device until somebody reads them."""

from __future__ import annotations

from typing import Optional

import torch
from torch import Tensor

from mmguard.tally import Tally

try:
    from torch._subclasses.fake_tensor import FakeTensor
except ImportError:  # torch < 2.0 has none
    FakeTensor = ()  # type: ignore[assignment,misc]


class KeepsTally:
    """Mixin of the losses: adds up elements seen, skipped and remapped over all calls, without waiting for the device.

    The counter is a plain attribute, no buffer: a state_dict stays the stock one, DDP would overwrite a buffer with
    that of rank 0, and an average of models would average it.
    """

    _counts: Optional[Tensor] = None

    @property
    def counts(self) -> Optional[Tensor]:
        """int64 (3,) on the device: elements seen, skipped, remapped since the last reset; ``None`` before any call.

        To add up ranks: ``torch.distributed.all_reduce(criterion.counts.clone())``.
        """
        return self._counts

    def tally(self) -> Tally:
        """The running counts; reading them waits for the device, so do it once in a while, not in every step."""
        return Tally() if self._counts is None else Tally(*self._counts.tolist())

    def reset_tally(self) -> None:
        """Counts from 0 again."""
        self._counts = None

    def _record(self, counts: Tensor) -> None:
        if isinstance(counts, FakeTensor) or _is_batched(counts):
            return
        self._counts = counts if self._counts is None else self._counts.to(counts.device) + counts


def _is_batched(tensor: Tensor) -> bool:
    """Whether ``tensor`` belongs to a ``torch.func`` transform, outside of which it cannot live."""
    compiler = getattr(torch, 'compiler', None)  # neither is in torch < 2.0
    functorch = getattr(torch._C, '_functorch', None)
    if compiler is None or functorch is None or compiler.is_compiling():
        return False
    return functorch.is_functorch_wrapped_tensor(tensor)
