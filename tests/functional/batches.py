"""Random batches of scores and labels, valid and not, for the property tests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Tuple, Union

import torch
from hypothesis import settings
from hypothesis import strategies as st
from torch import Tensor

from mmguard.functional import sigmoid_cross_entropy, softmax_cross_entropy

#: The same examples in every run.
STABLE = settings(max_examples=150, derandomize=True, deadline=None)

FAR = 2**40
MODES = ('softmax', 'softmax, by number', 'sigmoid', 'sigmoid, background')


@dataclass
class Batch:
    """One score row and one label per element, laid out as (P, C) or as a map (1, C, 1, P)."""

    mode: str
    scores: Tensor
    label: Tensor
    weight: Optional[Tensor]
    class_weight: Optional[Tensor]
    ignore_index: int
    avg_non_ignore: bool
    reduction: str
    as_map: bool

    @property
    def num_classes(self) -> int:
        return self.scores.shape[1]

    @property
    def highest(self) -> int:
        return self.num_classes if self.mode == 'sigmoid, background' else self.num_classes - 1

    @property
    def invalid(self) -> Tensor:
        inside = [0 <= label <= self.highest or label == self.ignore_index for label in self.label.tolist()]
        return ~torch.tensor(inside, dtype=torch.bool)

    @property
    def ignored(self) -> Tensor:
        return self.label == self.ignore_index

    def counted_by_caller(self) -> float:
        """What a caller without a guard takes for avg_factor: elements of non-zero weight, at least 1."""
        counted = self.label.numel() if self.weight is None else int((self.weight != 0).sum())
        return max(float(counted), 1.0)

    def only(self, keep: Tensor) -> Batch:
        changed = dict(self.__dict__, scores=self.scores[keep], label=self.label[keep])
        changed['weight'] = None if self.weight is None else self.weight[keep]
        return Batch(**changed)

    def with_labels(self, label: Tensor) -> Batch:
        return Batch(**dict(self.__dict__, label=label))

    def arguments(self) -> Dict[str, Any]:
        arguments: Dict[str, Any] = {
            'class_weight': self.class_weight,
            'reduction': self.reduction,
            'ignore_index': self.ignore_index,
            'avg_non_ignore': self.avg_non_ignore,
        }
        if self.mode.startswith('softmax'):
            arguments['average_by_class_weight'] = self.mode == 'softmax'
        else:
            arguments['background'] = self.mode == 'sigmoid, background'
        return arguments

    def run(
        self, avg_factor: Union[float, Tensor, None] = None, on_invalid: str = 'ignore'
    ) -> Tuple[Tensor, Tensor, List[int]]:
        """Loss (element-wise ones as (P) or (P, C)), gradient (P, C) and counts."""
        function = softmax_cross_entropy if self.mode.startswith('softmax') else sigmoid_cross_entropy
        leaf = self.scores.clone().requires_grad_()
        scores, label, weight = leaf, self.label, self.weight
        if self.as_map:
            scores, label = leaf.t()[None, :, None, :], label[None, None]
            weight = None if weight is None else weight[None, None]
        loss, counts = function(scores, label, weight, avg_factor=avg_factor, on_invalid=on_invalid, **self.arguments())
        assert loss.requires_grad
        if self.reduction == 'none':
            if self.as_map:
                loss = loss[0, 0] if loss.dim() == 3 else loss[0, :, 0].t()
            factors = self.factors if loss.dim() == 1 else self.factors[:, None]
            (loss * factors).sum().backward()
        else:
            loss.backward()
        assert leaf.grad is not None
        return loss.detach(), leaf.grad, counts.tolist()

    @property
    def factors(self) -> Tensor:
        """Unequal output gradients, that belong to the element whatever its place."""
        return self.scores[:, 0].tanh() + 2


@st.composite
def batches(draw: st.DrawFn, reduction: Optional[str] = None, weights: bool = True) -> Batch:
    num_classes = draw(st.integers(1, 5))
    ignore_index = draw(st.sampled_from((-100, 255, -1, 0, num_classes - 1)))
    odd = st.sampled_from((num_classes, num_classes + 1, 19, 255, -1, -100, FAR, -FAR, ignore_index))
    label = draw(st.lists(st.integers(0, num_classes - 1) | odd, max_size=9))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 999)))
    weight = None
    if weights and draw(st.booleans()):
        weight = torch.rand(len(label), generator=generator) + 0.5
        weight *= torch.tensor([draw(st.booleans()) for _ in label], dtype=torch.float32)
    class_weight = torch.rand(num_classes, generator=generator) + 0.2 if draw(st.booleans()) else None
    return Batch(
        mode=draw(st.sampled_from(MODES)),
        scores=3 * torch.randn(len(label), num_classes, generator=generator),
        label=torch.tensor(label, dtype=torch.int64),
        weight=weight,
        class_weight=class_weight,
        ignore_index=ignore_index,
        avg_non_ignore=draw(st.booleans()),
        reduction=draw(st.sampled_from(('none', 'mean', 'sum'))) if reduction is None else reduction,
        as_map=draw(st.booleans()),
    )
