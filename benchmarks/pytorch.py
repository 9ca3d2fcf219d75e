"""``mmguard.functional.cross_entropy``, compared with ``F.cross_entropy``: forward + backward, plain PyTorch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict
from typing import Any, Callable, Dict, List, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks.timing import Row, interleaved, peak_memory
from mmguard.functional import cross_entropy
from mmguard.nn import CrossEntropyLoss

IGNORED = 255

#: Name -> shape of the logits, and a factor for the number of rounds, larger for faster shapes.
SHAPES: Dict[str, Tuple[Tuple[int, ...], int]] = {
    '4,096 x 1,000': ((4096, 1000), 10),
    '16 x 64 x 2,048': ((16, 64, 2048), 20),
    '2 x 19 x 512 x 512': ((2, 19, 512, 512), 3),
    '2 x 4 x 64 x 96 x 96': ((2, 4, 64, 96, 96), 6),
}


#: The process keeps freed memory. By default it is returned to the system at random, and a call takes 8 or 13 ms:
#: most of this time would be the system's clearing of pages, for both sides.
KEEPS_MEMORY = {'MALLOC_TRIM_THRESHOLD_': str(1 << 30), 'MALLOC_MMAP_THRESHOLD_': str(1 << 30)}


def rows(device: str, rounds: int) -> List[Row]:
    """Measure in a new process, because its allocator is configured at the start."""
    command = [sys.executable, '-m', 'benchmarks.pytorch', device, str(rounds)]
    printed = subprocess.run(command, env={**os.environ, **KEEPS_MEMORY}, stdout=subprocess.PIPE, check=True).stdout
    return [Row(**row) for row in json.loads(printed)]


def _measure(device: str, rounds: int) -> List[Row]:
    torch.manual_seed(0)
    table = []
    for name, (shape, repeats) in SHAPES.items():
        table += _of_shape(name, shape, device, rounds * repeats)
    return table


def _of_shape(name: str, shape: Tuple[int, ...], device: str, rounds: int) -> List[Row]:
    logits = torch.randn(shape, device=device, requires_grad=True)
    target = torch.randint(0, shape[1], (shape[0], *shape[2:]), device=device)
    target.masked_fill_(torch.rand(target.shape, device=device) < 0.1, IGNORED + shape[1])
    weight = torch.rand(shape[1], device=device) + 0.5

    def step(loss: Callable[..., Tensor], *args: Any, **options: Any) -> Callable[[], None]:
        def run() -> None:
            loss(logits, *args, **options).backward()
            logits.grad = None

        return run

    modes: Dict[str, Dict[str, Any]] = {
        '': {},
        ', weight': {'weight': weight},
        ', label_smoothing': {'label_smoothing': 0.1},
    }
    # The same call a second time in each round: its ratio to the first shows the precision of the other ratios.
    calls = {'again': step(F.cross_entropy, target, ignore_index=IGNORED + shape[1])}
    for mode, options in modes.items():
        options = {**options, 'ignore_index': IGNORED + shape[1]}
        calls[f'ours{mode}'] = step(cross_entropy, target, **options)
        calls[f'torch{mode}'] = step(F.cross_entropy, target, **options)
    calls['module'] = step(CrossEntropyLoss(ignore_index=IGNORED + shape[1]), target)
    where = torch.rand(target.shape, device=device) < 0.1
    calls['invalid'] = step(cross_entropy, target.masked_fill(where, shape[1]), ignore_index=IGNORED + shape[1])
    # PyTorch with the same elements ignored: it branches at each ignored label.
    ignored = target.masked_fill(where, IGNORED + shape[1])
    calls['ignored'] = step(F.cross_entropy, ignored, ignore_index=IGNORED + shape[1])
    ms = interleaved(calls, rounds, device)
    mib = {side: peak_memory(calls[side], device) for side in ('ours', 'torch')}
    bar = 1.10 if len(shape) > 3 else None  # none for calls of 1 or 2 ms, where Python's overhead counts
    return [
        *(Row(f'plain, {name}{mode} / F.cross_entropy', ms[f'ours{mode}'], ms[f'torch{mode}'], bar) for mode in modes),
        Row(f'plain, {name}, one label in ten invalid / F.cross_entropy, ignored', ms['invalid'], ms['ignored'], bar),
        Row(f'nn.CrossEntropyLoss, counting, {name} / F.cross_entropy', ms['module'], ms['torch'], bar),
        Row(f'F.cross_entropy, {name} / itself', ms['again'], ms['torch'], None),
        Row(f'plain, {name}, peak memory / F.cross_entropy', mib['ours'], mib['torch'], 1.10, 'MiB'),
    ]


if __name__ == '__main__':
    print(json.dumps([asdict(row) for row in _measure(sys.argv[1], int(sys.argv[2]))]))
