"""What agreeing on the losses costs: two gloo ranks of a small model, with and without it."""

from __future__ import annotations

import json
import os
import socket
import statistics
import subprocess
import sys
from typing import Dict, List

from benchmarks.timing import Row

#: Iterations between two looks at the clock: ranks run into each other's step as in a training.
BLOCK = 10

CHILD = f"""
import json, os, statistics, sys, time
import torch, torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from mmguard.distributed import align_losses
dist.init_process_group('gloo')
model = DistributedDataParallel(nn.Sequential(*[nn.Linear(64, 64) for _ in range(20)]))
x = torch.randn(8, 64)
side, message = dist.new_group(backend='gloo'), torch.zeros(8, dtype=torch.int64)

def board(losses):
    os.environ['MMGUARD_NO_BOARD'] = '0'  # is looked at in the first call
    return align_losses(losses, model)

def gloo(losses):
    os.environ['MMGUARD_NO_BOARD'] = '1'
    return align_losses(losses, model, timeout=1799.0)

def reduction(losses):
    dist.all_reduce(message, group=side)
    return losses

def iteration(agree):
    y = model(x)
    losses = agree({{f'loss_{{part}}': y[:, part].mean() for part in range(12)}})  # as many as a DINO of six layers has
    sum(losses.values()).backward()
    model.zero_grad()

calls = {{'plain': lambda losses: losses, 'board': board, 'gloo': gloo, 'reduction': reduction}}
times, names = {{name: [] for name in calls}}, list(calls)
for number in range(3 + int(sys.argv[1])):
    turn = number % len(names)
    for name in names[turn:] + names[:turn]:
        dist.barrier()
        start = time.perf_counter()
        for _ in range({BLOCK}):
            iteration(calls[name])
        if number >= 3:
            times[name].append(1e3 * (time.perf_counter() - start) / {BLOCK})
if dist.get_rank() == 0:
    print(json.dumps({{name: statistics.median(taken) for name, taken in times.items()}}))
del model  # before the group: torch's reducer may wait for ever otherwise
dist.destroy_process_group()
"""


def rows(device: str, rounds: int) -> List[Row]:
    """On the host whatever the device: the guard's messages go between hosts."""
    runs = [_run(4 * rounds) for _ in range(3)]
    taken = {name: statistics.median(run[name] for run in runs) for name in runs[0]}
    board, gloo, bare = (
        statistics.median(run[name] - run['plain'] for run in runs) for name in ('board', 'gloo', 'reduction')
    )
    return [
        Row('ranks in step, added to an iteration, 2 ranks of one machine, ms', board, None, 0.5),
        Row('ranks in step, iteration with / without, 2 ranks of one machine', taken['board'], taken['plain'], None),
        Row('ranks in step, added over gloo / a bare reduction of 64 bytes', gloo, bare, None),
    ]


def _run(rounds: int) -> Dict[str, float]:
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        port = str(probe.getsockname()[1])
    env = {**os.environ, 'MASTER_ADDR': '127.0.0.1', 'MASTER_PORT': port, 'WORLD_SIZE': '2', 'OMP_NUM_THREADS': '1'}
    children = [
        subprocess.Popen(
            [sys.executable, '-c', CHILD, str(rounds)],
            env={**env, 'RANK': str(rank)},
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    outputs = [child.communicate()[0] for child in children]
    taken: Dict[str, float] = json.loads(outputs[0])
    return taken
