"""Time that importing mmguard adds: ``mmguard.nn`` after torch and numpy, ``mmguard`` after mmengine and mmcv."""

from __future__ import annotations

import statistics
import subprocess
import sys
from typing import List

from benchmarks.timing import Row

CODE = """
import time, {before}
start = time.perf_counter()
import {module}
print(1e3 * (time.perf_counter() - start))
"""


def rows(device: str, rounds: int) -> List[Row]:
    return [
        Row('import mmguard.nn, after torch and numpy', _measure('mmguard.nn', 'torch, numpy', rounds), None, 100),
        Row(
            'import mmguard, after torch, mmengine and mmcv',
            _measure('mmguard', 'torch, mmengine.runner, mmcv.transforms', rounds),
            None,
            300,
        ),
    ]


def _measure(module: str, before: str, rounds: int) -> float:
    """Return the milliseconds of an import, the median over new processes."""
    command = [sys.executable, '-W', 'ignore', '-c', CODE.format(module=module, before=before)]
    runs = (subprocess.run(command, capture_output=True, text=True, check=True) for _ in range(min(rounds, 7)))
    return statistics.median(float(run.stdout) for run in runs)
