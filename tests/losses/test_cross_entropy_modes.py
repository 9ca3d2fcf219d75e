"""Mask mode, soft labels, and weights that are broadcast: against the stock losses or their formula."""

from __future__ import annotations

import itertools
from typing import Any, Dict, Optional, Tuple

import pytest
import torch
import torch.nn.functional as F
from loss_cases import CLASS_WEIGHT, CROSS_ENTROPY, EPS, SHAPES, assert_equal, scores_and_labels, weights_like
from loss_checks import value_and_grad
from mmengine.registry import MODELS
from torch import Tensor

from mmguard import LabelGuardError


def masks(instances: int = 5, size: Tuple[int, ...] = (3, 6)) -> Tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(instances, 4, *size, generator=generator)
    target = (torch.rand(instances, *size, generator=generator) > 0.5).float()
    return scores, target, torch.randint(0, 4, (instances,), generator=generator)


@pytest.mark.filterwarnings('ignore:Default ``avg_non_ignore``')
@pytest.mark.parametrize('scope', CROSS_ENTROPY)
@pytest.mark.parametrize('size', [(3, 6), (2, 3, 4)])
@pytest.mark.parametrize('override', [None, 'mean'])
@pytest.mark.parametrize('avg_non_ignore', [False, True])
def test_equals_stock(scope: str, size: Tuple[int, ...], override: Optional[str], avg_non_ignore: bool) -> None:
    scores, target, label = masks(size=size)
    reduction = 'mean' if override is None else 'none'
    stock, guarded = (
        cls(use_mask=True, loss_weight=0.5, reduction=reduction, avg_non_ignore=avg_non_ignore)
        for cls in CROSS_ENTROPY[scope]
    )
    expected = value_and_grad(stock, scores, target, label, None, override, None)
    actual = value_and_grad(guarded, scores, target, label, None, override, None)
    assert actual[0].shape == expected[0].shape == (1,)
    assert_equal(actual, expected)


@pytest.mark.filterwarnings('ignore:Default ``avg_non_ignore``')
@pytest.mark.parametrize('scope', CROSS_ENTROPY)
@pytest.mark.parametrize(
    ('reduction', 'avg_factor', 'override', 'ignore_index'),
    [
        ('none', None, None, None),
        ('sum', None, None, None),
        ('mean', None, 'sum', None),
        ('mean', 3.0, None, None),
        ('mean', torch.tensor(3.0), None, None),
        ('mean', None, None, 255),
    ],
)
def test_same_misuse(
    scope: str, reduction: str, avg_factor: object, override: Optional[str], ignore_index: Optional[int]
) -> None:
    scores, target, label = masks()
    for loss_class in CROSS_ENTROPY[scope]:
        with pytest.raises(AssertionError):
            loss_class(use_mask=True, reduction=reduction)(
                scores, target, label, avg_factor, override, ignore_index=ignore_index
            )


@pytest.mark.filterwarnings('ignore:Default ``avg_non_ignore``')
@pytest.mark.parametrize('scope', CROSS_ENTROPY)
def test_class_weight_is_the_one_of_the_instance(scope: str) -> None:
    """Stock broadcasts the class weights along the width of the masks."""
    scores, target, label = masks()
    guarded = CROSS_ENTROPY[scope][1](use_mask=True, class_weight=CLASS_WEIGHT)

    def by_hand(leaf: Tensor) -> Tensor:
        rows = [
            CLASS_WEIGHT[c] * F.binary_cross_entropy_with_logits(leaf[i, c], target[i])
            for i, c in enumerate(label.tolist())
        ]
        return torch.stack(rows).mean()[None]

    assert_equal(value_and_grad(guarded, scores, target, label), value_and_grad(by_hand, scores))


@pytest.mark.filterwarnings('ignore:Default ``avg_non_ignore``')
@pytest.mark.parametrize('scope', CROSS_ENTROPY)
@pytest.mark.parametrize('invalid', [4, -1, 255, -(2**40)])
def test_an_instance_of_no_class_counts_as_absent(scope: str, invalid: int) -> None:
    scores, target, label = masks()
    kept = torch.tensor([0, 2, 3])
    stock, guarded = (cls(use_mask=True) for cls in CROSS_ENTROPY[scope])
    expected = value_and_grad(stock, scores[kept], target[kept], label[kept], ignore_index=None)
    label[[1, 4]] = invalid
    loss, grad = value_and_grad(guarded, scores, target, label)
    assert_equal((loss, grad[kept]), expected)
    assert grad[[1, 4]].eq(0).all()
    assert guarded.take_counts().tolist() == [5, 2, 0]


@pytest.mark.filterwarnings('ignore:Default ``avg_non_ignore``')
@pytest.mark.parametrize('scope', CROSS_ENTROPY)
@pytest.mark.parametrize('instances', [0, 3])
def test_nothing_to_train_on_gives_zero(scope: str, instances: int) -> None:
    scores, target, label = masks(instances)
    loss, grad = value_and_grad(CROSS_ENTROPY[scope][1](use_mask=True), scores, target, label.fill_(80))
    assert loss.tolist() == [0]
    assert grad.eq(0).all()


@pytest.mark.filterwarnings('ignore:Default ``avg_non_ignore``')
def test_the_class_of_each_instance_is_required(refuses: Any) -> None:
    scores, target, label = masks()
    for arguments, error in (
        ((target,), ValueError),
        ((target, label[:4]), ValueError),
        ((target[..., :5], label), ValueError),
        ((target, label.float()), TypeError),
    ):
        with refuses(error):
            CROSS_ENTROPY['mmdet'][1](use_mask=True)(scores, *arguments)
    with refuses(ValueError, match='class_weight'):
        CROSS_ENTROPY['mmdet'][1](use_mask=True, class_weight=[1.0, 2.0])(scores, target, label)


SCOPES = pytest.mark.parametrize('scope', CROSS_ENTROPY)


def soft(scope: str, **arguments: Any) -> Any:
    return CROSS_ENTROPY[scope][1](use_soft=True, **arguments)


def soft_labels(shape: tuple, seed: int = 3) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).softmax(1)


def by_hand(
    scores: Tensor, label: Tensor, weight: Optional[Tensor], avg_factor: Any, class_weight: Any, reduction: str
) -> Tensor:
    """mmpretrain's formula, along dimension 1."""
    loss = -label * F.log_softmax(scores, dim=1)
    if class_weight is not None:
        loss = loss * torch.tensor(class_weight).view(1, -1, *[1] * (scores.dim() - 2))
    loss = loss.sum(dim=1)
    loss = loss if weight is None else loss * weight
    if reduction == 'none':
        return loss
    if reduction == 'sum':
        return loss.sum()
    return loss.mean() if avg_factor is None else loss.sum() / (avg_factor + EPS)


@SCOPES
@pytest.mark.parametrize('shape', SHAPES.values(), ids=SHAPES)
def test_valid_labels(scope: str, shape: tuple) -> None:
    scores, index = scores_and_labels(shape)
    label = soft_labels(shape)
    for reduction, weight, class_weight, avg_factor in itertools.product(
        ('none', 'mean', 'sum'), (None, weights_like(index)), (None, CLASS_WEIGHT), (None, 5.0)
    ):
        if reduction == 'sum' and avg_factor is not None:
            continue
        guarded = soft(scope, class_weight=class_weight, loss_weight=2.0)
        actual = value_and_grad(guarded, scores, label, weight, avg_factor, reduction)
        expected = value_and_grad(by_hand, scores, label, weight, avg_factor, class_weight, reduction)
        assert_equal(actual, tuple(2.0 * part for part in expected))


@SCOPES
def test_one_hot_labels_give_the_loss_of_the_indices(scope: str) -> None:
    scores, index = scores_and_labels((2, 4, 3, 5))
    one_hot = F.one_hot(index, 4).movedim(-1, 1)
    expected = value_and_grad(CROSS_ENTROPY[scope][1](), scores, index)
    for label in (one_hot, one_hot.bool(), one_hot.float()):
        assert_equal(value_and_grad(soft(scope), scores, label), expected)


@SCOPES
@pytest.mark.parametrize('avg_factor', [None, 30.0])
def test_rows_that_are_no_distribution_count_as_absent(scope: str, avg_factor: Optional[float]) -> None:
    scores, _ = scores_and_labels((30, 4))
    label = soft_labels(scores.shape)
    label[0], label[1], label[2], label[3] = 0, 1, float('nan'), torch.tensor([-1.0, 1, 1, 0])
    guarded = soft(scope, class_weight=CLASS_WEIGHT)
    loss, grad = value_and_grad(guarded, scores, label, avg_factor=avg_factor)
    assert guarded.take_counts().tolist() == [30, 4, 0]
    kept = None if avg_factor is None else 26.0
    assert_equal((loss, grad[4:]), value_and_grad(guarded, scores[4:], label[4:], avg_factor=kept))
    assert grad[:4].eq(0).all()
    loss, grad = value_and_grad(guarded, scores, torch.full_like(label, 7.0), avg_factor=avg_factor)
    assert loss == 0
    assert grad.eq(0).all()


@SCOPES
@pytest.mark.parametrize('avg_non_ignore', [False, True])
def test_padding_is_ignored_and_no_offence(scope: str, avg_non_ignore: bool) -> None:
    """mmseg pads every channel of a soft map with the ignored value."""
    scores, _ = scores_and_labels((2, 4, 3, 5))
    label = soft_labels(scores.shape)
    label[..., 3:] = 255
    guarded = soft(scope, avg_non_ignore=avg_non_ignore)
    loss, grad = value_and_grad(guarded, scores, label, ignore_index=255)
    assert guarded.take_counts().tolist() == [30, 0, 0]
    expected = value_and_grad(guarded, scores[..., :3], label[..., :3], ignore_index=255)
    share = 1.0 if avg_non_ignore else 18 / 30
    assert_equal((loss, grad[..., :3]), tuple(share * part for part in expected))
    assert grad[..., 3:].eq(0).all()


@pytest.mark.parametrize(
    'name', ['GuardedCrossEntropyLoss', 'mmseg.GuardedCrossEntropyLoss', 'mmdet.GuardedCrossEntropyLoss']
)
def test_from_a_config(name: str) -> None:
    guarded = MODELS.build(dict(type=name, use_soft=True, class_weight=CLASS_WEIGHT, loss_weight=0.5))
    scores = torch.randn(3, 4)
    label = torch.tensor([[0.3, 0.7, 0, 0], [1, 0, 0, 0], [9, 9, 9, 9]])
    loss = guarded(scores, label)
    torch.testing.assert_close(loss, 0.5 * by_hand(scores[:2], label[:2], None, None, CLASS_WEIGHT, 'mean'))
    assert 'use_soft=True' in repr(guarded)


@SCOPES
def test_misuse(scope: str, refuses: Any) -> None:
    for other in ('use_sigmoid', 'use_mask'):
        with pytest.raises(AssertionError, match='use_soft'):
            soft(scope, **{other: True})
    scores, index = scores_and_labels((2, 4, 3, 5))
    with refuses(ValueError, match=r'\(2, 3, 5\)'):
        soft(scope)(scores, index)
    with pytest.raises(ValueError, match='class_weight'):
        soft(scope, class_weight=[1.0, 2.0])(scores, scores.softmax(1))
    with pytest.raises(ValueError, match='avg_factor'):
        soft(scope)(scores, scores.softmax(1), avg_factor=3, reduction_override='sum')
    with pytest.raises(LabelGuardError) as caught:
        soft(scope, on_invalid='raise')(scores, torch.ones_like(scores))
    assert (caught.value.tallies[0].total, caught.value.tallies[0].skipped) == (30, 30)


SMALLER = [(2, 8, 1), (8, 5), (8, 1), (5,), (1,), (), (2, 1, 1), (1, 1, 5)]
#: mmseg asserts that a weight has the dimensions of the loss.
LARGER = [(3, 2, 8, 5), (3, 1, 1, 5), (1, 1, 1, 1)]
CALLS: Dict[str, Dict[str, Any]] = {
    'mean': {},
    'sum': {'reduction_override': 'sum'},
    'none': {'reduction_override': 'none'},
    'factor': {'avg_factor': 3.0},
}


@pytest.mark.filterwarnings('ignore:Default ``avg_non_ignore``')
@pytest.mark.parametrize('avg_non_ignore', [False, True])
@pytest.mark.parametrize('call', CALLS)
@pytest.mark.parametrize(
    ('scope', 'shape'),
    [(scope, shape) for scope in CROSS_ENTROPY for shape in SMALLER + (LARGER if scope == 'mmdet' else [])],
)
def test_valid_targets(scope: str, shape: tuple, call: str, avg_non_ignore: bool) -> None:
    scores = torch.randn(2, 8, 5)
    target = torch.randint(0, 2, scores.shape).float()
    stock, guarded = (cls(use_sigmoid=True, avg_non_ignore=avg_non_ignore) for cls in CROSS_ENTROPY[scope])
    args = (target, torch.rand(shape))
    assert_equal(
        value_and_grad(guarded, scores, *args, **CALLS[call]), value_and_grad(stock, scores, *args, **CALLS[call])
    )


@pytest.mark.filterwarnings('ignore:Default ``avg_non_ignore``')
@pytest.mark.parametrize('shape', SMALLER + LARGER)
def test_invalid_targets_are_deleted(shape: tuple) -> None:
    """Those of one row, which a stock loss gets as an ignored one that leaves the average."""
    scores = torch.randn(2, 8, 5)
    target = torch.randint(0, 2, scores.shape).float()
    target[:, 3] = 7.0
    weight = torch.rand(shape)
    (_, guarded_class) = CROSS_ENTROPY['mmdet']
    kept = [0, 1, 2, 4, 5, 6, 7]
    rows = weight[..., kept, :] if weight.dim() > 1 and weight.shape[-2] == 8 else weight
    loss, grad = value_and_grad(guarded_class(use_sigmoid=True), scores, target, weight)
    expected = value_and_grad(guarded_class(use_sigmoid=True), scores[:, kept], target[:, kept], rows)
    assert_equal((loss, grad[:, kept]), expected)
    assert grad[:, 3].eq(0).all()


@pytest.mark.filterwarnings('ignore:Default ``avg_non_ignore``')
@pytest.mark.parametrize('scope', CROSS_ENTROPY)
@pytest.mark.parametrize('mode', [{}, {'use_sigmoid': True}])
def test_one_weight_for_all_labels(scope: str, mode: Dict[str, Any]) -> None:
    scores, label = torch.randn(6, 5), torch.randint(0, 5, (6,))
    guarded = CROSS_ENTROPY[scope][1](**mode)
    for call in CALLS.values():
        value, grad = value_and_grad(guarded, scores, label, torch.tensor(0.25), **call)
        expected, expected_grad = value_and_grad(guarded, scores, label, torch.full((6,), 0.25), **call)
        assert_equal((value, grad), (expected, expected_grad))
