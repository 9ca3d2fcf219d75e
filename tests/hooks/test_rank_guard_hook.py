from __future__ import annotations

from typing import Any, Dict

import pytest
import torch
from mmengine.registry import HOOKS
from torch import nn

from mmguard import RankGuardHook
from mmguard.hooks.rank_guard_hook import nonfinite_gradients


def test_is_registered_under_its_name() -> None:
    hook = HOOKS.build(dict(type='RankGuardHook', on_mismatch='raise', on_nonfinite='skip', timeout=3, max_skipped=2))
    assert isinstance(hook, RankGuardHook)
    assert (hook.on_mismatch, hook.on_nonfinite, hook.timeout, hook.max_skipped) == ('raise', 'skip', 3, 2)


@pytest.mark.parametrize(
    ('arguments', 'error', 'message'),
    [
        (dict(on_mismatch='pad'), ValueError, "on_mismatch must be one of 'fill', 'raise', got 'pad'"),
        (dict(on_nonfinite='drop'), ValueError, "on_nonfinite must be one of 'keep', 'skip', 'raise', got 'drop'"),
        (dict(check_interval=0), ValueError, 'check_interval must be at least 1, got 0'),
        (dict(timeout=0), ValueError, 'timeout must be more than 0 seconds, got 0'),
        (dict(max_skipped=-1), ValueError, 'max_skipped must be at least 0, got -1'),
        (dict(max_skipped='3'), TypeError, 'max_skipped must be an int'),
    ],
)
def test_wrong_arguments_are_named(arguments: Dict[str, Any], error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        RankGuardHook(**arguments)


def test_gradients_nearest_to_the_loss_come_first() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2), nn.Linear(2, 1))
    assert nonfinite_gradients(model) == []
    for number, parameter in enumerate(model.parameters()):
        parameter.grad = torch.full_like(parameter, float('nan') if number in (0, 3) else 1.0)
    assert nonfinite_gradients(model) == ['1.bias', '0.weight']
    assert nonfinite_gradients(model, ['2.bias', '0.weight']) == ['0.weight', '1.bias']
