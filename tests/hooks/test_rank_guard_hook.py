from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from mmguard import RankGuardHook
from mmguard.hooks.rank_guard_hook import nonfinite_gradients


@pytest.mark.parametrize(
    ('name', 'value', 'error'),
    [
        ('on_mismatch', 'pad', ValueError),
        ('on_nonfinite', 'drop', ValueError),
        ('check_interval', 0, ValueError),
        ('timeout', 0, ValueError),
        ('max_skipped', -1, ValueError),
        ('max_skipped', '3', TypeError),
    ],
)
def test_wrong_arguments_are_named(name: str, value: Any, error: type) -> None:
    with pytest.raises(error, match=name):
        RankGuardHook(**{name: value})


def test_gradients_nearest_to_the_loss_come_first() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2), nn.Linear(2, 1))
    assert nonfinite_gradients(model) == []
    for number, parameter in enumerate(model.parameters()):
        parameter.grad = torch.full_like(parameter, float('nan') if number in (0, 3) else 1.0)
    assert nonfinite_gradients(model) == ['1.bias', '0.weight']
    assert nonfinite_gradients(model, ['2.bias', '0.weight']) == ['0.weight', '1.bias']
