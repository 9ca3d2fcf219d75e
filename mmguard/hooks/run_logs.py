"""The log of a run, which its hooks write together."""

from __future__ import annotations

from typing import Any, Dict, Optional
from weakref import WeakKeyDictionary

from mmengine import dist

from mmguard.log.json_lines import MAX_MB, NAME
from mmguard.log.run_log import RunLog
from mmguard.text.visible import visible

_LOGS: WeakKeyDictionary[Any, RunLog] = WeakKeyDictionary()


def run_log_of(runner: Any, out_file: Optional[str] = NAME, max_mb: float = MAX_MB) -> RunLog:
    """The log of a run; who asks first says how its file is called and how large it may grow."""
    if runner not in _LOGS:
        _LOGS[runner] = RunLog(
            runner.log_dir,
            dist.get_rank(),
            dist.get_world_size(),
            config=runner.cfg.filename,
            out_file=out_file,
            max_mb=max_mb,
        )
    return _LOGS[runner]


def warn_of_problems(runner: Any) -> None:
    """Says what of the log cannot be written; each file once."""
    for problem in _LOGS[runner].take_problems():
        runner.logger.warning(f'guard: {visible(problem)}')


def train_place(runner: Any, batch_idx: int) -> Dict[str, int]:
    """The numbers that the console shows: of the loop, or of the epoch where logs go by epoch."""
    loop = runner.train_loop
    if runner.log_processor.by_epoch:
        return {'iter': batch_idx + 1, 'epoch': loop.epoch + 1, 'step': loop.iter + 1}
    return {'iter': loop.iter + 1}
