"""What importing mmguard adds to importing torch, mmengine and mmcv."""

from __future__ import annotations

import statistics
import subprocess
import sys
from typing import List

from benchmarks.timing import Row

CODE = """
import time, torch, mmengine.runner, mmcv.transforms
start = time.perf_counter()
import mmguard
print(1e3 * (time.perf_counter() - start))
"""


def rows(device: str, rounds: int) -> List[Row]:
    command = [sys.executable, '-W', 'ignore', '-c', CODE]
    times = [float(subprocess.run(command, capture_output=True, text=True, check=True).stdout) for _ in range(5)]
    return [Row('import mmguard, after torch, mmengine and mmcv', statistics.median(times), None, 300)]
