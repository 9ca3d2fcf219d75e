"""Every argument, against the stock losses: equal where they work, the formula by hand where they do not."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any, Callable, Dict, Iterator, Optional, Tuple

import pytest
import torch
from gradients import value_and_grad
from loss_cases import (
    CLASS_WEIGHT,
    CROSS_ENTROPY,
    SHAPES,
    assert_equal,
    scores_and_labels,
    sigmoid_by_hand,
    softmax_by_hand,
    weights_like,
)
from this_stack import IS_ONEDL, weighted_cases_that_fail
from torch import Tensor

pytestmark = pytest.mark.filterwarnings('ignore:Default ``avg_non_ignore``')

REDUCTIONS = (('none', None), ('mean', None), ('sum', None), ('mean', 'none'), ('none', 'mean'), ('mean', 'sum'))
AVG_FACTORS = {'no': None, 'number': 7.5, 'int': 3, '0-d': torch.tensor(6.25)}
#: kind -> (ignore_index, whether elements carry it)
IGNORED = {'nothing': (255, False), '255': (255, True), 'in range': (1, True), '-100': (-100, True)}

Case = Dict[str, Any]


def cases() -> Iterator[Case]:
    names = ('reduction', 'override', 'class_weight', 'weighted', 'avg_factor', 'avg_non_ignore')
    options = ((None, CLASS_WEIGHT), (False, True), AVG_FACTORS, (False, True))
    return (dict(zip(names, (*reduction, *more))) for reduction, *more in itertools.product(REDUCTIONS, *options))


def compare(
    scope: str, scores: Tensor, label: Tensor, ignore_index: int, by_hand: Optional[Callable[..., Tensor]], **mode: bool
) -> Counter:
    """Runs all cases; returns how many equal stock, equal the formula by hand, and raise what stock raises."""
    outcome: Counter = Counter()
    stock_class, guarded_class = CROSS_ENTROPY[scope]
    for case in cases():
        arguments = {name: case[name] for name in ('reduction', 'class_weight', 'avg_non_ignore')}
        stock, guarded = (cls(**arguments, **mode, loss_weight=1.5) for cls in (stock_class, guarded_class))
        weight = weights_like(label) if case['weighted'] else None
        avg_factor = AVG_FACTORS[case['avg_factor']]
        args = (label, weight, avg_factor, case['override'], ignore_index)
        note = (scope, case, 'ignore_index', ignore_index)
        reduction = case['override'] or case['reduction']
        try:
            expected = value_and_grad(stock, scores, *args)
        except (ValueError, AssertionError) as error:  # misuse
            with pytest.raises(type(error)):
                guarded(scores, *args)
            assert reduction == 'sum', note
            assert avg_factor is not None, note
            outcome['misuse'] += 1
            continue
        except (IndexError, RuntimeError):  # broken; the misuse among these is for the other inputs to see
            if by_hand is None or (reduction == 'sum' and avg_factor is not None):
                outcome['left_out'] += 1
                continue
            class_weight = None if case['class_weight'] is None else torch.tensor(case['class_weight'])

            def formula(leaf: Tensor, case: Case = case, class_weight: Optional[Tensor] = class_weight) -> Tensor:
                return 1.5 * by_hand(  # type: ignore[misc]
                    leaf,
                    label,
                    weights_like(label) if case['weighted'] else None,
                    AVG_FACTORS[case['avg_factor']],
                    reduction=case['override'] or case['reduction'],
                    class_weight=class_weight,
                    ignore_index=ignore_index,
                    avg_non_ignore=case['avg_non_ignore'],
                )

            assert_equal(value_and_grad(guarded, scores, *args), value_and_grad(formula, scores), note)
            outcome['by_hand'] += 1
            continue
        assert_equal(value_and_grad(guarded, scores, *args), expected, note)
        outcome['equal'] += 1
    assert sum(outcome.values()) == 192
    return outcome


def inputs(shape: str, ignored: str) -> Tuple[Tensor, Tensor, int]:
    scores, label = scores_and_labels(SHAPES[shape])
    ignore_index, present = IGNORED[ignored]
    if present:
        label.view(-1)[::4] = ignore_index
    return scores, label, ignore_index


@pytest.mark.parametrize('ignored', IGNORED)
@pytest.mark.parametrize('shape', SHAPES)
@pytest.mark.parametrize('scope', CROSS_ENTROPY)
def test_softmax(scope: str, shape: str, ignored: str) -> None:
    scores, label, ignore_index = inputs(shape, ignored)

    def by_hand(*args: Any, **kwargs: Any) -> Tensor:
        return softmax_by_hand(*args, **kwargs, by_class_weight=scope == 'mmseg')

    outcome = compare(scope, scores, label, ignore_index, by_hand)
    broken = weighted_cases_that_fail(shape, ignored) if scope == 'mmseg' else 0
    assert outcome == +Counter({'equal': 144 - broken, 'misuse': 48, 'by_hand': broken})


@pytest.mark.parametrize('ignored', IGNORED)
@pytest.mark.parametrize('shape', SHAPES)
@pytest.mark.parametrize('scope', CROSS_ENTROPY)
def test_sigmoid_with_class_indices(scope: str, shape: str, ignored: str) -> None:
    scores, label, ignore_index = inputs(shape, ignored)
    if scope == 'mmdet':
        label.view(-1)[1::4] = scores.shape[1]  # the background
    outcome = compare(scope, scores, label, ignore_index, sigmoid_by_hand, use_sigmoid=True)
    if shape == '2-D':
        assert outcome == Counter(equal=144, misuse=48)
    elif scope == 'mmseg':  # stock broadcasts class weights along the width, and fails
        assert outcome == Counter({'equal': 72, 'by_hand': 72, 'misuse': 24, 'left_out': 24})
    else:  # stock mmdet takes no maps of class indices
        assert outcome == Counter({'by_hand': 144, 'left_out': 48})


@pytest.mark.parametrize('ignored', ['nothing', '255', '-100', 'zero'])
@pytest.mark.parametrize('shape', [*SHAPES, '3-D'])
@pytest.mark.parametrize('scope', CROSS_ENTROPY)
def test_sigmoid_with_dense_targets(scope: str, shape: str, ignored: str) -> None:
    scores, _ = scores_and_labels({**SHAPES, '3-D': (2, 3, len(CLASS_WEIGHT))}[shape])
    label = torch.rand(scores.shape, generator=torch.Generator().manual_seed(2)).round(decimals=1)
    ignore_index, present = {**IGNORED, 'zero': (0, False)}[ignored]
    if present:
        label.view(-1)[::4] = ignore_index
    outcome = compare(scope, scores, label, ignore_index, None, use_sigmoid=True)
    if shape == '4-D':  # class weights along the width once more
        assert outcome == Counter({'equal': 72, 'misuse': 24, 'left_out': 96})
    else:
        assert outcome == Counter(equal=144, misuse=48)


@pytest.mark.parametrize('ignored', ['nothing', '255'])
@pytest.mark.parametrize('shape', [(9, 1), (2, 1, 3, 5)])
def test_sigmoid_with_one_channel_in_mmseg(shape: Tuple[int, ...], ignored: str) -> None:
    scores, label = scores_and_labels(shape, num_classes=2)
    if ignored == '255':
        label.view(-1)[::4] = 255
    outcome: Counter = Counter()
    for reduction, class_weight, weighted, avg_factor, avg_non_ignore in itertools.product(
        ('none', 'mean', 'sum'), (None, [1.7]), (False, True), (None, 7.5), (False, True)
    ):
        if reduction == 'sum' and avg_factor is not None:
            continue
        stock, guarded = (
            cls(use_sigmoid=True, reduction=reduction, class_weight=class_weight, avg_non_ignore=avg_non_ignore)
            for cls in CROSS_ENTROPY['mmseg']
        )
        args = (label, weights_like(label) if weighted else None, avg_factor, None, 255)
        assert_equal(value_and_grad(guarded, scores, *args), value_and_grad(stock, scores, *args))
        outcome['equal'] += 1
    assert outcome['equal'] == 40


def test_sigmoid_with_one_channel_in_mmdet() -> None:
    scores, label = scores_and_labels((9, 1), num_classes=2)  # 0 is the class, 1 the background
    stock, guarded = (cls(use_sigmoid=True) for cls in CROSS_ENTROPY['mmdet'])
    assert_equal(value_and_grad(guarded, scores, label), value_and_grad(stock, scores, label))
    flat = scores.squeeze(1)  # labels of the shape of the scores are dense targets, instead
    assert_equal(value_and_grad(guarded, flat, label), value_and_grad(stock, flat, label))


def test_sigmoid_weights_that_broadcast() -> None:
    """GLIP and the like weigh (B, N, C) targets with (B, N, 1)."""
    scores = torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(0))
    label = (scores > 0.3).float()
    weight = torch.tensor([1.0, 0, 2, 1, 1, 0.5]).view(2, 3, 1)
    stock, guarded = (cls(use_sigmoid=True) for cls in CROSS_ENTROPY['mmdet'])
    for avg_factor in (None, 5):
        assert_equal(
            value_and_grad(guarded, scores, label, weight, avg_factor),
            value_and_grad(stock, scores, label, weight, avg_factor),
        )


def test_sigmoid_column_of_weights_in_mmdet() -> None:
    scores, label = scores_and_labels((6, 4))
    weight = torch.tensor([1.0, 0, 2, 1, 1, 0.5]).view(6, 1)
    stock, guarded = (cls(use_sigmoid=True) for cls in CROSS_ENTROPY['mmdet'])
    assert_equal(value_and_grad(guarded, scores, label, weight), value_and_grad(stock, scores, label, weight))


def test_ignore_index_of_the_constructor_in_mmdet() -> None:
    scores, label = scores_and_labels((12, 4))
    label[::3] = 2
    for mode, avg_non_ignore in itertools.product(({}, {'use_sigmoid': True}), (False, True)):
        stock, guarded = (cls(ignore_index=2, avg_non_ignore=avg_non_ignore, **mode) for cls in CROSS_ENTROPY['mmdet'])
        assert_equal(value_and_grad(guarded, scores, label), value_and_grad(stock, scores, label))
        # The call's own value replaces it.
        args = (label, None, None, None, 1)
        assert_equal(value_and_grad(guarded, scores, *args), value_and_grad(stock, scores, *args))


def test_minus_one_as_ignore_index_adds_no_class_weight() -> None:
    """F2: OpenMMLab's sums class_weight[-1] for every ignored pixel; onedl's does not."""
    scores, label = scores_and_labels(SHAPES['4-D'])
    label[:, 0] = -1
    weights = torch.tensor(CLASS_WEIGHT)
    stock, guarded = (cls(class_weight=CLASS_WEIGHT) for cls in CROSS_ENTROPY['mmseg'])
    ours = value_and_grad(guarded, scores, label, ignore_index=-1)
    torch_own = value_and_grad(torch.nn.CrossEntropyLoss(weight=weights, ignore_index=-1), scores, label)
    assert_equal(ours, torch_own)
    assert torch.allclose(ours[0], stock(scores, label, ignore_index=-1), rtol=1e-2) == IS_ONEDL


def test_ordinary_void_pixel_with_class_weight_is_what_pytorch_gives() -> None:
    """F1, F3: crashes in stock, with avg_non_ignore or without."""
    scores, label = scores_and_labels(SHAPES['4-D'])
    label[0, 0, 0] = 255
    expected = value_and_grad(
        torch.nn.CrossEntropyLoss(weight=torch.tensor(CLASS_WEIGHT), ignore_index=255), scores, label
    )
    for avg_non_ignore in (False, True):
        guarded = CROSS_ENTROPY['mmseg'][1](class_weight=CLASS_WEIGHT, avg_non_ignore=avg_non_ignore)
        assert_equal(value_and_grad(guarded, scores, label, ignore_index=255), expected)


@pytest.mark.parametrize('scope', CROSS_ENTROPY)
def test_sigmoid_class_weight_is_per_channel(scope: str) -> None:
    """Stock weighs columns of the image where the width happens to equal the number of classes."""
    scores, label = scores_and_labels((2, 4, 3, 4))
    guarded = CROSS_ENTROPY[scope][1](use_sigmoid=True, class_weight=CLASS_WEIGHT)
    dense = torch.nn.functional.one_hot(label, 4).movedim(-1, 1).float()
    expected = value_and_grad(
        lambda leaf: sigmoid_by_hand(
            leaf,
            label,
            None,
            None,
            reduction='mean',
            class_weight=torch.tensor(CLASS_WEIGHT),
            ignore_index=-100,
            avg_non_ignore=False,
        ),
        scores,
    )
    assert_equal(value_and_grad(guarded, scores, label), expected, 'class indices')
    assert_equal(value_and_grad(guarded, scores, dense), expected, 'dense targets')
