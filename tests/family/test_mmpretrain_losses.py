"""The losses of mmpretrain, guarded: stock on valid labels; on others as if those images were not in the batch."""

from __future__ import annotations

from typing import Any, Dict, Iterator, Optional, Tuple

import mmpretrain.models  # noqa: F401  registers the losses
import pytest
import torch
from mmengine.registry import MODELS
from torch import Tensor

from mmguard import register

register()

IMAGES, CLASSES = 6, 4
WEIGHTS = [1.0, 2.0, 3.0, 4.0]
#: Loss, its arguments, the form of its labels: indices, distributions, or one yes or no per class.
LOSSES = [
    ('CrossEntropyLoss', {}, 'index'),
    ('CrossEntropyLoss', {'class_weight': WEIGHTS}, 'index'),
    ('CrossEntropyLoss', {}, 'soft'),
    ('CrossEntropyLoss', {'use_soft': True, 'class_weight': WEIGHTS}, 'soft'),
    ('CrossEntropyLoss', {'use_sigmoid': True}, 'multi'),
    ('CrossEntropyLoss', {'use_sigmoid': True, 'pos_weight': WEIGHTS, 'class_weight': WEIGHTS}, 'multi'),
    ('LabelSmoothLoss', {'label_smooth_val': 0.1, 'num_classes': CLASSES}, 'index'),
    ('LabelSmoothLoss', {'label_smooth_val': 0.1}, 'soft'),
    ('LabelSmoothLoss', {'label_smooth_val': 0.1, 'mode': 'classy_vision'}, 'index'),
    ('LabelSmoothLoss', {'label_smooth_val': 0.1, 'mode': 'multi_label', 'use_sigmoid': True}, 'multi'),
    ('LabelSmoothLoss', {'label_smooth_val': 0.1, 'use_sigmoid': True}, 'index'),
    ('AsymmetricLoss', {}, 'multi'),
    ('AsymmetricLoss', {}, 'index'),
    ('FocalLoss', {}, 'multi'),
    ('FocalLoss', {}, 'index'),
    ('SeesawLoss', {'num_classes': CLASSES}, 'index'),
]
INDEX = torch.tensor([0, 1, 2, 3, 1, 2])
INVALID_INDEX = torch.tensor([0, 9, 2, -100, 1, -3])  # -100 is ignored, no offence


def scores() -> Tensor:
    return torch.randn(IMAGES, CLASSES, generator=torch.Generator().manual_seed(1))


def valid(form: str) -> Tensor:
    drawn = torch.rand(IMAGES, CLASSES, generator=torch.Generator().manual_seed(2))
    return {'index': INDEX, 'soft': drawn.softmax(1), 'multi': (drawn > 0.5).float()}[form]


def invalid(form: str) -> Tuple[Tensor, Tensor]:
    """Labels, and which of them are valid. A NaN is what GuardClsLabels left, a 7 is an offence."""
    if form == 'index':
        return INVALID_INDEX, (INVALID_INDEX >= 0) & (INVALID_INDEX < CLASSES)
    labels = valid(form)
    labels[1, 2] = float('nan')
    labels[3] = 7
    return labels, torch.tensor([True, False, True, False, True, True])


def built(name: str, arguments: Dict[str, Any]) -> Tuple[Any, Any]:
    """The stock loss and the guarded one, as a config makes them."""
    stock = MODELS.build({'type': f'mmpretrain.{name}', **arguments})
    if name == 'CrossEntropyLoss':
        return stock, MODELS.build({'type': 'mmpretrain.GuardedCrossEntropyLoss', **arguments})
    return stock, MODELS.build({'type': 'mmpretrain.GuardedLoss', 'loss': {'type': name, **arguments}})


def ways() -> Iterator[Tuple[str, Optional[float], Optional[Tensor]]]:
    """Reduction, average factor, weights of the images."""
    weight = torch.rand(IMAGES, generator=torch.Generator().manual_seed(3))
    for reduction in ('mean', 'sum', 'none'):
        for factor in (None, float(IMAGES)) if reduction != 'sum' else (None,):
            yield reduction, factor, None
            yield reduction, factor, weight


def with_gradient(loss: Any, pred: Tensor, *args: Any, **kwargs: Any) -> Tuple[Tensor, Tensor]:
    pred = pred.clone().requires_grad_()
    value = loss(pred, *args, **kwargs)
    value.sum().backward()
    return value.detach(), pred.grad


@pytest.mark.parametrize(('name', 'arguments', 'form'), LOSSES)
def test_stock_on_valid_labels(name: str, arguments: Dict[str, Any], form: str) -> None:
    for reduction, factor, weight in ways():
        stock, guarded = built(name, {**arguments, 'reduction': reduction})
        said = {'weight': weight, 'avg_factor': factor}
        expected = with_gradient(stock, scores(), valid(form), **said)
        torch.testing.assert_close(with_gradient(guarded, scores(), valid(form), **said), expected)
        assert guarded.take_counts().tolist() == [IMAGES, 0, 0]


@pytest.mark.parametrize(('name', 'arguments', 'form'), LOSSES)
def test_invalid_labels_are_deleted(name: str, arguments: Dict[str, Any], form: str) -> None:
    labels, keep = invalid(form)
    for reduction, factor, weight in ways():
        stock, guarded = built(name, {**arguments, 'reduction': reduction})
        value, gradient = with_gradient(guarded, scores(), labels, weight=weight, avg_factor=factor)
        expected, without = with_gradient(
            stock,
            scores()[keep],
            labels[keep],
            weight=None if weight is None else weight[keep],
            avg_factor=None if factor is None else int(keep.sum()),
        )
        torch.testing.assert_close(value[keep] if reduction == 'none' else value, expected)
        torch.testing.assert_close(gradient[keep], without)
        assert not gradient[~keep].any()
        assert guarded.take_counts().tolist() == [IMAGES, 2 if form == 'index' else 1, 0]


@pytest.mark.parametrize(('name', 'arguments', 'form'), LOSSES)
def test_nothing_to_train_on_gives_zero_on_the_graph(name: str, arguments: Dict[str, Any], form: str) -> None:
    labels = valid(form).clone().fill_(99)
    _, guarded = built(name, arguments)
    pred = torch.full((IMAGES, CLASSES), float('nan'), requires_grad=True)
    value = guarded(pred, labels, avg_factor=IMAGES)
    value.backward()
    assert value.item() == 0
    assert not pred.grad.any()


def test_clip_clamps_labels_and_divides_scores_by_their_sum() -> None:
    stock, guarded = built('CrossEntropyLoss', {})
    guarded.on_invalid = 'clip'
    torch.testing.assert_close(guarded(scores(), INDEX + 2), stock(scores(), (INDEX + 2).clamp(max=CLASSES - 1)))
    assert guarded.take_counts().tolist() == [IMAGES, 0, 3]
    torch.testing.assert_close(guarded(scores(), valid('soft') * 3), stock(scores(), valid('soft')))
    assert guarded.take_counts().tolist() == [IMAGES, 0, IMAGES]


def test_wrong_shapes_are_named() -> None:
    _, guarded = built('CrossEntropyLoss', {})
    with pytest.raises(ValueError, match=r'\(6, 3\).*\(6, 4\)'):
        guarded(scores(), torch.zeros(IMAGES, 3))
