"""The drop-ins: arguments, state, running counts, and what they print."""

from __future__ import annotations

import copy
import inspect
import pickle
from typing import Any, Tuple

import pytest
import torch
from gradients import value_and_grad
from torch_cases import assert_same, logits_and_target

import mmguard.nn
from mmguard import LabelGuardError, Tally

NAMES = ('CrossEntropyLoss', 'BCEWithLogitsLoss')
both = pytest.mark.parametrize('name', NAMES)
WEIGHT = torch.tensor([0.5, 1.0, 2.0, 0.1])


def pair(name: str, **arguments: Any) -> Any:
    return getattr(torch.nn, name)(**arguments), getattr(mmguard.nn, name)(**arguments)


def inputs(name: str) -> Any:
    logits, target = logits_and_target((6, 4))
    return (logits, target) if name == 'CrossEntropyLoss' else (logits, (logits > 1).float())


@both
def test_the_arguments_of_the_stock_module_in_its_order(name: str) -> None:
    stock, ours = (inspect.signature(getattr(package, name).__init__).parameters for package in (torch.nn, mmguard.nn))
    wanted = [p for p in stock if p not in ('device', 'dtype')]
    assert list(ours)[: len(wanted)] == wanted
    assert all(ours[p].default == stock[p].default for p in wanted[1:])
    assert all(p.kind == p.KEYWORD_ONLY for p in list(ours.values())[len(wanted) :])
    assert issubclass(getattr(mmguard.nn, name), getattr(torch.nn, name))


@both
def test_state_goes_both_ways(name: str) -> None:
    stock, ours = pair(name, weight=WEIGHT)
    ours(*inputs(name))
    assert list(ours.state_dict()) == list(stock.state_dict()) == ['weight']
    stock.load_state_dict(ours.state_dict(), strict=True)
    ours.load_state_dict(stock.state_dict(), strict=True)
    assert [n for n, _ in ours.named_buffers()] == ['weight']
    expected = stock(*inputs(name))
    for twin in (ours, copy.deepcopy(ours), pickle.loads(pickle.dumps(ours)), ours.double().float()):
        torch.testing.assert_close(twin(*inputs(name)), expected)
    assert ours.to('meta').weight.device.type == 'meta'


@both
def test_value_and_gradient(name: str) -> None:
    more = {'label_smoothing': 0.1} if name == 'CrossEntropyLoss' else {'pos_weight': WEIGHT}
    for reduction in ('none', 'mean', 'sum'):
        stock, ours = pair(name, weight=WEIGHT, reduction=reduction, **more)
        assert_same(value_and_grad(ours, *inputs(name)), value_and_grad(stock, *inputs(name)))


@pytest.mark.filterwarnings('ignore:size_average and reduce')
def test_deprecated_arguments() -> None:
    stock, ours = pair('CrossEntropyLoss', size_average=False, reduce=True)
    assert ours.reduction == stock.reduction == 'sum'
    torch.testing.assert_close(ours(*inputs('CrossEntropyLoss')), stock(*inputs('CrossEntropyLoss')))


def test_by_keyword() -> None:
    logits, target = inputs('CrossEntropyLoss')
    assert mmguard.nn.CrossEntropyLoss()(input=logits, target=target).isfinite()


def test_running_counts() -> None:
    criterion = mmguard.nn.CrossEntropyLoss(ignore_index=255)
    assert criterion.counts is None
    assert criterion.tally() == Tally()
    logits, target = logits_and_target((6, 4))
    target[:3] = torch.tensor([255, 4, -1])
    for _ in range(3):
        criterion(logits, target)
    with torch.no_grad():
        criterion(logits, target)
    criterion.eval()(logits, target)
    criterion.train()
    assert criterion.counts.tolist() == [18, 6, 0], 'training calls alone'
    assert criterion.tally() + criterion.tally() == Tally(total=36, skipped=12, values={-1: 6, 4: 6})
    criterion.reset_tally()
    assert criterion.tally() == Tally()
    clipping = mmguard.nn.CrossEntropyLoss(on_invalid='clip')
    clipping(logits, target)
    assert clipping.tally() == Tally(total=6, remapped=3, values={-1: 1, 4: 1, 255: 1})


def test_running_counts_hold_no_graph() -> None:
    criterion = mmguard.nn.CrossEntropyLoss()
    logits = torch.randn(6, 4, requires_grad=True)
    criterion(logits, logits.softmax(1))
    assert not criterion.counts.requires_grad
    assert pickle.loads(pickle.dumps(criterion)).tally().total == 6


def test_missing_labels() -> None:
    criterion = mmguard.nn.BCEWithLogitsLoss(ignore_index=-1)
    logits = torch.randn(2, 2)
    loss = criterion(logits, torch.tensor([[0.0, -1.0], [255.0, 1.0]]))
    expected = torch.nn.functional.binary_cross_entropy_with_logits(logits.diagonal(), torch.tensor([0.0, 1.0]))
    torch.testing.assert_close(loss, expected)
    assert criterion.tally() == Tally(total=4, skipped=1)


@both
def test_raise_is_a_mode(name: str) -> None:
    criterion = getattr(mmguard.nn, name)(on_invalid='raise')
    logits, target = inputs(name)
    criterion(logits, target)
    target.view(-1)[5] = 255
    with pytest.raises(LabelGuardError) as caught:
        criterion(logits, target)
    assert caught.value.positions == [(5,) if name == 'CrossEntropyLoss' else (1, 1)]
    assert criterion.tally().skipped == 0


@both
def test_unknown_modes(name: str) -> None:
    with pytest.raises(ValueError, match="'drop'"):
        getattr(mmguard.nn, name)(on_invalid='drop')


def test_what_they_print() -> None:
    assert repr(mmguard.nn.CrossEntropyLoss()) == 'CrossEntropyLoss()'
    full = mmguard.nn.CrossEntropyLoss(WEIGHT, ignore_index=255, label_smoothing=0.1, on_invalid='clip')
    assert repr(full) == "CrossEntropyLoss(weight=(4,), ignore_index=255, label_smoothing=0.1, on_invalid='clip')"
    binary = mmguard.nn.BCEWithLogitsLoss(pos_weight=WEIGHT, ignore_index=-1, reduction='sum')
    assert repr(binary) == "BCEWithLogitsLoss(pos_weight=(4,), reduction='sum', ignore_index=-1)"


@pytest.mark.parametrize('shape', [(5_000_000, 2), (1, 2, 2000, 2500)])
@pytest.mark.parametrize('on_invalid', ['ignore', 'clip'])
def test_counts_of_millions_are_exact(shape: Tuple[int, ...], on_invalid: str) -> None:
    """They come with the denominator, which is a float32."""
    target = torch.randint(-1, 4, (shape[0], *shape[2:]))
    criterion = mmguard.nn.CrossEntropyLoss(ignore_index=3, on_invalid=on_invalid)
    criterion(torch.zeros(shape), target)
    invalid = int(((target == -1) | (target == 2)).sum())
    tally = criterion.tally()
    assert (tally.total, tally.skipped + tally.remapped) == (5_000_000, invalid)
    assert bool(tally.remapped) == (on_invalid == 'clip')
