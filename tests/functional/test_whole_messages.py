"""Every message of the arithmetic in full: ``tests/snapshots/functional.txt`` holds those of the calls below."""

from __future__ import annotations

import warnings
from typing import Any, Callable, Dict, List, Tuple

import pytest
import torch
import torch.nn.functional as F

from mmguard.functional import (
    binary_cross_entropy_with_logits,
    check_target,
    cross_entropy,
    mask_cross_entropy,
    sigmoid_cross_entropy,
    softmax_cross_entropy,
)

MAP = torch.zeros(2, 3, 4, 5)
LABEL = torch.zeros(2, 4, 5, dtype=torch.long)
ROWS = torch.zeros(6, 3)
NAN = float('nan')


def labels(*values: float, dtype: Any = torch.long) -> torch.Tensor:
    """A map of two images, with these values first."""
    flat = [*values, *[values[-1]] * (40 - len(values))]
    return torch.tensor(flat, dtype=dtype).reshape(2, 4, 5)


def sums_of_all(logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return (logits * (target.unsqueeze(1) + 1)).sum()


SHAPES = [
    (MAP, torch.zeros(2, 3, 4, 5).long()),
    (torch.zeros(6), torch.zeros(6).long()),
    (MAP, LABEL.unsqueeze(1)),
    (MAP, LABEL.unsqueeze(-1)),
    (MAP, LABEL.float()),
    (MAP, torch.zeros(2, 4, 5, 3).long()),
    (MAP, torch.zeros(2, 4, 5, 4).long()),
    (torch.zeros(2, 7, 4, 5), torch.zeros(2, 4, 5, 3).long()),
    (MAP, torch.zeros(2, 4, 5, 2).long()),
    (MAP, torch.zeros(2, 7, 4, 5)),
    (MAP, torch.zeros(2, 8, 10).long()),
    (MAP, torch.zeros(2, 5, 4).long()),
    (MAP, torch.zeros(3, 4, 5).long()),
    (MAP[:1], LABEL[0]),
    (MAP[0], LABEL[0]),
    (ROWS, torch.zeros(7).long()),
    (MAP.movedim(1, -1), LABEL),
    (torch.zeros(3), torch.zeros(6).long()),
    (MAP, torch.tensor(0)),
    (torch.tensor(1.0), torch.tensor(0)),
    (MAP.long(), LABEL),
    (LABEL, MAP),
    (MAP, 3),
]
ROWS_OF_TARGETS = [
    [[0.2, 0.3, 0.5], [1, 1, 0], [0, 0, 0], [NAN, 0, 1], [-1, 1, 1], [0, 1, 0]],
    [[0, 255, 0], [255, 0, 0]],
    [[1, 1, 0], [0, 1, 1]],
    [[0, 0, 0], [0, 1, 0]],
    [[-1, 3, 2], [0, 1, 0]],
    [[0.5, 0.25, 0.5], [0, 1, 0]],
]
UNIT = [[0, 255], [0, 3, 255], [-1, 0], [0, 7], [0.5, 1.5], [NAN, 1]]

#: What is called -> calls, each with one message.
CALLS: Dict[str, List[Callable[[], Any]]] = {
    'cross_entropy: shapes': [lambda one=one: cross_entropy(*one) for one in SHAPES],
    'check_target: shapes': [lambda one=one: check_target(*one) for one in SHAPES],
    'softmax_cross_entropy: shapes': [lambda one=one: softmax_cross_entropy(*one) for one in SHAPES[:19]],
    'sigmoid_cross_entropy: shapes': [lambda one=one: sigmoid_cross_entropy(*one) for one in SHAPES[:19]],
    'binary_cross_entropy_with_logits: shapes': [
        lambda one=one: binary_cross_entropy_with_logits(*one) for one in [*SHAPES[:19], (ROWS[:, :1], ROWS[:, 0])]
    ],
    'cross_entropy: soft targets': [
        lambda rows=rows: cross_entropy(torch.zeros(len(rows), 3), torch.tensor(rows).float(), on_invalid='raise')
        for rows in ROWS_OF_TARGETS
    ],
    'check_target: soft targets': [
        lambda rows=rows: check_target(torch.zeros(len(rows), 3), torch.tensor(rows).float())
        for rows in ROWS_OF_TARGETS
    ],
    'check_target: multi-label targets': [
        lambda unit=unit: check_target(torch.zeros(len(unit)), torch.tensor(unit).float(), kind='multilabel')
        for unit in UNIT
    ],
    'check_target: values': [
        lambda given=given: check_target(MAP, labels(*given))
        for given in ([0, 1, 2], [1, 2, 3], [0, 255], [0, 1], [0], [-100], [0, 1, 2, 7, 9], [1, 2, -1])
    ],
    'check_target: values with ignore_index=255': [
        lambda given=given: check_target(MAP, labels(*given), ignore_index=255)
        for given in ([0, 1, 2, 255], [0, 255], [255], [0, 1, 1, 255])
    ],
    'check_target: floating point values': [
        lambda given=given: check_target(MAP, labels(*given, dtype=torch.float32))
        for given in ([0, 1, 2], [0, 1 / 255, 2 / 255], [0.5, 1.5], [NAN, 1], [0, 300 / 255, 1 / 255])
    ],
    'check_target: options': [
        lambda: check_target(MAP, labels(0, 1, 2), ignore_index=1),
        lambda: check_target(MAP, labels(0, 1, 2), weight=torch.ones(4)),
        lambda: check_target(MAP, labels(0, 1, 2), weight=torch.ones(19)),
        lambda: check_target(MAP, LABEL.unsqueeze(1) + 7, weight=torch.ones(4)),
        lambda: check_target(MAP[:, :1], LABEL),
        lambda: check_target(MAP, LABEL, kind='x'),
        lambda: check_target(MAP, labels(0, 1, 255), ignore_index=255, loss=sums_of_all),
        lambda: check_target(MAP[:, 0], labels(0, 255).float(), ignore_index=255, kind='multilabel'),
        lambda: check_target(MAP, labels(0, 1, 2, 3, 0), ignore_index=3),
        lambda: check_target(MAP, LABEL, kind='probabilities'),
        lambda: check_target(torch.zeros(1, 3), torch.tensor([[0.0, 1, 255]]), kind='multilabel'),
    ],
    'cross_entropy: options': [
        lambda: cross_entropy(MAP, MAP.softmax(1), ignore_index=255),
        lambda: cross_entropy(MAP, LABEL, label_smoothing=1.5),
        lambda: cross_entropy(MAP, LABEL, reduction='avg'),
        lambda: cross_entropy(MAP, LABEL, on_invalid='skip'),
        lambda: cross_entropy(MAP, LABEL, ignore_index=255.0),
        lambda: cross_entropy(MAP, labels(0, 7, 7, 9, 0), on_invalid='raise'),
        lambda: cross_entropy(torch.zeros(1, 9), torch.full((1, 9), 0.5), on_invalid='raise'),
        lambda: cross_entropy(torch.zeros(1, 8), torch.full((1, 8), 0.5), on_invalid='raise'),
    ],
    'binary_cross_entropy_with_logits: options': [
        lambda: binary_cross_entropy_with_logits(MAP, MAP, pos_weight=torch.ones(3)),
        lambda: binary_cross_entropy_with_logits(ROWS, ROWS + 3, on_invalid='raise'),
    ],
    'weight of each element': [
        *[
            lambda loss=loss, shape=shape: loss(MAP, LABEL, torch.ones(shape))
            for loss in (softmax_cross_entropy, sigmoid_cross_entropy)
            for shape in [(2,), (2, 4), (2, 3, 4, 5), (2, 5, 4), (3, 4, 5)]
        ],
        *[
            lambda shape=shape: sigmoid_cross_entropy(MAP, torch.ones_like(MAP), torch.ones(shape))
            for shape in [(4,), (2, 4), (2, 3, 5, 4)]
        ],
    ],
    'class_weight': [
        lambda loss=loss, label=label, shape=shape: loss(MAP, label, class_weight=torch.ones(shape))
        for loss, label in (
            (softmax_cross_entropy, LABEL),
            (sigmoid_cross_entropy, LABEL),
            (sigmoid_cross_entropy, torch.zeros_like(MAP)),
        )
        for shape in [(2,), (4,), (3, 1), (5,)]
    ],
    'losses of the heads: options': [
        lambda: softmax_cross_entropy(MAP.long(), LABEL),
        lambda: sigmoid_cross_entropy(MAP.long(), LABEL),
        lambda: softmax_cross_entropy(MAP, LABEL, reduction='sum', avg_factor=3),
        lambda: softmax_cross_entropy(MAP, LABEL, reduction='x'),
        lambda: sigmoid_cross_entropy(MAP[:, :1], LABEL[:1]),
        lambda: mask_cross_entropy(torch.zeros(2, 3, 4, 4), torch.zeros(2, 4, 4), torch.zeros(2)),
    ],
}


def words_of(call: Callable[[], Any]) -> str:
    """What a call returns, warns of and raises, in one line."""
    said = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter('always')
        try:
            returned = call()
            said += [returned] if isinstance(returned, str) else []
        except (TypeError, ValueError, RuntimeError, IndexError) as error:
            said.append(f'{type(error).__name__}: {error}')
    return ' | '.join([*said, *(f'warned: {one.message}' for one in caught)]).replace('\n', ' ')


#: Arguments that PyTorch refuses, too.
MISUSES: List[Tuple[Any, Any, Dict[str, Any]]] = [
    *((F.cross_entropy, arguments, {}) for arguments in SHAPES),
    *(
        (F.cross_entropy, (MAP, LABEL), options)
        for options in (
            {'weight': torch.ones(4)},
            {'label_smoothing': 1.5},
            {'reduction': 'avg'},
            {'ignore_index': 255.0},
        )
    ),
    (F.cross_entropy, (MAP, MAP.softmax(1)), {'ignore_index': 255}),
    *(
        (F.binary_cross_entropy_with_logits, arguments, {})
        for arguments in ((ROWS, ROWS[:, 0].long()), (MAP, LABEL), (ROWS[:, :1], ROWS[:, 0]), (MAP, MAP[:1]))
    ),
]
OURS = {F.cross_entropy: cross_entropy, F.binary_cross_entropy_with_logits: binary_cross_entropy_with_logits}


@pytest.mark.parametrize(('stock', 'arguments', 'options'), MISUSES)
def test_a_misuse_has_pytorchs_kind_of_exception(stock: Any, arguments: Any, options: Dict[str, Any]) -> None:
    with pytest.raises(Exception) as theirs:
        stock(*arguments, **options)
    # NotImplementedError is a RuntimeError.
    with pytest.raises(RuntimeError if issubclass(theirs.type, RuntimeError) else theirs.type) as ours:
        OURS[stock](*arguments, **options)
    assert isinstance(ours.value, (TypeError, ValueError))


@pytest.mark.parametrize('name', CALLS)
def test_messages(name: str, snapshot: Any) -> None:
    """A line for each call."""
    snapshot('functional', name, '\n'.join(words_of(call) or 'no message' for call in CALLS[name]))
