"""Counts are plain tensors of the process that made the loss."""

from __future__ import annotations

import copy
import os
import re
import subprocess
import sys
from typing import List, Tuple

import pytest
import torch

from mmguard.nn import BCEWithLogitsLoss, CrossEntropyLoss


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


def test_another_object_around_the_same_attributes_takes_no_counts() -> None:
    """torch.export before 2.7 makes such a one and drops it."""
    criterion = CrossEntropyLoss()
    criterion(torch.zeros(2, 3, requires_grad=True), torch.tensor([0, 7]))
    around = object.__new__(type(criterion))
    around.__dict__ = criterion.__dict__
    del around
    assert criterion.tally().skipped == 1
