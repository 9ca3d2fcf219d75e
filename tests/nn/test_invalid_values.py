"""Plain PyTorch: which invalid values there were, in ``tally()`` and at the end of the process."""

from __future__ import annotations

import copy
import pickle
from collections import Counter
from typing import Any, List

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from this_torch import skip_where_torch_fails
from warm import run

from mmguard import Tally
from mmguard.nn import CrossEntropyLoss

CLASSES = 3
VALUES = st.integers(-2, 4) | st.sampled_from([11, 255, -100, -256, -257, 1023, 1024, 65535, 2**40, -(2**62)])


@settings(max_examples=150, derandomize=True, deadline=None)
@given(
    st.lists(st.lists(VALUES, min_size=0, max_size=12), min_size=1, max_size=3),
    st.sampled_from([-100, 255, 0, 2, 5000]),
    st.sampled_from(['ignore', 'clip']),
)
def test_values_are_those_counted_by_hand(calls: List[List[int]], ignore_index: int, on_invalid: str) -> None:
    criterion = CrossEntropyLoss(ignore_index=ignore_index, on_invalid=on_invalid)
    for labels in calls:
        criterion(torch.randn(len(labels), CLASSES), torch.tensor(labels, dtype=torch.int64))
    found = Counter(v for labels in calls for v in labels if not 0 <= v < CLASSES and v != ignore_index)
    named = {value: count for value, count in found.items() if -256 <= value <= 1023}
    tally = criterion.tally()
    assert tally.values == named
    assert tally.other_values == sum(found.values()) - sum(named.values())
    assert tally.skipped + tally.remapped == sum(found.values())


def test_a_wide_map_keeps_the_most_frequent() -> None:
    """A depth map taken for labels."""
    target = torch.arange(2000).repeat(2)
    target[:500] = 700
    criterion = CrossEntropyLoss()
    criterion(torch.randn(4000, CLASSES), target)
    tally = criterion.tally()
    assert len(tally.values) == 32
    assert tally.values[700] == 502
    assert sum(tally.values.values()) + tally.other_values == tally.skipped


@pytest.mark.parametrize('dtype', [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64])
def test_any_integer_dtype(dtype: torch.dtype) -> None:
    criterion = CrossEntropyLoss()
    criterion(torch.randn(1, CLASSES, 2, 2), torch.tensor([[[0, 11], [127, 2]]], dtype=dtype))
    assert criterion.tally().values == {11: 1, 127: 1}


def test_copies_keep_what_was_counted_and_a_state_dict_does_not() -> None:
    criterion = CrossEntropyLoss()
    criterion(torch.randn(4, CLASSES), torch.tensor([0, 11, 11, 2]))
    for twin in (copy.deepcopy(criterion), pickle.loads(pickle.dumps(criterion))):
        twin(torch.randn(4, CLASSES), torch.tensor([0, 11, -1, 2]))
        assert twin.tally().values == {-1: 1, 11: 3}
    assert criterion.tally().values == {11: 2}
    assert criterion.state_dict() == {}


def test_probabilities_and_class_indices_in_turn() -> None:
    criterion = CrossEntropyLoss()
    criterion(torch.randn(2, CLASSES), torch.tensor([[1.0, 1, 1], [1, 0, 0]]))
    criterion(torch.randn(2, CLASSES), torch.tensor([7, 1]))
    assert criterion.tally() == Tally(total=4, skipped=2, values={7: 1}, other_values=1)


def test_compiled_as_eager() -> None:
    def call(loss: torch.nn.Module, target: torch.Tensor) -> None:
        step = torch.compile(loss, fullgraph=True, backend='aot_eager')
        for _ in range(3):
            step(torch.randn(4, CLASSES, requires_grad=True), target).backward()

    skip_where_torch_fails(lambda: call(torch.nn.CrossEntropyLoss(), torch.tensor([0, 1, 1, 2])))
    criterion = CrossEntropyLoss()
    call(criterion, torch.tensor([0, 11, -1, 2]))
    assert criterion.tally() == Tally(total=12, skipped=6, values={-1: 3, 11: 3})


ENDS = {
    'in a function, gone before the end': """
def main():
    criterion = CrossEntropyLoss(ignore_index=255)
    for _ in range(2):
        criterion(logits, target)
main()
""",
    'alive, and one that is gone': """
criterion = CrossEntropyLoss(ignore_index=255)
criterion(logits, target)
CrossEntropyLoss(ignore_index=255)(logits, target)
""",
    'multilabel': 'BCEWithLogitsLoss()(logits, logits.detach() + 7)',
    'clip': 'CrossEntropyLoss(on_invalid="clip")(logits, target)',
}
CODE = """
import torch
from mmguard.nn import BCEWithLogitsLoss, CrossEntropyLoss
logits, target = torch.zeros(5, 3, requires_grad=True), torch.tensor([0, 11, 255, 11, -1])
"""


def at_the_end_of(code: str) -> str:
    ended = run(CODE + code)
    assert ended.returncode == 0
    return ended.output


@pytest.mark.parametrize('name', ENDS)
def test_the_process_ends_with_a_line(name: str, snapshot: Any) -> None:
    snapshot('log', f'test_invalid_values::test_the_process_ends_with_a_line {name}', at_the_end_of(ENDS[name]))


@pytest.mark.parametrize(
    'code',
    [
        'CrossEntropyLoss(ignore_index=255)(logits, target % 3)',
        'loss = CrossEntropyLoss()\nloss(logits, target)\nloss.reset_tally()',
    ],
)
def test_a_process_without_counts_ends_without_a_line(code: str) -> None:
    assert at_the_end_of(code) == ''
