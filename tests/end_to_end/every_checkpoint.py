"""Guarded and stock checkpoints and losses after training on valid labels, equal bit for bit: ``make checkpoints``."""

from __future__ import annotations

import copy
import warnings
from pathlib import Path
from typing import Any, Dict, List, Tuple

import mmdet.models  # noqa: F401
import mmseg.models  # noqa: F401
import numpy as np
import pytest
import torch
from architectures import ALL, CONFIG_FOLDERS, Architecture, small_config
from every_architecture import NOT_TRAINED
from guarded_twice import named_apart, two_lines
from mmengine.config import Config
from mmengine.registry import init_default_scope
from PIL import Image
from small_runs import Run

from mmguard import guard_config

ITERATIONS = 5
#: What ``scalars.json`` holds of a run that differs between any two of them.
MEASURED = ('time', 'data_time', 'memory')
CASES = [
    (architecture, ignored)
    for architecture in ALL
    for ignored in ((False, True) if architecture.scope == 'mmseg' else (False,))
]


def make_valid(config: Config, ignored: bool) -> None:
    """Leave only valid labels in the data of a small config, with ``ignored`` also those that its losses ignore."""
    dataset = config.train_dataloader.dataset
    dataset.pipeline = [step for step in dataset.pipeline if step['type'] != 'PlantLabels']
    first = int(bool(dataset.get('reduce_zero_label')))
    for path in Path(dataset.data_root, 'ann').glob('*.png'):
        values = np.array(Image.open(path))
        invalid = values >= len(dataset.metainfo['classes']) + first
        Image.fromarray(np.where(invalid & ~(ignored & (values == 255)), first, values)).save(path)


def train(config: Config, folder: Path) -> Tuple[Dict[str, torch.Tensor], List[Dict[str, Any]]]:
    """Return the weights at the end, and what was logged of every iteration."""
    run = Run(named_apart(config, folder)).train()
    logged = [{key: value for key, value in line.items() if key not in MEASURED} for line in run.scalars]
    return run.runner.model.state_dict(), logged


def difference(one: Tuple[Any, Any], two: Tuple[Any, Any]) -> List[str]:
    """Name the tensors, and the logged values of stock, that are not equal bit for bit; NaN equals NaN."""
    (weights, logged), (other_weights, other_logged) = one, two
    names = [
        name
        for name in sorted({*weights, *other_weights})
        if name not in weights
        or name not in other_weights
        or not torch.equal(weights[name].nan_to_num(7), other_weights[name].nan_to_num(7))
    ]
    assert len(logged) == len(other_logged) >= ITERATIONS
    for line, other in zip(logged, other_logged):
        names += [f'{key} at step {line["step"]}' for key in line if repr(line[key]) != repr(other.get(key))]
    return names


@pytest.mark.timeout(1800)
@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize(('architecture', 'ignored'), CASES, ids=str)
def test_same_checkpoint(
    architecture: Architecture, ignored: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = next((reason for part, (_, reason) in NOT_TRAINED.items() if str(architecture).startswith(part)), None)
    if listed is not None:
        pytest.skip(listed)
    init_default_scope(architecture.scope)
    monkeypatch.chdir(CONFIG_FOLDERS[architecture.scope].parent)  # distillation names the config of its teacher
    config, _ = small_config(architecture, str(tmp_path / 'data'), str(tmp_path / 'work'))
    config.train_cfg.max_iters = ITERATIONS
    make_valid(config, ignored)
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        try:
            stock = train(copy.deepcopy(config), tmp_path / 'stock')
        except (IndexError, RuntimeError) as error:
            assert ignored, 'stock fails on valid labels'
            pytest.skip(f'stock does not survive its own ignored label: {str(error)[:60]}')
        differing = difference(stock, train(two_lines(config), tmp_path / 'two'))
        differing += difference(stock, train(guard_config(config), tmp_path / 'written'))
        if differing and difference(stock, train(copy.deepcopy(config), tmp_path / 'again')):
            pytest.skip('two stock runs differ')
        assert differing == []
