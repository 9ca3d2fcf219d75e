"""Names in messages of DistributedDataParallel."""

from __future__ import annotations

import pytest
from torch import nn

pytest.importorskip('mmengine')

from mmguard.facts.run import find_unused
from mmguard.hooks.flight_recorder_hook import add_names

SAID = 'Expected to have finished reduction\nParameter indices which did not receive grad for rank 1: 2 3'


def model() -> nn.Module:
    made = nn.ModuleDict({'frozen': nn.Linear(2, 2), 'backbone': nn.Linear(2, 2), 'mask_head': nn.Linear(2, 1)})
    made['frozen'].requires_grad_(False)
    return made


def test_only_what_trains_is_numbered() -> None:
    for text in (SAID, f'{SAID} 99'):  # the model has no parameter 99
        assert find_unused([add_names(text, model())]).names == {1: ('mask_head.weight', 'mask_head.bias')}


def test_other_messages_and_those_with_names_stay() -> None:
    named = add_names(SAID, model())
    assert add_names(named, model()) == named
    assert add_names('Target 77 is out of bounds.', model()) == 'Target 77 is out of bounds.'
    assert add_names(SAID, None) == SAID
