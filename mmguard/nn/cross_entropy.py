"""Drop-in replacements for ``torch.nn``'s cross entropies; ``torch.jit.script`` is not supported."""

from __future__ import annotations

from typing import Any, Dict, Optional

import torch
from torch import Tensor

from mmguard.functional import binary_cross_entropy_with_logits
from mmguard.functional.cross_entropy import cross_entropy_and_counts
from mmguard.labels.rules import check_on_invalid
from mmguard.nn.counting import KeepsTally


class CrossEntropyLoss(KeepsTally, torch.nn.CrossEntropyLoss):
    """``torch.nn.CrossEntropyLoss`` that excludes invalid targets.

    See :func:`mmguard.functional.cross_entropy` for valid targets, ``on_invalid`` and differences from PyTorch. All
    other arguments, the buffers and the state_dict are PyTorch's, so that checkpoints load in both directions.

    Example:
        >>> criterion = CrossEntropyLoss(ignore_index=255)
        >>> loss = criterion(torch.zeros(4, 3), torch.tensor([0, 2, 255, 11]))
        >>> criterion.tally()
        Tally(total=4, skipped=1, remapped=0, values={11: 1}, source=None, reasons={}, mapped=0, other_values=0)
        >>> criterion
        CrossEntropyLoss(ignore_index=255)
    """

    def __init__(
        self,
        weight: Optional[Tensor] = None,
        size_average: Optional[bool] = None,
        ignore_index: int = -100,
        reduce: Optional[bool] = None,
        reduction: str = 'mean',
        label_smoothing: float = 0.0,
        *,
        on_invalid: str = 'ignore',
    ) -> None:
        super().__init__(weight, size_average, ignore_index, reduce, reduction, label_smoothing)
        self.on_invalid = check_on_invalid(on_invalid)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Compute the loss like :func:`mmguard.functional.cross_entropy`; ``tally()`` returns the counts."""
        loss, counts = cross_entropy_and_counts(
            input, target, self.weight, self.ignore_index, self.reduction, self.label_smoothing, self.on_invalid
        )
        assert counts is not None
        self._record(counts)
        return loss

    def extra_repr(self) -> str:
        shown = {} if self.weight is None else {'weight': tuple(self.weight.shape)}
        stock = {'ignore_index': -100, 'reduction': 'mean', 'label_smoothing': 0.0, 'on_invalid': 'ignore'}
        shown.update({name: getattr(self, name) for name in stock if getattr(self, name) != stock[name]})
        return ', '.join(f'{name}={value!r}' for name, value in shown.items())


class BCEWithLogitsLoss(KeepsTally, torch.nn.BCEWithLogitsLoss):
    """``torch.nn.BCEWithLogitsLoss`` that excludes targets outside [0, 1], NaN included.

    See :func:`mmguard.functional.binary_cross_entropy_with_logits` for ``ignore_index`` and ``on_invalid``. All
    other arguments, the buffers and the state_dict are PyTorch's.

    Example:
        >>> criterion = BCEWithLogitsLoss(ignore_index=-1)
        >>> loss = criterion(torch.zeros(1, 4), torch.tensor([[0.0, 1.0, -1.0, 255.0]]))
        >>> criterion.tally().skipped
        1
    """

    def __init__(
        self,
        weight: Optional[Tensor] = None,
        size_average: Optional[bool] = None,
        reduce: Optional[bool] = None,
        reduction: str = 'mean',
        pos_weight: Optional[Tensor] = None,
        *,
        ignore_index: Optional[float] = None,
        on_invalid: str = 'ignore',
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction, pos_weight)
        self.ignore_index = ignore_index
        self.on_invalid = check_on_invalid(on_invalid)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Compute :func:`mmguard.functional.binary_cross_entropy_with_logits`; ``tally()`` returns the counts."""
        loss, counts = binary_cross_entropy_with_logits(
            input,
            target,
            self.weight,
            reduction=self.reduction,
            pos_weight=self.pos_weight,
            ignore_index=self.ignore_index,
            on_invalid=self.on_invalid,
            return_tally=True,
        )
        self._record(counts)
        return loss

    def extra_repr(self) -> str:
        stock: Dict[str, Any] = {'reduction': 'mean', 'ignore_index': None, 'on_invalid': 'ignore'}
        shown = {name: tuple(w.shape) for name in ('weight', 'pos_weight') if (w := getattr(self, name)) is not None}
        shown.update({name: getattr(self, name) for name in stock if getattr(self, name) != stock[name]})
        return ', '.join(f'{name}={value!r}' for name, value in shown.items())
