"""One whole training step on clean labels: the guarded config is mmdet's own, loss by loss, gradient by gradient."""

from __future__ import annotations

from pathlib import Path
from typing import Callable

import pytest
import torch
from small_det_runs import MAKERS, build, one_step, small_config

TOLERANCE = 1e-5
FAMILIES = ('retinanet', 'faster_rcnn', 'mask_rcnn')


@pytest.mark.slow
@pytest.mark.parametrize('family', FAMILIES)
def test_losses_and_gradients_are_those_of_the_stock_config(
    family: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    root = MAKERS[family](str(tmp_path / 'data'), faults=())
    stock, stock_data = build(small_config(family, root, str(tmp_path), stock=True))
    guarded, guarded_data = build(small_config(family, root, str(tmp_path)))
    guarded.load_state_dict(stock.state_dict())
    batch = range(4)
    theirs = one_step(stock, [stock_data[number] for number in batch])
    ours = one_step(guarded, [guarded_data[number] for number in batch])
    assert all(torch.isfinite(value).all() for part in theirs for value in part.values())
    # The step trains: all losses, and all parameters outside of the frozen stages.
    assert all(value > 0 for name, value in theirs.losses.items() if 'loss_cls' in name)
    assert theirs.gradients.keys() == {name for name, p in stock.named_parameters() if p.requires_grad}
    distance = ours.distance(theirs)
    record_property('distance', distance)
    print(f'{family}: largest relative distance {distance:.1e}')
    assert distance <= TOLERANCE


@pytest.mark.slow
@pytest.mark.parametrize('family', FAMILIES)
def test_the_comparison_sees_another_batch_and_another_random_state(family: str, tmp_path: Path) -> None:
    """What the test above would say of steps that are not the same."""
    root = MAKERS[family](str(tmp_path / 'data'), faults=())
    model, data = build(small_config(family, root, str(tmp_path), stock=True))
    samples = [data[number] for number in range(4)]
    step = one_step(model, samples)
    assert step.distance(one_step(model, samples)) == 0
    assert step.distance(one_step(model, samples[:3])) > 100 * TOLERANCE
    if family != 'retinanet':  # it samples nothing
        assert step.distance(one_step(model, samples, seed=1)) > 100 * TOLERANCE
