"""Drop-in for ``torch.nn.BCEWithLogitsLoss``, except that ``torch.jit.script`` cannot compile it."""

from __future__ import annotations

from typing import Any, Dict, Optional

import torch
from torch import Tensor

from mmguard.functional import binary_cross_entropy_with_logits
from mmguard.labels.space import check_on_invalid
from mmguard.nn.counting import KeepsTally


class BCEWithLogitsLoss(KeepsTally, torch.nn.BCEWithLogitsLoss):
    """``torch.nn.BCEWithLogitsLoss``; targets outside [0, 1], NaN included, are excluded.

    :func:`mmguard.functional.binary_cross_entropy_with_logits` has the details. Arguments, buffers and state_dict are
    the stock ones.

    Args:
        weight (Tensor, optional): Weight per element, broadcast to the loss.
        size_average, reduce (bool, optional): Deprecated in PyTorch.
        reduction (str): ``'none'``, ``'mean'`` or ``'sum'``.
        pos_weight (Tensor, optional): Weight of the positive part, broadcast along the last dimensions.
        ignore_index (float, optional): A target value that takes no part and is not an offence; it may be NaN.
        on_invalid (str): ``'ignore'``, ``'clip'`` or ``'raise'``.

    Raises:
        ValueError: An unknown ``on_invalid``.

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
        """Compute the loss.

        Args:
            input (Tensor): Scores before sigmoid, any shape.
            target (Tensor): The shape of ``input``, each in [0, 1] or equal to ``ignore_index``.

        Raises:
            ValueError, TypeError: Shapes or dtypes that do not fit.
            LabelGuardError: An invalid target, with ``on_invalid='raise'``.
        """
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
