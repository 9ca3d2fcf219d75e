"""Every argument, against the stock losses: equal where they work, the formula by hand where they do not."""

from __future__ import annotations

import io
import itertools
import json
import pickle
import re
from collections import Counter
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, Optional, Tuple

import numpy as np
import pytest
import torch
from loss_cases import (
    CLASS_WEIGHT,
    CROSS_ENTROPY,
    SHAPES,
    assert_equal,
    assert_same_bits,
    scores_and_labels,
    sigmoid_by_hand,
    softmax_by_hand,
    weights_like,
)
from loss_checks import value_and_grad
from this_stack import IS_ONEDL, weighted_cases_that_fail
from torch import Tensor

from mmguard.losses import GuardedCrossEntropyLoss
from mmguard.losses.cross_entropy import load_class_weight

pytestmark = pytest.mark.filterwarnings('ignore:Default ``avg_non_ignore``')
REDUCTIONS = (('none', None), ('mean', None), ('sum', None), ('mean', 'none'), ('none', 'mean'), ('mean', 'sum'))
AVG_FACTORS = {'no': None, 'number': 2.7, 'int': 3, '0-d': torch.tensor(6.25)}
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
        assert_same_bits(value_and_grad(guarded, scores, *args), expected, note)
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
        assert_same_bits(value_and_grad(guarded, scores, *args), value_and_grad(stock, scores, *args))
        outcome['equal'] += 1
    assert outcome['equal'] == 40


def test_sigmoid_with_one_channel_in_mmdet() -> None:
    scores, label = scores_and_labels((9, 1), num_classes=2)  # 0 is the class, 1 the background
    stock, guarded = (cls(use_sigmoid=True) for cls in CROSS_ENTROPY['mmdet'])
    assert_same_bits(value_and_grad(guarded, scores, label), value_and_grad(stock, scores, label))
    flat = scores.squeeze(1)  # labels of the shape of the scores are dense targets, instead
    assert_same_bits(value_and_grad(guarded, flat, label), value_and_grad(stock, flat, label))


def test_ignore_index_of_the_constructor_in_mmdet() -> None:
    scores, label = scores_and_labels((12, 4))
    label[::3] = 2
    for mode, avg_non_ignore in itertools.product(({}, {'use_sigmoid': True}), (False, True)):
        stock, guarded = (cls(ignore_index=2, avg_non_ignore=avg_non_ignore, **mode) for cls in CROSS_ENTROPY['mmdet'])
        assert_same_bits(value_and_grad(guarded, scores, label), value_and_grad(stock, scores, label))
        # The call's own value replaces it.
        args = (label, None, None, None, 1)
        assert_same_bits(value_and_grad(guarded, scores, *args), value_and_grad(stock, scores, *args))


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


@pytest.mark.parametrize(
    'weights',
    [
        CLASS_WEIGHT,
        tuple(CLASS_WEIGHT),
        np.array(CLASS_WEIGHT),
        torch.tensor(CLASS_WEIGHT, dtype=torch.float64),
        [np.float64(CLASS_WEIGHT[0]), np.float32(CLASS_WEIGHT[1]), *CLASS_WEIGHT[2:]],
    ],
    ids=['list', 'tuple', 'array', 'tensor', 'list of numpy numbers'],
)
def test_values(weights: Any) -> None:
    assert load_class_weight(weights) == pytest.approx(CLASS_WEIGHT)
    assert all(type(weight) in (float, np.float32, np.float64) for weight in load_class_weight(weights))


@pytest.mark.parametrize('as_path', [False, True])
@pytest.mark.parametrize('suffix', ['.npy', '.json', '.yaml', '.yml', '.JSON'])
def test_files(tmp_path: Path, suffix: str, as_path: bool) -> None:
    path = tmp_path / f'weights{suffix}'
    if suffix == '.npy':
        np.save(path, np.array(CLASS_WEIGHT))
    else:
        path.write_text(json.dumps(CLASS_WEIGHT))
    guarded = GuardedCrossEntropyLoss(class_weight=path if as_path else str(path))
    assert guarded.class_weight == CLASS_WEIGHT
    scores, label = scores_and_labels((12, 4))
    expected = CROSS_ENTROPY['mmseg'][0](class_weight=CLASS_WEIGHT)(scores, label)
    torch.testing.assert_close(guarded(scores, label), expected)


class Trap:
    """Would write a file if it were read."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


OF_OBJECTS = io.BytesIO()
np.save(OF_OBJECTS, np.array([Trap(Path('sprung')), None]), allow_pickle=True)
PICKLED = pickle.dumps(Trap(Path('sprung')))


@pytest.mark.parametrize(
    ('name', 'content'),
    [
        *((f'a.{suffix}', PICKLED) for suffix in ('pkl', 'pickle', 'npy', 'json', 'yaml')),
        ('a.npy', OF_OBJECTS.getvalue()),
        ('a.yaml', b'!!python/object/apply:os.mkdir [sprung]'),
        ('a.yaml', b'!!python/name:os.mkdir'),
        ('a.yaml', b'!!python/tuple [1.0, 2.0]'),
        ('a.yaml', b'- ['),
        ('a.npy', b''),
        ('a.npy', b'\x93NUMPY'),
        ('a.json', b'{'),
    ],
)
def test_a_file_of_anything_else_is_named_and_nothing_in_it_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, content: bytes
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).write_bytes(content)
    with pytest.raises(ValueError, match=re.escape(name)):
        GuardedCrossEntropyLoss(class_weight=name)
    assert not Path('sprung').exists()


def test_other_files(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"'\.txt'"):
        load_class_weight('weights.txt')
    with pytest.raises(FileNotFoundError):
        load_class_weight(str(tmp_path / 'missing.json'))
    (tmp_path / 'a.json').write_text('{"road": 1.0}')
    with pytest.raises(TypeError, match=r'a\.json.*\bdict'):
        load_class_weight(str(tmp_path / 'a.json'))


@pytest.mark.parametrize('weights', [1.0, 3, {0: 1.0}, torch.tensor(2.0)])
def test_something_else_than_a_list(weights: Any) -> None:
    with pytest.raises(TypeError, match='class_weight'):
        GuardedCrossEntropyLoss(class_weight=weights)


@pytest.mark.parametrize(
    ('weights', 'wrong'),
    [
        ([1.0, float('nan')], r'\{1: nan\}'),
        ([float('inf')], r'\{0: inf\}'),
        ([1.0, None, 'a'], r"\{1: None, 2: 'a'\}"),
        ([True, 1.0], r'\{0: True\}'),
        ([[1.0, 2.0]], r'\{0: \[1\.0, 2\.0\]\}'),
        (np.ones((1, 2)), r'\{0: \[1\.0, 1\.0\]\}'),
    ],
)
def test_numbers_that_cannot_weigh(weights: Any, wrong: str) -> None:
    with pytest.raises(ValueError, match=wrong):
        GuardedCrossEntropyLoss(class_weight=weights)


@pytest.mark.parametrize('scope', CROSS_ENTROPY)
@pytest.mark.parametrize('mode', [{}, {'use_sigmoid': True}])
def test_wrong_length(scope: str, mode: dict) -> None:
    scores, label = scores_and_labels((12, 4))
    with pytest.raises(ValueError, match=r'class_weight.*\(3,\).*\b4\b'):
        CROSS_ENTROPY[scope][1](class_weight=[1.0, 2.0, 3.0], **mode)(scores, label)
