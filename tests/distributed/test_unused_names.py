"""Parameters that DistributedDataParallel numbers get their names."""

from __future__ import annotations

from torch import nn

from mmguard.distributed.unused import with_names
from mmguard.findings.unused import unused_in

SAID = 'Expected to have finished reduction\nParameter indices which did not receive grad for rank 1: 2 3'


def model() -> nn.Module:
    made = nn.ModuleDict({'frozen': nn.Linear(2, 2), 'backbone': nn.Linear(2, 2), 'mask_head': nn.Linear(2, 1)})
    made['frozen'].requires_grad_(False)
    return made


def test_only_what_trains_is_numbered() -> None:
    for text in (SAID, f'{SAID} 99'):  # the model has no parameter 99
        assert unused_in([with_names(text, model())]).names == {1: ('mask_head.weight', 'mask_head.bias')}


def test_other_messages_and_those_with_names_stay() -> None:
    named = with_names(SAID, model())
    assert with_names(named, model()) == named
    assert with_names('Target 77 is out of bounds.', model()) == 'Target 77 is out of bounds.'
    assert with_names(SAID, None) == SAID


def test_a_hostile_list_of_numbers_is_short_in_words() -> None:
    (line,) = unused_in([f'{SAID} ' + ' '.join(map(str, range(5000)))]).words
    assert len(line) < 200
