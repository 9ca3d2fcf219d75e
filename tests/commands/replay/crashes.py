"""Trainings that die, and what they leave: a config file and a flight record."""

from __future__ import annotations

import json
import os
import os.path as osp
from glob import glob
from typing import Any, Dict, Optional, Tuple

import pytest
from mmengine.config import Config
from small_runs import Run

from mmguard.cli import main


def crash(config: Config, work_dir: str, *more_hooks: Any, match: Optional[str] = None) -> Tuple[str, str]:
    """Trains until it dies; the paths of the config and of the record."""
    config.custom_hooks = [dict(type='FlightRecorderHook'), *more_hooks]
    path = osp.join(work_dir, 'config.py')
    os.makedirs(work_dir, exist_ok=True)
    config.dump(path)
    with pytest.raises(Exception, match=match):
        Run(config).train()
    (record,) = glob(osp.join(work_dir, '*', 'label_guard_flight.jsonl'))
    return path, record


def replayed(capsys: Any, *args: str) -> Tuple[int, Dict[str, Any], str]:
    """The exit code, the JSON, and what was shown, in one line."""
    capsys.readouterr()
    code = main(['replay', *args, '--json', '-'])
    captured = capsys.readouterr()
    shown = ' '.join(captured.err.split())
    assert captured.out, shown
    # A guarded loss logs to standard output where a Runner was used before, as here.
    return code, json.loads(captured.out[captured.out.index('{\n') :]), shown
