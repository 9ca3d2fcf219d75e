"""mmdet's losses: the guarded one is the stock one on valid labels, with every argument."""

from __future__ import annotations

import itertools
from typing import Any, Optional, Type

import mmdet.models.losses as stock
import pytest
import torch
from detection_cases import BACKGROUND, CASES, CLASSES, INVALID, Batch, Case, assert_same, batch, outcome
from gradients import value_and_grad
from loss_cases import assert_equal
from this_torch import skip_where_stock_fails

from mmguard import LabelGuardError
from mmguard.losses.mmdet import GuardedLoss

NAMES = pytest.mark.parametrize('name', CASES)
pytestmark = pytest.mark.filterwarnings('ignore:Default ``avg_non_ignore``')


def error_of(call: Any) -> Optional[Type[Exception]]:
    try:
        call()
    except Exception as error:
        return type(error)
    return None


@NAMES
def test_every_argument(name: str) -> None:
    case = CASES[name]
    weights = (None, 'rows', 'per class', 'flat') if case.weight_per_class else (None, 'rows')
    factors = (None, 3.5, 7, torch.tensor(5.5), 0.2)
    compared = 0
    combinations = list(itertools.product(weights, factors, (None, 'none', 'mean', 'sum')))
    for seed, (weight, factor, override) in enumerate(combinations):
        bare, guarded = case.build(), case.guard()
        given = batch(case, seed=seed % 3, weight=weight)
        kwargs = {'avg_factor': factor, 'reduction_override': override}
        error = error_of(lambda: outcome(bare, case, given, **kwargs))  # noqa: B023
        if error is not None:
            with pytest.raises(error):
                outcome(guarded, case, given, **kwargs)
            continue
        bare, guarded = case.build(), case.guard()
        for _ in range(2):  # what a loss adds up over the calls must stay the same, too
            expected = outcome(bare, case, given, **kwargs)
            assert_same(outcome(guarded, case, given, **kwargs), expected, (name, weight, factor, override))
        assert guarded.take_counts().tolist() == [48, 0, 0]
        compared += 1
    assert compared >= len(weights) * len(factors)


@NAMES
def test_what_is_added_up_over_the_calls(name: str) -> None:
    case = CASES[name]
    bare, guarded = case.build(), case.guard()
    for seed in range(4):
        given = batch(case, seed=seed)
        assert_same(outcome(guarded, case, given), outcome(bare, case, given), (name, seed))


@NAMES
@pytest.mark.parametrize('reduction', ['none', 'mean', 'sum'])
def test_the_reduction_of_the_constructor(name: str, reduction: str) -> None:
    case = CASES[name]
    case = Case(**dict(case.__dict__, arguments={**case.arguments, 'reduction': reduction}))
    given = batch(case)
    error = error_of(lambda: outcome(case.build(), case, given))
    if error is None:
        assert_same(outcome(case.guard(), case, given), outcome(case.build(), case, given), name)
    else:
        with pytest.raises(error):
            outcome(case.guard(), case, given)


@NAMES
@pytest.mark.parametrize('rows', ['all background', 'no background', 'one row', 'one background row'])
def test_unusual_batches(name: str, rows: str) -> None:
    case = CASES[name]
    given = batch(case, number=1 if 'one' in rows else 9)
    if rows != 'one row':
        given.label = given.label.clamp(max=CLASSES - 1) if rows == 'no background' else given.label * 0 + BACKGROUND
    kwargs = {'avg_factor': 2.0}
    assert_same(outcome(case.guard(), case, given, **kwargs), outcome(case.build(), case, given, **kwargs), name)


@NAMES
@pytest.mark.parametrize('avg_factor', [None, 1.0])
def test_no_row(name: str, avg_factor: Optional[float]) -> None:
    """Stock gives NaN in some, which the guarded ones do not."""
    case = CASES[name]
    actual = outcome(case.guard(), case, batch(case, number=0), avg_factor=avg_factor)
    assert all(part.eq(0).all() for part in actual.parts.values())
    assert actual.grad.shape == (0, CLASSES + case.more_channels)


@NAMES
@pytest.mark.parametrize('dtype', [torch.float16, torch.bfloat16, torch.float64])
def test_other_precisions(name: str, dtype: torch.dtype) -> None:
    case = CASES[name]
    given = batch(case)
    given.scores, given.quality = given.scores.to(dtype), given.quality.to(dtype)
    given.weight = None if given.weight is None else given.weight.to(dtype)
    skip_where_stock_fails(lambda: outcome(case.build(), case, given))
    tolerance = 1e-6 if dtype == torch.float64 else 2e-2
    expected = outcome(case.build(), case, given)
    assert_same(outcome(case.guard(), case, given), expected, name, tolerance)
    given.label[:3] = 99
    assert all(part.isfinite().all() for part in outcome(case.guard(), case, given).parts.values())


@NAMES
@pytest.mark.parametrize('dtype', [torch.int32, torch.int16, torch.uint8])
def test_labels_of_other_dtypes(name: str, dtype: torch.dtype) -> None:
    """Some stock losses want int64; a guarded one takes any integer."""
    case = CASES[name]
    given = batch(case)
    expected = outcome(case.build(), case, given)
    given.label = given.label.to(dtype)
    assert_same(outcome(case.guard(), case, given), expected, name)


@NAMES
@pytest.mark.parametrize('invalid', INVALID)
def test_clip(name: str, invalid: int) -> None:
    case = CASES[name]
    given, clamped = batch(case), batch(case)
    given.label[2:7], clamped.label[2:7] = invalid, min(max(invalid, 0), CLASSES - 1)
    guarded = case.guard(on_invalid='clip')
    for factor in (None, 3.0):
        expected = outcome(case.build(), case, clamped, avg_factor=factor)
        assert_same(outcome(case.guard(on_invalid='clip'), case, given, avg_factor=factor), expected, name)
        outcome(guarded, case, given, avg_factor=factor)
    assert guarded.take_counts().tolist() == [48, 0, 10]


@NAMES
def test_raise(name: str) -> None:
    case = CASES[name]
    guarded = case.guard(on_invalid='raise')
    given = batch(case)
    assert_same(outcome(guarded, case, given), outcome(case.build(), case, given), name)
    given.label[[3, 5]] = 77
    with pytest.raises(LabelGuardError, match=r'0\.\.4') as caught:
        outcome(guarded, case, given)
    assert (caught.value.positions, caught.value.tallies[0].values) == ([(3,), (5,)], {77: 2})


@pytest.mark.parametrize('name', [name for name in CASES if 'custom CE' not in name])
def test_an_ignored_label_counts_as_absent(name: str) -> None:
    """mmdet's other losses know no ignored label; GuardedLoss may be given one."""
    case = CASES[name]
    given = batch(case)
    kept = torch.arange(len(given.label)) % 3 != 0
    expected = outcome(case.build(), case, given.only(kept))
    given.label[~kept] = 255
    guarded = case.guard(ignore_index=255)
    actual = outcome(guarded, case, given)
    assert actual.grad[~kept].eq(0).all()
    actual.grad = actual.grad[kept]
    assert_same(actual, expected, name)
    assert guarded.take_counts().tolist() == [24, 0, 0]


def test_the_own_ignored_label_of_custom_cross_entropy() -> None:
    for arguments in ({}, {'avg_non_ignore': True}, {'use_sigmoid': True}):
        case = Case('CrossEntropyCustomLoss', {'num_classes': CLASSES, 'ignore_index': 255, **arguments})
        case.more_channels = 0 if 'use_sigmoid' in arguments else 1
        given = batch(case)
        given.label[::3] = 255
        assert_same(outcome(case.guard(), case, given), outcome(case.build(), case, given), arguments)


@pytest.mark.parametrize('name', ['focal', 'focal, activated', 'quality', 'quality, activated', 'ghm'])
@pytest.mark.parametrize('override', [None, 'none', 'sum'])
def test_dense_targets_pass_through(name: str, override: Optional[str]) -> None:
    case = CASES[name]
    given = batch(case, weight='per class' if case.needs_weight else None)
    dense = torch.nn.functional.one_hot(given.label, CLASSES + 1)[:, :CLASSES].float()
    dense = dense * given.quality.unsqueeze(1) if case.pair else dense
    case = Case(**dict(case.__dict__, pair=False))
    given = Batch(given.scores, dense, given.quality, given.weight)
    skip_where_stock_fails(lambda: outcome(case.build(), case, given, reduction_override=override))
    guarded = case.guard()
    expected = outcome(case.build(), case, given, reduction_override=override)
    assert_same(outcome(guarded, case, given, reduction_override=override), expected, name)
    assert guarded.take_counts() is None


@pytest.mark.parametrize(
    'loss', [stock.VarifocalLoss(), stock.DiceLoss(), stock.GaussianFocalLoss(), stock.MultiPosCrossEntropyLoss()]
)
def test_losses_of_dense_targets_pass_through(loss: Any) -> None:
    generator = torch.Generator().manual_seed(0)
    scores = torch.rand(6, 5, generator=generator) * 0.9 + 0.05
    target = torch.rand(6, 5, generator=generator)
    if isinstance(loss, stock.MultiPosCrossEntropyLoss):
        target = (target > 0.5).long()
    for override in (None, 'none', 'sum'):
        expected = value_and_grad(loss, scores, target, reduction_override=override)
        guarded = GuardedLoss(loss)
        assert_equal(value_and_grad(guarded, scores, target, reduction_override=override), expected)
        assert guarded.take_counts() is None
