"""Base of the guarded cross entropies of mmseg and mmdet."""

from __future__ import annotations

import math
import os
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Union

import numpy as np
import torch
from mmengine import fileio
from torch import Tensor, nn

from mmguard.compat.torch_names import is_compiling, is_fake, outlives_call
from mmguard.files.plain_data import parse_weights
from mmguard.functional.compute import AvgFactor
from mmguard.functional.framework_losses import (
    mask_cross_entropy_and_valid,
    sigmoid_cross_entropy_and_valid,
    softmax_cross_entropy_and_valid,
)
from mmguard.functional.validate import OPENMMLAB, validate_class_shape, validate_class_weight
from mmguard.labels.rules import check_int, check_on_invalid
from mmguard.labels.tally import LabelGuardError
from mmguard.nn.counting import CountsLabels
from mmguard.text import shorten

NUMBER = (int, float, np.integer, np.floating)

ClassWeight = Union[Sequence[float], np.ndarray, torch.Tensor, str, 'os.PathLike[str]']


def load_class_weight(class_weight: Optional[ClassWeight]) -> Optional[List[float]]:
    """Return the weights as a list of floats, one per class.

    ``class_weight`` is a list, array or tensor of numbers, or the path of a ``.npy``, ``.json`` or ``.yaml`` file with
    such a list (any mmengine file backend); ``None`` is returned as it is.

    Raises:
        ValueError: An unknown or refused file type, or content that is not a flat list of finite numbers.
        TypeError: ``class_weight`` has any other type.
    """
    if class_weight is None:
        return None
    if isinstance(class_weight, (str, os.PathLike)):
        path = os.fspath(class_weight)
        return _check_numbers(_read(path), f'class_weight file {path}')
    return _check_numbers(class_weight, 'class_weight')


def _read(path: str) -> Any:
    suffix = os.path.splitext(path)[1].lower()
    if suffix in ('.pkl', '.pickle'):
        raise ValueError(
            f'class_weight file {path}: a pickle can run code when it is read. Save the weights as .json or .npy, '
            f'e.g. json.dump(weights, open("class_weight.json", "w"))'
        )
    if suffix not in ('.npy', '.json', '.yaml', '.yml'):
        raise ValueError(f'class_weight file {path}: unknown type {suffix!r}; use .npy, .json or .yaml')
    content = fileio.get(path)
    try:
        return parse_weights(content, suffix)
    except (ValueError, EOFError) as error:
        raise ValueError(f'class_weight file {path} cannot be read as {suffix}: {error}') from error


def _check_numbers(weights: Any, name: str) -> List[float]:
    if isinstance(weights, (torch.Tensor, np.ndarray)):
        weights = weights.tolist()
    if not isinstance(weights, (list, tuple)):
        raise TypeError(
            f'{name} must be a list with one number per class, got {type(weights).__name__}: {shorten(weights)}'
        )
    wrong = {
        index: weight
        for index, weight in enumerate(weights)
        if isinstance(weight, bool) or not isinstance(weight, NUMBER) or not math.isfinite(weight)
    }
    if wrong:
        raise ValueError(f'{name} must be a flat list of finite numbers, one per class; wrong at {shorten(wrong, 200)}')
    # Not a copy: the owner of the list may change it, as with the stock losses.
    return weights if isinstance(weights, list) else [float(weight) for weight in weights]


class CrossEntropyBase(CountsLabels, nn.Module):
    """Base of the guarded cross entropies of all scopes; a subclass only sets class attributes.

    Args:
        use_sigmoid (bool): Compute the binary cross entropy of sigmoid scores.
        use_mask (bool): Compute the binary cross entropy of per-class instance masks.
        reduction (str): ``'none'``, ``'mean'`` or ``'sum'``.
        class_weight (list[float], Tensor or path, optional): One weight per class; a path may be a ``.npy``,
            ``.json`` or ``.yaml`` file (a pickle is refused).
        ignore_index (int, optional): The label to ignore, unless a call passes another one. ``None`` means -100.
        loss_weight (float): Factor of the loss.
        loss_name (str): Name of the loss item; it must start with ``loss_`` to be trained on.
        avg_non_ignore (bool): Exclude ignored elements from the mean.
        on_invalid (str): Treatment of a label that is neither a class nor ``ignore_index``: ``'ignore'``
            (excluded), ``'clip'`` (clamped into the classes) or ``'raise'`` (``LabelGuardError``; synchronizes).

    Raises:
        ValueError, TypeError: An invalid argument; the message says how to correct it.
    """

    #: True to divide a mean by the sum of class weights (mmseg, PyTorch), false by the number of elements (mmdet).
    average_by_class_weight: bool
    #: True if the average includes class weights of ignored labels that are classes, unless ``avg_non_ignore`` is set.
    ignored_labels_weigh: bool = True
    #: True if ``num_classes`` is the background label in sigmoid mode (mmdet).
    background: bool
    #: True to drop the channel dimension of one-channel sigmoid scores (mmseg), false to expand the labels (mmdet).
    squeeze_one_channel: bool
    #: True if the sigmoid mode accepts and ignores unknown keywords (mmseg).
    sigmoid_takes_any_keyword: bool

    def __init__(
        self,
        use_sigmoid: bool = False,
        use_mask: bool = False,
        reduction: str = 'mean',
        class_weight: Optional[ClassWeight] = None,
        ignore_index: Optional[int] = None,
        loss_weight: float = 1.0,
        loss_name: str = 'loss_ce',
        avg_non_ignore: bool = False,
        on_invalid: str = 'ignore',
    ) -> None:
        super().__init__()
        assert (use_sigmoid is False) or (use_mask is False), 'use_sigmoid and use_mask cannot both be True'
        self.use_sigmoid = use_sigmoid
        self.use_mask = use_mask
        self.reduction = reduction
        self.loss_weight = loss_weight
        self._made_weights: Optional[Tensor] = None
        self._made_from: Optional[List[float]] = None
        self.class_weight = class_weight  # type: ignore[assignment]
        self.ignore_index = None if ignore_index is None else check_int('ignore_index', ignore_index)
        self.avg_non_ignore = avg_non_ignore
        self.on_invalid = check_on_invalid(on_invalid)
        self._loss_name = loss_name

    @property
    def class_weight(self) -> Optional[List[float]]:
        """One weight per class, or ``None``; may be replaced, or changed in place, while training."""
        return self._class_weight

    @class_weight.setter
    def class_weight(self, class_weight: Optional[ClassWeight]) -> None:
        self._class_weight = load_class_weight(class_weight)
        self._make_weights(torch.device('cpu') if self._made_weights is None else self._made_weights.device)

    def forward(
        self,
        cls_score: Tensor,
        label: Tensor,
        weight: Optional[Tensor] = None,
        avg_factor: Optional[AvgFactor] = None,
        reduction_override: Optional[str] = None,
        ignore_index: Optional[int] = None,
        **kwargs: Any,
    ) -> Tensor:
        r"""Compute the loss.

        Args:
            cls_score (Tensor): Scores before softmax or sigmoid, shape (N, C, \*).
            label (Tensor): Class indices (N, \*) of an integer dtype; in sigmoid mode also binary targets of the shape
                of the scores; in mask mode the target masks (N, \*).
            weight (Tensor, optional): Weight per label element; in mask mode the class of each instance, (N,).
            avg_factor (float or Tensor, optional): Denominator of the mean.
            reduction_override (str, optional): Replaces ``reduction``.
            ignore_index (int, optional): Replaces the constructor's ``ignore_index``.

        Raises:
            ValueError, TypeError: Shapes or dtypes that do not fit.
            LabelGuardError: A label is invalid, and ``on_invalid`` is ``'raise'``.
        """
        assert reduction_override in (None, 'none', 'mean', 'sum')
        if kwargs and not (self.use_mask or (self.use_sigmoid and self.sigmoid_takes_any_keyword)):
            raise TypeError(f'unexpected keyword arguments: {", ".join(kwargs)}')
        reduction = reduction_override if reduction_override else self.reduction
        if ignore_index is None:
            ignore_index = self.ignore_index
        if self.on_invalid == 'raise':
            try:
                loss, valid = self._choose_criterion(cls_score, label, weight, avg_factor, reduction, ignore_index)
            except LabelGuardError as error:
                raise self._add_source(error, weight if self.use_mask else label) from None
        else:
            loss, valid = self._choose_criterion(cls_score, label, weight, avg_factor, reduction, ignore_index)
        self._record(valid, len(label) if self.use_mask else label.numel())
        # A factor of 1 changes no bit, but costs an operation here and one in the backward pass.
        is_one = isinstance(self.loss_weight, (int, float)) and self.loss_weight == 1
        return loss if is_one else self.loss_weight * loss

    def _choose_criterion(
        self,
        cls_score: Tensor,
        label: Tensor,
        weight: Optional[Tensor],
        avg_factor: Optional[AvgFactor],
        reduction: str,
        ignore_index: Optional[int],
    ) -> Tuple[Tensor, Tensor]:
        class_weight = self._get_weights(cls_score)
        if self.use_mask:
            assert ignore_index is None, 'BCE loss does not support ignore_index'
            assert reduction == 'mean', "mask mode supports only reduction='mean'"
            assert avg_factor is None, 'mask mode does not support avg_factor'
            if weight is None:
                raise ValueError('mask mode needs the class of each instance as its third argument, shape (N,)')
            return mask_cross_entropy_and_valid(
                cls_score, label, weight, class_weight=class_weight, on_invalid=self.on_invalid
            )
        shared: Dict[str, Any] = {
            'class_weight': class_weight,
            'reduction': reduction,
            'avg_factor': avg_factor,
            'avg_non_ignore': self.avg_non_ignore,
            'on_invalid': self.on_invalid,
        }
        shared['ignore_index'] = -100 if ignore_index is None else ignore_index
        if self.use_sigmoid:
            if self.squeeze_one_channel and label.dim() == cls_score.dim() - 1 and cls_score.shape[1] == 1:
                validate_class_shape(cls_score, label, OPENMMLAB)
                validate_class_weight(class_weight, 1, OPENMMLAB)
                cls_score = cls_score.squeeze(1)
            return sigmoid_cross_entropy_and_valid(cls_score, label, weight, background=self.background, **shared)
        shared['avg_non_ignore'] = self.avg_non_ignore or not (class_weight is None or self.ignored_labels_weigh)
        return softmax_cross_entropy_and_valid(
            cls_score, label, weight, average_by_class_weight=self.average_by_class_weight, **shared
        )

    def _get_weights(self, cls_score: Tensor) -> Optional[Tensor]:
        """Return the class weights in float32 on the device of the scores, or ``None`` without weights.

        The tensor made from the list is kept, because ``new_tensor(list)``, as in mmseg and mmdet, is a blocking copy
        in every step. The tensor is not a buffer, because code that moves, casts, fills, averages or broadcasts buffers
        (``to_empty``, ``half``, FSDP, averaged models) would change the weights.
        """
        weights, made = self._class_weight, self._made_weights
        if weights is None:
            return None
        if is_fake(cls_score):
            return cls_score.new_tensor(weights, dtype=torch.float32)
        if made is not None and made.device == cls_score.device and self._made_from == weights:
            return made
        if is_compiling():  # torch 2.1 cannot compile what follows
            return cls_score.new_tensor(weights, dtype=torch.float32)
        return self._make_weights(cls_score.device)

    def _make_weights(self, device: torch.device) -> Optional[Tensor]:
        weights, made = self._class_weight, None
        if weights is not None:
            with torch.inference_mode(False):  # else the backward pass of a later call could not use it
                made = torch.tensor(weights, dtype=torch.float32, device=device)
        if made is None or outlives_call(made):
            self._made_weights, self._made_from = made, None if weights is None else list(weights)
        return made

    def _apply(self, fn: Callable[[Tensor], Tensor], *args: Any, **kwargs: Any) -> CrossEntropyBase:
        super()._apply(fn, *args, **kwargs)
        # Here, not in the first step: a compiled step would be compiled twice.
        self._make_weights(fn(torch.zeros(0)).device)
        return self

    def extra_repr(self) -> str:
        return f'avg_non_ignore={self.avg_non_ignore}, on_invalid={self.on_invalid!r}'

    @property
    def loss_name(self) -> str:
        """Name of the loss in the dictionary of losses."""
        return self._loss_name


#: Errors about arguments show the name that a config uses.
CrossEntropyBase.__init__.__qualname__ = 'GuardedCrossEntropyLoss.__init__'
