"""mmdet's losses: a batch with invalid labels is the batch without those elements."""

from __future__ import annotations

from typing import Optional

import pytest
import torch
from detection_cases import BACKGROUND, CASES, CLASSES, INVALID, Batch, assert_same, batch, outcome
from factors import factor_left
from hypothesis import given as examples
from hypothesis import settings
from hypothesis import strategies as st
from this_torch import skip_where_stock_fails

NAMES = pytest.mark.parametrize('name', CASES)
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


def test_positives_of_weight_zero_were_not_counted() -> None:
    case = CASES['focal']
    made = batch(case, number=6)
    made.label = torch.tensor([0, 1, 2, 99, 99, BACKGROUND])
    for weight in (torch.tensor([1.0, 1, 0, 1, 0, 1]), torch.tensor([1.0, 1, 0, 1, 0, 1]).repeat_interleave(CLASSES)):
        made.weight = weight
        keep = made.label <= BACKGROUND
        expected = outcome(case.build(), case, made.only(keep), avg_factor=2.0)
        actual = outcome(case.guard(), case, made, avg_factor=3.0)
        actual.grad = actual.grad[keep]
        assert_same(actual, expected)


def test_seesaw_counts_the_samples_of_classes_alone() -> None:
    case = CASES['seesaw']
    guarded = case.guard()
    made = batch(case, number=6)
    for _ in range(3):
        made.label = torch.tensor([0, 3, 3, 19, -1, BACKGROUND])
        outcome(guarded, case, made)
    assert guarded.cum_samples.tolist() == [3, 0, 0, 6, 3]


def test_eqlv2_adds_up_nothing_for_an_excluded_row() -> None:
    case = CASES['eqlv2']
    guarded, bare = case.guard(), case.build()
    made = batch(case, number=6)
    for _ in range(3):
        made.label = torch.tensor([0, 3, 3, 19, -1, BACKGROUND])
        keep = made.label.ge(0) & made.label.le(BACKGROUND)
        outcome(guarded, case, made)
        outcome(bare, case, made.only(keep))
        for what, buffer in bare.named_buffers():
            assert getattr(guarded, what).equal(buffer), what
