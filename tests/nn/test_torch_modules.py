"""The drop-ins: arguments, state, running counts, and what they print."""

from __future__ import annotations

import copy
import inspect
import pickle
from typing import Any, Dict, Tuple

import pytest
import torch
import torch.nn.functional as F
from loss_checks import value_and_grad
from torch import Tensor
from torch_cases import assert_same, logits_and_target
from warm import run_beside_torch

import mmguard.nn
from benchmarks.timing import memory_of
from mmguard import LabelGuardError, Tally
from mmguard.functional import cross_entropy

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


CLASSES = 19
LOGITS, LABELS = (2, CLASSES, 64, 64), (2, 64, 64)
ELEMENTS = 2 * 64 * 64
INDEX, MASK, FLOAT = 8, 1, 4
#: Scalars, in blocks of 64 bytes.
SCALARS = 4096


def forward_and_backward(loss: Any, logits: Tensor, target: Tensor, options: Dict[str, Any]) -> None:
    loss(logits, target, **options).backward()
    logits.grad = None


OPTIONS: Dict[str, Dict[str, Any]] = {
    'plain': {},
    'ignored class': {'ignore_index': 3},
    'smoothed': {'label_smoothing': 0.1},
    'weighted': {'weight': torch.ones(CLASSES)},
    'sum': {'reduction': 'sum'},
    'none': {'reduction': 'none'},
    'clip': {'on_invalid': 'clip'},
    'tally': {'return_tally': True},
}


@pytest.mark.parametrize('name', OPTIONS)
@pytest.mark.parametrize('share_invalid', [0.0, 0.3])
def test_the_sanitized_target_and_a_mask(name: str, share_invalid: float) -> None:
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(LOGITS, generator=generator).requires_grad_()
    clean = torch.randint(0, CLASSES, LABELS, generator=generator)
    target = clean.masked_fill(torch.rand(LABELS, generator=generator) < share_invalid, 77)
    ours = OPTIONS[name]
    theirs = {key: value for key, value in ours.items() if key not in ('on_invalid', 'return_tally')}

    def guarded(*args: Any, **kwargs: Any) -> Tensor:
        out = cross_entropy(*args, **kwargs)
        return (out[0] if isinstance(out, tuple) else out).sum()

    def stock(*args: Any, **kwargs: Any) -> Tensor:
        return F.cross_entropy(*args, **kwargs).sum()

    kept = (
        memory_of(lambda: guarded(logits, target, **ours)).kept - memory_of(lambda: stock(logits, clean, **theirs)).kept
    )
    assert kept <= INDEX * ELEMENTS + SCALARS, 'more than the sanitized target is kept for the backward pass'
    peak = (
        memory_of(lambda: forward_and_backward(guarded, logits, target, ours)).peak
        - memory_of(lambda: forward_and_backward(stock, logits, clean, theirs)).peak
    )
    assert peak <= (INDEX + MASK) * ELEMENTS + SCALARS
    # It is measured at all: the log-probabilities alone are CLASSES floats per element.
    assert memory_of(lambda: guarded(logits, target, **ours)).kept >= FLOAT * CLASSES * ELEMENTS


def test_installed_frameworks_are_not_loaded() -> None:
    """The parts for plain PyTorch, wherever they are used."""
    parts = 'mmguard.nn, mmguard.functional, mmguard.distributed, mmguard.detection'
    code = (
        f'import sys, torch, numpy\nbefore = set(sys.modules)\nimport {parts}\n'
        'files = {m: str(getattr(sys.modules[m], "__file__", "")) for m in set(sys.modules) - before}\n'
        'print(*(m for m, file in files.items() if "site-packages" in file))\n'
        'assert "mmguard.nn" in sys.modules'
    )
    ended = run_beside_torch(code)
    assert ended.returncode == 0, ended.stderr
    others = {name.split('.')[0] for name in ended.stdout.split()} - {'mmguard', 'torch', 'numpy'}
    assert not others, others
