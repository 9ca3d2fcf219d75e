"""Class weights of a scan in a real training: the guarded loss averages by them, over the valid pixels only."""

from __future__ import annotations

from pathlib import Path
from typing import Any, List

import pytest
import torch
from small_runs import LOAD, NUM_CLASSES, PACK, add_loop, make_cityscapes, runner_of, tiny_config
from torch.nn.functional import cross_entropy

import mmguard

pytest.importorskip('mmseg')


@pytest.mark.slow
@pytest.mark.parametrize('formula', ['enet', 'median_frequency'])
def test_guarded_loss_averages_by_weights_of_the_scan(formula: str, tmp_path: Path) -> None:
    config = tiny_config(make_cityscapes(str(tmp_path / 'data')), str(tmp_path / 'run'), pipeline=[*LOAD, PACK])
    add_loop(config, 'val', [*LOAD, PACK])
    config.dump(str(tmp_path / 'config.py'))
    found = mmguard.scan(tmp_path / 'config.py', processes=1, verify=False)
    assert [bool(one['class_weight']) for one in found.record['datasets']] == [True, False]  # train, val
    weights = found.class_weight(formula)
    assert len(weights) == NUM_CLASSES

    config.model.decode_head.loss_decode = dict(type='GuardedCrossEntropyLoss', class_weight=weights)
    runner = runner_of(config)
    steps: List[Any] = []
    head: Any = runner.model.decode_head
    head.loss_decode.register_forward_hook(lambda _, inputs, loss: steps.append((*inputs, loss.item())))
    runner.train()
    assert len(steps) == 4
    for scores, labels, loss in steps:
        valid = torch.where(labels < NUM_CLASSES, labels, 255)
        expected = cross_entropy(scores, valid, torch.tensor(weights), ignore_index=255)
        assert loss == pytest.approx(expected.item(), rel=1e-5)
    assert any((labels >= NUM_CLASSES).logical_and(labels != 255).any() for _, labels, _ in steps)
