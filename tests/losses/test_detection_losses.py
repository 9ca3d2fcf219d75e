"""mmdet's losses: the stock one on valid labels, with every argument, and the batch without its invalid elements."""

from __future__ import annotations

import itertools
from typing import Any, Optional, Type

import mmdet.models.losses as stock
import pytest
import torch
from detection_cases import BACKGROUND, CASES, CLASSES, INVALID, Batch, Case, assert_same, batch, outcome
from hypothesis import given as examples
from hypothesis import settings
from hypothesis import strategies as st
from loss_cases import EXACT, assert_equal
from loss_checks import factor_left, value_and_grad
from this_stack import skip_where_stock_fails

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
    factors = (None, 2.7, 7, torch.tensor(5.5), 0.2)
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
            assert_same(
                outcome(guarded, case, given, **kwargs), expected, (name, weight, factor, override), tolerance=0
            )
        assert guarded.take_counts().tolist() == [48, 0, 0]
        compared += 1
    assert compared >= len(weights) * len(factors)


@NAMES
@pytest.mark.parametrize('reduction', ['none', 'mean', 'sum'])
def test_the_reduction_of_the_constructor(name: str, reduction: str) -> None:
    case = CASES[name]
    case = Case(**dict(case.__dict__, arguments={**case.arguments, 'reduction': reduction}))
    given = batch(case)
    error = error_of(lambda: outcome(case.build(), case, given))
    if error is None:
        assert_same(outcome(case.guard(), case, given), outcome(case.build(), case, given), name, tolerance=EXACT)
    else:
        with pytest.raises(error):
            outcome(case.guard(), case, given)


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
    assert_same(outcome(guarded, case, given), outcome(case.build(), case, given), name, tolerance=EXACT)
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


STABLE = settings(max_examples=20, derandomize=True, deadline=None)
ODD = (float('inf'), -float('inf'), float('nan'))


@st.composite
def batches(draw: st.DrawFn, name: str) -> Batch:
    case = CASES[name]
    label = draw(st.lists(st.integers(0, BACKGROUND) | st.sampled_from(INVALID), min_size=1, max_size=12))
    weights = [None, 'rows', 'per class', 'flat'] if case.weight_per_class else [None, 'rows']
    made = batch(case, len(label), seed=draw(st.integers(0, 999)), weight=draw(st.sampled_from(weights)))
    made.label = torch.tensor(label)
    made.quality = 0.8 * made.quality + 0.1
    if draw(st.booleans()):
        made.scores[(made.label > BACKGROUND) | (made.label < 0)] = draw(st.sampled_from(ODD))
        made.quality[(made.label > BACKGROUND) | (made.label < 0)] = float('nan')
    return made


@pytest.mark.parametrize(
    ('name', 'with_factor'),
    [(name, with_factor) for name in CASES for with_factor in (False, True)[: 1 + (CASES[name].factor is not None)]],
)
@pytest.mark.parametrize('override', [None, 'none', 'sum'])
def test_invalid_elements_might_as_well_not_be_there(name: str, override: Optional[str], with_factor: bool) -> None:
    case = CASES[name]
    asked = {'reduction_override': override, 'avg_factor': 3.0 if with_factor else None}
    skip_where_stock_fails(lambda: outcome(case.build(), case, batch(case), **asked))
    seen = []

    @STABLE
    @examples(batches(name))
    def check(made: Batch) -> None:
        keep = (made.label >= 0) & (made.label <= BACKGROUND)
        left = made.only(keep)
        bare, guarded = case.build(), case.guard()
        kwargs = {'reduction_override': override} if override else {}
        factor, factor_left = (
            {'avg_factor': case.counted_by_caller(g.label, g.weight)} if with_factor else {} for g in (made, left)
        )
        rows = torch.arange(1, len(keep) + 1)
        actual = outcome(guarded, case, made, factors=rows, **kwargs, **factor)
        assert actual.grad[~keep].eq(0).all(), 'an invalid element has a gradient'
        assert guarded.take_counts().tolist() == [len(keep), int((~keep).sum()), 0]
        if not keep.any():
            assert all(part.eq(0).all() for part in actual.parts.values())
            assert actual.buffers.keys() == dict(bare.named_buffers()).keys()
            for what, buffer in bare.named_buffers():
                assert actual.buffers[what].eq(buffer).all() or (name, what) == ('eqlv2', 'pos_neg')
            return
        expected = outcome(bare, case, left, factors=rows[keep], **kwargs, **factor_left)
        actual.grad = actual.grad[keep]
        for what, part in actual.parts.items():
            if part.dim() and len(part) == len(keep) and what != 'loss_cls_classes':
                assert part[~keep].eq(0).all()
                actual.parts[what] = part[keep]
        assert_same(actual, expected, (name, override, with_factor), tolerance=1e-5)
        seen.append(int((~keep).sum()))

    check()
    assert len(seen) > 10
    assert sum(number > 0 for number in seen) > 5


@NAMES
@pytest.mark.parametrize('value', INVALID)
def test_nothing_left(name: str, value: int) -> None:
    case = CASES[name]
    for override in (None, 'none'):
        for factor in (None, 6.0):
            made = batch(case)
            made.label.fill_(value)
            made.scores[::2] = float('nan')
            actual = outcome(case.guard(), case, made, reduction_override=override, avg_factor=factor)
            assert all(part.eq(0).all() for part in actual.parts.values())
            assert actual.grad.eq(0).all()


@pytest.mark.parametrize('name', [name for name, case in CASES.items() if case.factor is not None])
def test_invalid_elements_leave_the_avg_factor(name: str) -> None:
    """Of several calls, of this one, averaged over ranks, chosen by hand; counted without them."""
    case = CASES[name]
    made = batch(case)
    positive = (made.label != BACKGROUND).nonzero().squeeze(1)
    counted = len(positive) if case.factor == 'positives' else len(made.label)
    made.label[positive[:5]] = 99
    keep = made.label <= BACKGROUND
    for factor in (40.0, 7.0, 0.3, counted, counted - 5, torch.tensor(40.0), torch.tensor([40.0]), torch.tensor(40)):
        left = factor_left(float(factor), counted - 5, counted)
        expected = outcome(case.build(), case, made.only(keep), avg_factor=left)
        actual = outcome(case.guard(), case, made, avg_factor=factor)
        actual.grad = actual.grad[keep]
        actual.parts = {name: part.view(()) for name, part in actual.parts.items()}
        assert_same(actual, expected, (name, factor), tolerance=1e-5)
