"""What the module adds to the arithmetic: arguments, state, counters and messages."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
import torch
from loss_cases import CLASS_WEIGHT, CROSS_ENTROPY, assert_equal, scores_and_labels
from loss_checks import value_and_grad
from this_stack import skip_without_autocast

from mmguard import LabelGuardError
from mmguard.labels.tally import SEVERAL

SCOPES = pytest.mark.parametrize('scope', CROSS_ENTROPY)
pytestmark = pytest.mark.filterwarnings('ignore:Default ``avg_non_ignore``')


@SCOPES
def test_same_misuse(scope: str) -> None:
    scores, label = scores_and_labels((12, 4))
    for loss_class in CROSS_ENTROPY[scope]:
        with pytest.raises(AssertionError):
            loss_class(use_sigmoid=True, use_mask=True)
        with pytest.raises(AssertionError):
            loss_class()(scores, label, reduction_override='average')
        with pytest.raises(ValueError, match='average'):
            loss_class(reduction='average')(scores, label)
        for mode in ({}, {'use_sigmoid': True}):
            with pytest.raises(ValueError, match='avg_factor'):
                loss_class(**mode)(scores, label, avg_factor=3, reduction_override='sum')
        with pytest.raises(TypeError, match='mystery'):
            loss_class()(scores, label, mystery=1)


def test_unknown_keywords_in_sigmoid_mode() -> None:
    scores, label = scores_and_labels((12, 4))
    for loss_class in CROSS_ENTROPY['mmseg']:
        loss_class(use_sigmoid=True)(scores, label, mystery=1)
    for loss_class in CROSS_ENTROPY['mmdet']:
        with pytest.raises(TypeError, match='mystery'):
            loss_class(use_sigmoid=True)(scores, label, mystery=1)


@SCOPES
@pytest.mark.parametrize(
    ('arguments', 'error'),
    [
        ({'on_invalid': 'drop'}, ValueError),
        ({'on_invalid': None}, ValueError),
        ({'ignore_index': 255.0}, TypeError),
        ({'ignore_index': True}, TypeError),
        ({'ignore_index': '255'}, TypeError),
    ],
)
def test_arguments_that_cannot_be_used(scope: str, arguments: dict, error: Any) -> None:
    with pytest.raises(error, match=next(iter(arguments))):
        CROSS_ENTROPY[scope][1](**arguments)


@SCOPES
def test_what_heads_read(scope: str) -> None:
    stock, guarded = (cls(use_sigmoid=True, class_weight=[1, 2], loss_weight=0.4) for cls in CROSS_ENTROPY[scope])
    for name in ('use_sigmoid', 'use_mask', 'reduction', 'loss_weight', 'class_weight', 'avg_non_ignore'):
        assert getattr(guarded, name) == getattr(stock, name), name
    assert guarded.loss_name == 'loss_ce'
    assert CROSS_ENTROPY[scope][1](loss_name='loss_aux').loss_name == 'loss_aux'


@SCOPES
def test_state(scope: str) -> None:
    guarded = CROSS_ENTROPY[scope][1](class_weight=CLASS_WEIGHT)
    scores, label = scores_and_labels((12, 4))
    expected = guarded(scores.requires_grad_(), label)
    assert guarded.state_dict() == {}
    guarded.load_state_dict({}, strict=True)
    for twin in (copy.deepcopy(guarded), pickle.loads(pickle.dumps(guarded))):
        assert twin(scores, label) == expected
        assert twin.class_weight == CLASS_WEIGHT


@SCOPES
def test_half_and_double_do_not_touch_the_class_weights(scope: str) -> None:
    scores, label = scores_and_labels((12, 4))
    weights = [0.3331, 1e6, 1.00390625, 2.5]
    guarded = CROSS_ENTROPY[scope][1](class_weight=weights)
    expected = value_and_grad(guarded, scores, label)
    for converted in (guarded.half(), guarded.bfloat16(), guarded.double(), guarded.float()):
        assert_equal(value_and_grad(converted, scores, label), expected)


@SCOPES
def test_counters(scope: str) -> None:
    guarded = CROSS_ENTROPY[scope][1]()
    scores, label = scores_and_labels((12, 4))
    label[:3] = torch.tensor([9, -1, 2**40])
    assert guarded.take_counts() is None
    guarded(scores, label)
    guarded(scores, label)
    with torch.no_grad():  # an OHEM sampler looks at the losses first
        guarded(scores, label)
    with torch.inference_mode():
        guarded(scores, label)
    assert guarded.take_counts().tolist() == [24, 6, 0]
    assert guarded.take_counts() is None
    clipping = CROSS_ENTROPY[scope][1](on_invalid='clip')
    clipping(scores, label)
    assert clipping.take_counts().tolist() == [12, 0, 3]


@SCOPES
@pytest.mark.parametrize('mode', [{}, {'use_sigmoid': True}])
@pytest.mark.parametrize('dtype', [torch.float16, torch.bfloat16])
def test_autocast(scope: str, mode: dict, dtype: torch.dtype) -> None:
    skip_without_autocast(dtype)
    scores, label = scores_and_labels((2, 4, 30, 40))
    label[:, :3], label[:, 3:5] = 255, 19
    guarded = CROSS_ENTROPY[scope][1](class_weight=[60.0, 80.0, 70.0, 90.0], **mode)
    head = torch.nn.Conv2d(4, 4, 1)
    losses = []
    for enabled in (True, False):
        head.zero_grad()
        with torch.autocast('cpu', dtype=dtype, enabled=enabled):
            made = head(scores)
            assert made.dtype == (dtype if enabled else torch.float32)
            loss = guarded(made, label, ignore_index=255)
        loss.backward()
        assert loss.dtype == torch.float32
        assert head.weight.grad.isfinite().all()
        losses.append(loss.detach())
    torch.testing.assert_close(losses[0], losses[1], rtol=2 * torch.finfo(dtype).eps, atol=0)


@SCOPES
def test_labels_of_every_kind_at_once(scope: str) -> None:
    """Ignored, invalid and background labels together, each with its own meaning."""
    scores, _ = scores_and_labels((6, 4))
    label = torch.tensor([0, 3, 255, 4, 5, -1])
    guarded = CROSS_ENTROPY[scope][1](use_sigmoid=True, avg_non_ignore=True)
    loss, grad = value_and_grad(guarded, scores, label, ignore_index=255)
    kept = 3 if scope == 'mmdet' else 2  # the label 4 is mmdet's background
    assert guarded.take_counts().tolist() == [6, 5 - kept, 0]
    stock = CROSS_ENTROPY[scope][0](use_sigmoid=True, avg_non_ignore=True)
    rows = torch.tensor([0, 1, 2, 3][: kept + 1])
    assert_equal((loss, grad[rows]), value_and_grad(stock, scores[rows], label[rows], ignore_index=255))


def test_one_channel_shapes_are_reported_as_the_caller_has_them() -> None:
    guarded = CROSS_ENTROPY['mmseg'][1](use_sigmoid=True)
    with pytest.raises(ValueError, match=r'\(2, 5, 5\).*\(2, 1, 4, 4\)'):
        guarded(torch.zeros(2, 1, 4, 4), torch.zeros(2, 5, 5).long())
    with pytest.raises(ValueError, match=r'class_weight.*\(4,\)'):
        CROSS_ENTROPY['mmseg'][1](use_sigmoid=True, class_weight=CLASS_WEIGHT)(
            torch.zeros(2, 1, 4, 4), torch.zeros(2, 4, 4).long()
        )


def test_one_channel_labels_of_the_shape_of_the_scores() -> None:
    scores, label = scores_and_labels((2, 1, 4, 4), num_classes=2)
    guarded = CROSS_ENTROPY['mmseg'][1](use_sigmoid=True)
    expected = value_and_grad(guarded, scores, label)
    assert_equal(value_and_grad(guarded, scores, label.unsqueeze(1)), expected)
    assert_equal(value_and_grad(guarded, scores, label.float()), expected)


def test_one_channel_with_labels_out_of_range() -> None:
    """Stock asserts that there are two classes, and fails on a batch of ignored pixels."""
    scores, label = scores_and_labels((2, 1, 4, 4), num_classes=2)
    guarded = CROSS_ENTROPY['mmseg'][1](use_sigmoid=True)
    label[0] = 2
    loss, grad = value_and_grad(guarded, scores, label, ignore_index=255)
    assert_equal((loss, grad[1:]), value_and_grad(guarded, scores[1:], label[1:], ignore_index=255))
    assert grad[0].eq(0).all()
    assert value_and_grad(guarded, scores, label.fill_(255), ignore_index=255)[0] == 0


class TestRaise:
    def raised(self, sources: Any, shape: tuple = (2, 4, 3, 3), **mode: Any) -> LabelGuardError:
        guarded = CROSS_ENTROPY['mmseg'][1](on_invalid='raise', **mode)
        guarded.sources = sources
        scores, label = scores_and_labels(shape)
        label[1] = 11
        if mode.get('use_mask'):
            args: tuple = (torch.ones(shape[0], *shape[2:]), torch.tensor([0, 11]))
        else:
            args = (label,)
        with pytest.raises(LabelGuardError) as caught:
            guarded(scores, *args)
        assert guarded.take_counts() is None
        return caught.value

    def test_names_the_file_of_the_sample(self) -> None:
        error = self.raised(['a.png', 'b.png'])
        assert str(error).startswith('b.png: ')
        assert error.positions[0] == (1, 0, 0)
        assert error.tallies[0].values == {11: 9}
        assert error.tallies[0].source == SEVERAL  # the counts are those of the batch

    def test_names_the_only_file(self) -> None:
        for error in (self.raised(['b.png']), self.raised(['b.png'], (30, 4))):
            assert str(error).startswith('b.png: ')
            assert error.tallies[0].source == 'b.png'

    @pytest.mark.parametrize(
        ('sources', 'shape', 'mode'),
        [
            (None, (2, 4, 3, 3), {}),
            ([], (2, 4, 3, 3), {}),
            (['a.png', 'b.png', 'c.png'], (2, 4, 3, 3), {}),
            # Labels of boxes, flattened over the batch.
            (['a.png', 'b.png'], (30, 4), {}),
            (['a.png', 'b.png'], (2, 4, 3, 3), {'use_mask': True}),
        ],
    )
    def test_names_no_file_that_it_does_not_know(self, sources: Any, shape: tuple, mode: dict) -> None:
        error = self.raised(sources, shape, **mode)
        assert '.png' not in str(error)
        assert error.tallies[0].source is None

    def test_valid_labels_pass(self) -> None:
        scores, label = scores_and_labels((2, 4, 3, 3))
        stock, guarded = (cls() for cls in CROSS_ENTROPY['mmseg'])
        guarded.on_invalid = 'raise'
        assert_equal(value_and_grad(guarded, scores, label), value_and_grad(stock, scores, label))
        assert guarded.take_counts().tolist() == [18, 0, 0]


def to_empty(guarded: torch.nn.Module) -> torch.nn.Module:
    guarded.to_empty(device='cpu')
    return guarded


def assigned(guarded: torch.nn.Module) -> torch.nn.Module:
    guarded.load_state_dict({}, strict=True, assign=True)
    return guarded


@SCOPES
@pytest.mark.parametrize('on_meta', [False, True])
@pytest.mark.parametrize('moved', [to_empty, assigned, copy.deepcopy, lambda guarded: guarded.to('meta').train()])
def test_class_weights_outlive_the_meta_device(scope: str, on_meta: bool, moved: Any) -> None:
    stock, guarded_class = CROSS_ENTROPY[scope]
    scores, label = scores_and_labels((2, 4, 3, 5))
    with torch.device('meta' if on_meta else 'cpu'):
        guarded = guarded_class(class_weight=CLASS_WEIGHT)
    assert list(guarded.buffers()) == []  # what a stock loss has, and what nobody fills, casts, averages or broadcasts
    expected = value_and_grad(stock(class_weight=CLASS_WEIGHT), scores, label)
    for _ in range(2):
        assert_equal(value_and_grad(moved(guarded), scores, label), expected)


@SCOPES
def test_class_weights_first_used_without_gradient(scope: str) -> None:
    scores, label = scores_and_labels((12, 4))
    with torch.inference_mode():
        guarded = CROSS_ENTROPY[scope][1](class_weight=CLASS_WEIGHT)
        guarded.class_weight = CLASS_WEIGHT[::-1]
        guarded(scores, label)
    expected = value_and_grad(CROSS_ENTROPY[scope][0](class_weight=CLASS_WEIGHT[::-1]), scores, label)
    assert_equal(value_and_grad(guarded, scores, label), expected)


@SCOPES
@pytest.mark.parametrize('mode', [{}, {'use_sigmoid': True}])
def test_class_weights_that_change(scope: str, mode: dict) -> None:
    scores, label = scores_and_labels((12, 4))
    stock, guarded = (cls(class_weight=list(CLASS_WEIGHT), **mode) for cls in CROSS_ENTROPY[scope])

    def compare() -> None:
        assert guarded.class_weight == stock.class_weight
        assert_equal(value_and_grad(guarded, scores, label), value_and_grad(stock, scores, label))

    compare()
    held = [3.0, 1.0, 2.0, 0.5]
    for weights in (held, None, tuple(CLASS_WEIGHT), None, held):
        stock.class_weight = weights
        guarded.class_weight = weights
        assert (guarded.class_weight is None) == (weights is None)
        stock.class_weight = guarded.class_weight  # a list either way
        compare()
    held[2] = 7.0  # in place, by whoever holds the list
    compare()
    for loss in (stock, guarded):
        loss.class_weight[0] = 9.0
        loss.loss_weight = 0.3
    compare()
    with pytest.raises(ValueError, match=r'\{1: nan\}'):
        guarded.class_weight = [1.0, float('nan'), 1.0, 1.0]
    compare()
