"""Time and memory in which `mmguard explain` reads a log of 200 MB, in a new process."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Dict, List, Tuple

from benchmarks.timing import Row

SIZE = 200_000_000
ITERATION = (
    '2026/01/01 12:00:00 - mmengine - INFO - Iter(train) [{:6d}/160000]  lr: 9.9e-03  eta: 1 day, 3:22:11  time: 0.63  '
    'data_time: 0.01  memory: 9012  loss: 1.2345  decode.loss_ce: 0.9876  decode.acc_seg: 77.1\n'
)
ASSERT = (
    '../aten/src/ATen/native/cuda/Loss.cu:250: nll_loss_forward_reduce_cuda_kernel_2d: block: [{},0,0], thread: [3,0,0]'
    ' Assertion `t >= 0 && t < n_classes` failed.\n'
)
RAISED = """Traceback (most recent call last):
  File "train.py", line 12, in main
    loss = criterion(x, y)
RuntimeError: CUDA error: device-side assert triggered
"""
#: Reads a log as the command does; prints seconds, peak memory of the process in MiB, and the code that was found.
READ = r"""
import json, re, sys, time
from mmguard.commands.explain.explanation import explain
from mmguard.commands.explain.reader import Reader, read_pieces

start = time.perf_counter()
found = explain(Reader().read(read_pieces(sys.argv[1])))
seconds = time.perf_counter() - start
peak = int(re.search(r"VmHWM:\s+(\d+)", open("/proc/self/status").read()).group(1)) / 1024
print(json.dumps([seconds, peak, found.signature.code]))
"""


def rows(device: str, rounds: int) -> List[Row]:
    """Measure time and peak memory for a log of iterations, and for a log of a kernel's asserts."""
    table: List[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        for name, (line, code) in _kinds().items():
            path = Path(folder, f'{name}.log')
            _write(path, line)
            taken = [_read(path, code) for _ in range(min(rounds, 3))]
            seconds, peak = (statistics.median(values) for values in zip(*taken))
            table.append(Row(f'explain: 200 MB of {name}', seconds, None, 5.0, 's'))
            table.append(Row(f'explain: 200 MB of {name}, peak of the process', peak, None, 100.0, 'MiB'))
            path.unlink()
    return table


def _kinds() -> Dict[str, Tuple[str, str]]:
    return {'iterations': (ITERATION, 'MG401'), 'asserts': (ASSERT, 'MG402')}


def _write(path: Path, line: str) -> None:
    piece = ''.join(line.format(number) for number in range(10_000)).encode()
    with open(path, 'wb') as file:
        while file.tell() < SIZE:
            file.write(piece)
        file.write(RAISED.encode())


def _read(path: Path, code: str) -> Tuple[float, float]:
    done = subprocess.run([sys.executable, '-c', READ, str(path)], capture_output=True, text=True, check=True)
    seconds, peak, found = json.loads(done.stdout)
    assert found == code, found
    return seconds, peak
