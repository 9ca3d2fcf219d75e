"""A config trained with the two lines of ``LabelGuardHook(guard=True)``, and as ``mmguard apply`` writes it."""

from __future__ import annotations

import copy
import uuid
from pathlib import Path
from typing import Any, Dict, List, Tuple

from mmengine.config import Config
from small_runs import Run

from mmguard import guard_config


def named_apart(config: Config, work_dir: Path) -> Config:
    config.work_dir = str(work_dir)
    config.experiment_name = uuid.uuid4().hex
    if config.visualizer is not None:
        config.visualizer.name = config.experiment_name
    return config


def two_lines(config: Config) -> Config:
    """A copy with the lines that README recommends."""
    two = copy.deepcopy(config)
    two.custom_hooks = [*two.get('custom_hooks', []), dict(type='LabelGuardHook', guard=True)]
    return two


def both_trained(config: Config, folder: Path) -> Tuple[Run, Run]:
    """With the two lines, and as ``guard_config`` writes it."""
    two = named_apart(two_lines(config), folder / 'two')
    return Run(two).train(), Run(named_apart(guard_config(config), folder / 'written')).train()


def losses_of(run: Run) -> List[float]:
    return [line['loss'] for line in run.scalars if 'loss' in line]


def counts_of(run: Run, mode: str = 'train') -> List[Dict[str, Any]]:
    return [{key: value for key, value in line.items() if key != 'losses'} for line in run.lines(mode)]
