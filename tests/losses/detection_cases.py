"""What the tests of mmdet's guarded losses share: the stock losses, batches, and deletion by hand."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional, Tuple

import mmdet.models.losses as stock
import torch
from torch import Tensor, nn

from mmguard.losses.mmdet import GuardedLoss

CLASSES = 4
BACKGROUND = CLASSES
INVALID = (CLASSES + 1, 19, 255, -1, -100, 2**40, -(2**40))


@dataclass
class Case:
    """A stock loss, and what its scores, targets and callers look like."""

    loss: str
    arguments: Dict[str, Any] = field(default_factory=dict)
    more_channels: int = 0
    #: What its callers count for avg_factor: 'positives', elements of non-zero 'weights', or nothing.
    factor: Optional[str] = None
    pair: bool = False
    probabilities: bool = False
    weight_per_class: bool = False
    needs_weight: bool = False

    def build(self) -> nn.Module:
        return getattr(stock, self.loss)(**self.arguments)

    def guard(self, **arguments: Any) -> GuardedLoss:
        return GuardedLoss(self.build(), **arguments)

    def counted_by_caller(self, label: Tensor, weight: Optional[Tensor]) -> float:
        counted = torch.ones_like(label, dtype=torch.bool) if weight is None else rows(weight, label).any(1)
        if self.factor == 'positives':
            counted = counted & (label != BACKGROUND)
        return max(float(counted.sum()), 1.0)


FOCAL: Dict[str, Any] = {'factor': 'positives', 'weight_per_class': True}
QUALITY: Dict[str, Any] = {'factor': 'positives', 'pair': True}
OWN: Dict[str, Any] = {'num_classes': CLASSES}
SEESAW: Dict[str, Any] = {'more_channels': 2, 'factor': 'weights'}

CASES: Dict[str, Case] = {
    'focal': Case('FocalLoss', {}, **FOCAL),
    'focal, tuned': Case('FocalLoss', {'gamma': 1.5, 'alpha': 0.6, 'loss_weight': 0.7}, **FOCAL),
    'focal, activated': Case('FocalLoss', {'activated': True}, probabilities=True, **FOCAL),
    'focal, custom': Case('FocalCustomLoss', {**OWN, 'gamma': 3.0}, **FOCAL),
    'quality': Case('QualityFocalLoss', {'loss_weight': 2.0}, **QUALITY),
    'quality, activated': Case('QualityFocalLoss', {'activated': True, 'beta': 1.0}, probabilities=True, **QUALITY),
    'ghm': Case('GHMC', {'bins': 5}, weight_per_class=False, needs_weight=True),
    'ghm, momentum': Case('GHMC', {'bins': 7, 'momentum': 0.75, 'loss_weight': 0.5}, needs_weight=True),
    'seesaw': Case('SeesawLoss', {**OWN, 'loss_weight': 0.5}, **SEESAW),
    'seesaw, one value': Case('SeesawLoss', {**OWN, 'return_dict': False, 'p': 0.0}, **SEESAW),
    'eqlv2': Case('EQLV2Loss', {**OWN, 'loss_weight': 2.0}, more_channels=1),
    'custom CE': Case('CrossEntropyCustomLoss', {**OWN}, more_channels=1, factor='weights'),
    'custom CE, weighted': Case(
        'CrossEntropyCustomLoss', {**OWN, 'class_weight': [0.5, 1.0, 2.0, 1.5, 0.3]}, more_channels=1, factor='weights'
    ),
    'custom CE, sigmoid': Case('CrossEntropyCustomLoss', {**OWN, 'use_sigmoid': True}, factor='weights'),
}


def rows(weight: Tensor, label: Tensor) -> Tensor:
    return weight.reshape(len(label), weight.numel() // max(len(label), 1))


@dataclass
class Batch:
    scores: Tensor
    label: Tensor
    quality: Tensor
    weight: Optional[Tensor] = None

    def only(self, keep: Tensor) -> Batch:
        weight = self.weight
        if weight is not None:
            weight = rows(weight, self.label)[keep].view(-1) if weight.dim() == 1 else weight[keep]
        return Batch(self.scores[keep], self.label[keep], self.quality[keep], weight)

    def target(self, case: Case) -> Any:
        return (self.label, self.quality) if case.pair else self.label


def batch(case: Case, number: int = 24, seed: int = 0, weight: Optional[str] = None) -> Batch:
    """Valid labels, classes and background. ``weight``: 'rows', 'per class' or 'flat'; some of them are 0."""
    generator = torch.Generator().manual_seed(seed)
    scores = 2 * torch.randn(number, CLASSES + case.more_channels, generator=generator)
    scores = scores.sigmoid() if case.probabilities else scores
    label = torch.randint(0, CLASSES + 1, (number,), generator=generator)
    quality = torch.rand(number, generator=generator) * (label != BACKGROUND)
    if weight is None and not case.needs_weight:
        return Batch(scores, label, quality)
    shape = (number, scores.shape[1]) if weight in ('per class', 'flat') else (number,)
    weights = (torch.rand(shape, generator=generator) + 0.5) * (torch.rand(shape, generator=generator) > 0.3)
    return Batch(scores, label, quality, weights.flatten() if weight == 'flat' else weights)


@dataclass
class Outcome:
    parts: Dict[str, Tensor]
    grad: Tensor
    buffers: Dict[str, Tensor]


def outcome(loss: nn.Module, case: Case, given: Batch, factors: Optional[Tensor] = None, **kwargs: Any) -> Outcome:
    """One training step; parts and elements of the loss get unequal output gradients."""
    leaf = given.scores.detach().clone().requires_grad_()
    value = loss(leaf, given.target(case), given.weight, **kwargs)
    parts = value if isinstance(value, dict) else {'loss': value}
    assert all(part.requires_grad for part in parts.values()), 'the loss does not hang on the graph'
    total = torch.zeros(())
    for number, (name, part) in enumerate(parts.items()):
        by_row = torch.arange(1, len(part) + 1) if part.dim() else torch.ones(())
        if factors is not None and part.dim() and name != 'loss_cls_classes':  # that has one row per positive
            by_row = factors
        total = total + (number + 1) * (part.float() * by_row.view(-1, *[1] * (part.dim() - 1)).float()).sum()
    total.backward()
    assert leaf.grad is not None
    inner = loss.loss if issubclass(type(loss), GuardedLoss) else loss
    buffers = {name: buffer.clone() for name, buffer in inner.named_buffers()}
    return Outcome({name: part.detach() for name, part in parts.items()}, leaf.grad, buffers)


def assert_same(actual: Outcome, expected: Outcome, note: object = '', tolerance: float = 1e-6) -> None:
    pairs: List[Tuple[str, Tensor, Tensor]] = [('gradient', actual.grad, expected.grad)]
    assert actual.parts.keys() == expected.parts.keys()
    pairs += [(name, part, expected.parts[name]) for name, part in actual.parts.items()]
    assert actual.buffers.keys() == expected.buffers.keys()
    pairs += [(name, buffer, expected.buffers[name]) for name, buffer in actual.buffers.items()]
    for what, ours, theirs in pairs:
        torch.testing.assert_close(
            ours.float(),
            theirs.float(),
            rtol=tolerance,
            atol=tolerance,
            msg=lambda text, w=what: f'{w} of {note}: {text}',
        )
