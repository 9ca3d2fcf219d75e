"""Running counts: of checkpointed calls, of each process, and by value."""

from __future__ import annotations

import copy
import os
import pickle
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any, List, Tuple

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from warm import run

from mmguard import Tally
from mmguard.nn import BCEWithLogitsLoss, CrossEntropyLoss

REENTRANT = pytest.mark.parametrize('use_reentrant', [False, True])


class Head(nn.Module):
    """Scores and loss in one, and a step behind the loss that needs a tensor of its own in the backward pass."""

    def __init__(self, criterion: nn.Module) -> None:
        super().__init__()
        self.layer = nn.Linear(5, 3)
        self.criterion = criterion

    def forward(self, features: Tensor, target: Tensor) -> Tensor:
        loss = self.criterion(self.layer(features).sin(), target)
        return (loss * features.mean()).exp()


@REENTRANT
def test_class_indices_are_counted_once(use_reentrant: bool) -> None:
    head = Head(CrossEntropyLoss())
    for step in (1, 2):
        features, target = torch.randn(4, 5, requires_grad=True), torch.tensor([0, 7, 2, -1])
        checkpoint(head, features, target, use_reentrant=use_reentrant).backward()
        assert head.criterion.counts.tolist() == [4 * step, 2 * step, 0]


class Labelled(torch.Tensor):
    """As libraries subclass tensors: it refuses to be added to a plain one."""

    @classmethod
    def __torch_function__(cls, func: object, types: object, args: tuple = (), kwargs: object = None) -> object:
        kinds = {type(arg) for arg in args if isinstance(arg, torch.Tensor)}
        if func in (torch.Tensor.add, torch.Tensor.__add__, torch.add) and len(kinds) > 1:
            return NotImplemented
        return super().__torch_function__(func, types, args, kwargs or {})


@pytest.mark.parametrize('made', [CrossEntropyLoss, BCEWithLogitsLoss])
def test_labels_of_a_subclass(made: type) -> None:
    criterion = made()
    scores, label = torch.randn(4, 3), torch.tensor([0, 9, 1, 2])
    if made is BCEWithLogitsLoss:
        label = torch.tensor([[0.0, 9.0, 1.0]]).expand(4, 3)
    for kind in (Labelled, torch.Tensor, Labelled):
        criterion(scores.as_subclass(kind).requires_grad_(), label.as_subclass(kind))
        assert type(criterion.counts) is torch.Tensor
    twin = copy.deepcopy(criterion)
    for counted in (criterion, twin):
        assert counted.tally().skipped == (3 if made is CrossEntropyLoss else 12)


PROGRAM = """
import os, sys, torch, mmguard.nn
criterion = mmguard.nn.CrossEntropyLoss()
gone = mmguard.nn.CrossEntropyLoss()
scores, label = torch.zeros(4, 3, requires_grad=True), torch.tensor([0, 9, 1, 2])
criterion(scores, label), gone(scores, label)
del gone
child = os.fork()
if not child:
    print('child', flush=True)
    criterion(scores, label)
    if sys.argv[1] == 'own':
        mmguard.nn.CrossEntropyLoss()(scores, label)
    if sys.argv[1] == 'drop':
        del criterion
    sys.exit()
os.waitpid(child, 0)
print('parent', flush=True)
"""


def said(what: str) -> List[str]:
    """Return the lines of the child, then those of its parent."""
    run = subprocess.run(
        [sys.executable, '-c', PROGRAM, what], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True
    )
    return [part.strip() for part in run.stdout.split('child')[1].split('parent')]


@pytest.mark.skipif(not hasattr(os, 'fork'), reason='needs fork')
@pytest.mark.parametrize(('what', 'of_child'), [('nothing', []), ('drop', []), ('own', [('1', '4')])])
def test_a_forked_process_reports_its_own_losses_alone(what: str, of_child: List[Tuple[str, str]]) -> None:
    child, parent = (re.findall(r'(\d+) of (\d+)', text) for text in said(what))
    assert (child, parent) == (of_child, [('2', '8')])


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
import copy, torch
from mmguard.nn import BCEWithLogitsLoss, CrossEntropyLoss
logits, target = torch.zeros(5, 3, requires_grad=True), torch.tensor([0, 11, 255, 11, -1])
"""


def at_the_end_of(code: str) -> str:
    ended = run(CODE + code)
    assert ended.returncode == 0
    return ended.output


@pytest.mark.parametrize('name', ENDS)
def test_the_process_ends_with_a_line(name: str, snapshot: Any) -> None:
    snapshot('log', f'test_loss_counts::test_the_process_ends_with_a_line {name}', at_the_end_of(ENDS[name]))


@pytest.mark.parametrize(
    'code',
    [
        'CrossEntropyLoss(ignore_index=255)(logits, target % 3)',
        'loss = CrossEntropyLoss()\nloss(logits, target)\nloss.reset_tally()',
    ],
)
def test_a_process_without_counts_ends_without_a_line(code: str) -> None:
    assert at_the_end_of(code) == ''


COPIES = {
    'the best model so far, every epoch': """
for _ in range(10):
    model.criterion(logits, target)
    best = copy.deepcopy(model)
""",
    'an average of models': """
from torch.optim.swa_utils import AveragedModel
averaged = [AveragedModel(model)]
for _ in range(10):
    model.criterion(logits, target)
    averaged.append(AveragedModel(model))
    averaged[-1].update_parameters(model)
""",
    'a copy that trains on': """
for _ in range(4):
    model.criterion(logits, target)
model = copy.deepcopy(model)
for _ in range(6):
    model.criterion(logits, target)
""",
    'replicas of DataParallel': """
for _ in range(5):
    for replica in [model.criterion._replicate_for_data_parallel() for _ in range(2)]:
        replica(logits, target)
assert model.criterion.tally().skipped == 30, model.criterion.tally()
""",
}
OF_TEN_CALLS = [('30', '50')]


@pytest.mark.parametrize('name', COPIES)
def test_labels_are_reported_once_however_often_a_model_is_copied(name: str) -> None:
    model = 'model = torch.nn.Module()\nmodel.criterion = CrossEntropyLoss(ignore_index=255)\n'
    assert re.findall(r'(\d+) of (\d+)', at_the_end_of(model + COPIES[name])) == OF_TEN_CALLS


def test_a_spawned_process_does_not_report_what_its_parent_counted(tmp_path: Path) -> None:
    file = tmp_path / 'program.py'
    text = """
import torch
import torch.multiprocessing as processes
from mmguard.nn import CrossEntropyLoss

def evaluate(model, trains):
    if trains:
        model.criterion(torch.zeros(5, 3, requires_grad=True), torch.tensor([0, 11, 1, 2, 1]))

if __name__ == '__main__':
    model = torch.nn.Module()
    model.criterion = CrossEntropyLoss()
    model.criterion(torch.zeros(5, 3, requires_grad=True), torch.tensor([0, 11, 1, 11, -1]))
    for trains in (False, True):
        child = processes.get_context('spawn').Process(target=evaluate, args=(model, trains))
        child.start()
        child.join()
"""
    file.write_text(text)
    ended = subprocess.run(
        [sys.executable, str(file)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True
    )
    assert re.findall(r'(\d+) of (\d+)', ended.stdout) == [('1', '5'), ('3', '5')]
