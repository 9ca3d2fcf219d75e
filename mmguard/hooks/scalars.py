"""Counts as scalars of the message hub, which loggers show."""

from __future__ import annotations

from typing import Any, Dict, List

import numpy as np
from mmengine.logging import HistoryBuffer

from mmguard.log.statistics import SCALARS

#: mmengine copies a scalar's whole history at every update; this many values are enough for any window.
HISTORY = 10_000


def write_scalars(runner: Any, mode: str, numbers: List[int]) -> Dict[str, int]:
    """Set what loggers show next; return tag -> number, without counters that were always 0."""
    scalars, tags = runner.message_hub.log_scalars, {}
    for name, number in zip(SCALARS, numbers):
        # LoggerHook drops the leading mode: without a second one, validation and training would be one curve.
        tag = f'guard/{name}' if mode == 'train' else f'guard/{mode}/{name}'
        key = f'{mode}/{tag}'
        if number or key in scalars:
            # An array of integers is printed without decimals. After a test, mmengine's JSON drops numpy integers.
            empty: Any = np.array([], dtype=object if mode == 'test' else np.int64)
            scalars.setdefault(key, HistoryBuffer(empty, max_length=HISTORY))
            runner.message_hub.update_scalar(key, number)
            tags[tag] = number
    return tags


def show_loss_counts_as_they_are(log_processor: Any) -> None:
    """Keep mmengine from averaging these two counts over a window, as it does for scalars with 'loss' in the name."""
    for name in ('guard/loss_skipped', 'guard/loss_remapped'):
        if all(entry['data_src'] != name for entry in log_processor.custom_cfg):
            log_processor.custom_cfg.append(dict(data_src=name, method_name='current'))
