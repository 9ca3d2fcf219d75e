"""Losses and parameters of one process, and the parameters in messages of DistributedDataParallel."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from mmguard.distributed import align_losses
from mmguard.distributed.agreement import (
    LossEntry,
    _find_reached,
    build_layout,
    compute_digest,
    find_missing,
    make_zero,
    merge_layouts,
)
from mmguard.facts.run import find_unused


@pytest.mark.parametrize('value', [3, None, [torch.ones(1), 2], 'loss'])
def test_what_is_no_loss_is_reported(value: Any) -> None:
    with pytest.raises(TypeError, match='loss_x'):
        align_losses({'loss_x': value}, nn.Linear(1, 1))


def test_the_zero_reaches_every_trainable_parameter_whatever_it_holds() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2).requires_grad_(False), nn.Linear(2, 1))
    with torch.no_grad():
        model[0].weight.fill_(float('inf'))
        model[2].weight.fill_(float('nan'))
    zero = make_zero(model)
    assert zero.item() == 0
    zero.backward()
    for parameter in model.parameters():
        assert (parameter.grad is None) != parameter.requires_grad
        assert parameter.grad is None or (parameter.grad == 0).all()
    assert make_zero(nn.Linear(1, 1).requires_grad_(False)).item() == 0


def test_agreements_go_with_their_model() -> None:
    from mmguard.distributed.agreement import _AGREEMENTS

    before = len(_AGREEMENTS)
    model = nn.Linear(1, 1)
    align_losses({}, model)
    assert len(_AGREEMENTS) == before + 1
    del model
    assert len(_AGREEMENTS) == before


def test_layouts() -> None:
    graph = torch.ones((), requires_grad=True)
    layout = build_layout({'a': graph, 'b': [graph, graph], 'c': torch.ones(()), 'd': []})
    assert layout == {
        'a': LossEntry(False, True),
        'b': LossEntry(True, True),
        'c': LossEntry(False, False),
        'd': LossEntry(True, False),
    }
    others = [dict(reversed(list(layout.items()))), {}, {'a': LossEntry(False, False)}, {'a': LossEntry(False, True)}]
    assert len({compute_digest(other) for other in [layout, *others]}) == 5
    assert 0 <= compute_digest(layout) < 2**63
    assert merge_layouts(
        [{'a': LossEntry(False, False)}, {'a': LossEntry(False, True), 'b': LossEntry(True, False)}]
    ) == {
        'a': LossEntry(False, True),
        'b': LossEntry(True, False),
    }
    lists, tensors = {'a': LossEntry(True, True)}, {'a': LossEntry(False, True)}
    assert compute_digest(lists) == compute_digest(tensors), 'lists and tensors have the same gradients'
    assert (list(find_missing(layout, layout)), list(find_missing({}, layout))) == ([], ['a', 'b', 'c', 'd'])


def test_a_graph_that_checkpointing_hides_is_left_alone() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    x = torch.ones(1, 2, requires_grad=True)
    plain, hidden = model[1](x).sum(), checkpoint(model[0], x, use_reentrant=True).sum()
    assert _find_reached([plain]) == {id(x), *map(id, model[1].parameters())}
    assert _find_reached([plain, hidden]) is None


SAID = 'Expected to have finished reduction\nParameter indices which did not receive grad for rank 1: 2 3'


def test_a_hostile_list_of_numbers_is_short_in_words() -> None:
    (line,) = find_unused([f'{SAID} ' + ' '.join(map(str, range(5000)))]).lines
    assert len(line) < 200
