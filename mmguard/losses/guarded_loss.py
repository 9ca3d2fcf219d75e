"""A wrapper that mends the labels in front of any loss."""

from __future__ import annotations

import inspect
from typing import Any, Dict, Optional, Union

import torch
from torch import Tensor, nn

from mmguard.errors import LabelGuardError
from mmguard.functional.checks import shape_of
from mmguard.functional.mend import mend_target
from mmguard.labels import check_int, check_num_classes, check_on_invalid
from mmguard.losses.counting import CountsLabels
from mmguard.losses.guards import guard_for


class GuardedLossBase(CountsLabels, nn.Module):
    """Any loss, safe against any label: mends the labels, calls the loss, keeps the result on the graph.

    Valid labels give the loss's own value; a batch without any label to train on gives 0 with gradient 0. What heads
    read from a loss (``loss_name``, ``use_sigmoid``, ``loss_weight``, ...) is read from the wrapped one.

    Args:
        loss (dict or nn.Module): The loss, built in the current scope.
        num_classes (int, optional): Valid labels are ``[0, num_classes)``. ``None``: the channels of the scores.
        ignore_index (int, optional): The label that is not trained on, unless a call brings its own. ``None``: the
            loss's own (``ignore_index`` or ``ignore_label``).
        on_invalid (str): ``'ignore'``, ``'clip'`` or ``'raise'``.

    Raises:
        TypeError: A loss that cannot be guarded; the message says why and what to use.
    """

    scope: Optional[str] = None

    def __init__(
        self,
        loss: Union[Dict[str, Any], nn.Module],
        num_classes: Optional[int] = None,
        ignore_index: Optional[int] = None,
        on_invalid: str = 'ignore',
    ) -> None:
        super().__init__()
        self.on_invalid = check_on_invalid(on_invalid)
        self.num_classes = None if num_classes is None else check_num_classes(num_classes)
        self.ignore_index = None if ignore_index is None else check_int('ignore_index', ignore_index)
        self.loss = loss if isinstance(loss, nn.Module) else self._build(loss)
        self.guard = guard_for(self.loss)
        parameters = inspect.signature(self.loss.forward).parameters
        self._accepts_any = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())
        self._accepts = set(parameters)

    def _build(self, loss: Dict[str, Any]) -> nn.Module:
        from mmengine.registry import MODELS

        loss = dict(loss)
        if self.scope is not None:
            loss.setdefault('_scope_', self.scope)
        return MODELS.build(loss)

    def forward(
        self, pred: Tensor, label: Tensor, *args: Any, ignore_index: Optional[int] = None, **kwargs: Any
    ) -> Tensor:
        r"""Calls the loss with mended labels.

        Args:
            pred (Tensor): Scores, shape (N, C, \*).
            label (Tensor): Class indices (N, \*) of an integer dtype, or what else the loss accepts (dense targets
                are handed through: they index nothing).
            ignore_index (int, optional): The label that is not trained on.
            args, kwargs: Handed on; keywords that are ``None`` and unknown to the loss are left out.

        Raises:
            ValueError, TypeError: Shapes or dtypes that do not fit.
            LabelGuardError: An invalid label, with ``on_invalid='raise'``.
        """
        kwargs = {k: v for k, v in kwargs.items() if v is not None or self._accepts_any or k in self._accepts}
        if self.guard.is_dense(pred, label):
            if ignore_index is not None and 'ignore_index' in self._accepts:
                kwargs['ignore_index'] = ignore_index
            return self._attached(self.loss(pred, label, *args, **kwargs), pred)
        self.guard.check(pred, label)
        num_classes = self._num_classes(pred)
        if ignore_index is None:
            ignore_index = self.guard.ignore_index if self.ignore_index is None else self.ignore_index
        try:
            mended = mend_target(label, num_classes, ignore_index, self.on_invalid)
        except LabelGuardError as error:
            raise self._with_source(error, label) from None
        loss = self.guard(pred, mended, num_classes, *args, **kwargs)
        self._record(mended.counts)
        # A mean over nothing is NaN in one loss, 1 in another and an unattached 0 in a third.
        any_label = mended.keep.any()
        return self._attached(torch.where(any_label, loss, torch.zeros_like(loss)), pred)

    def _num_classes(self, pred: Tensor) -> int:
        told_apart = self.guard.num_classes(pred)
        if self.num_classes is None:
            return told_apart
        if self.num_classes > told_apart:
            raise ValueError(
                f'num_classes={self.num_classes}, but scores of shape {shape_of(pred)} tell {told_apart} classes '
                f'apart: a label between them would crash the loss. Set num_classes of GuardedLoss to that of the head'
            )
        return self.num_classes

    def _attached(self, loss: Tensor, pred: Tensor) -> Tensor:
        """A result without a graph would leave parameters without gradient, and DDP waiting for them."""
        if loss.requires_grad or not pred.requires_grad:
            return loss
        return loss + pred[:0].sum()  # an empty sum: exactly 0, whatever the scores hold

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name == 'loss' or name.startswith('__'):
                raise
            return getattr(self.loss, name)

    def extra_repr(self) -> str:
        return f'num_classes={self.num_classes}, ignore_index={self.ignore_index}, on_invalid={self.on_invalid!r}'


class RootGuardedLoss(GuardedLossBase):
    """:class:`GuardedLossBase`, building the inner loss in the default scope of the run."""
