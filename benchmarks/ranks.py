"""What agreeing on the losses costs: two gloo ranks of a small model, with and without ``align_losses``."""

from __future__ import annotations

import os
import socket
import statistics
import subprocess
import sys
from typing import List

from benchmarks.timing import Row

CHILD = """
import statistics, sys, time
import torch, torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from mmguard.distributed import align_losses
dist.init_process_group('gloo')
model = DistributedDataParallel(nn.Sequential(*[nn.Linear(64, 64) for _ in range(20)]))
x = torch.randn(8, 64)

def iteration(guarded):
    y = model(x)
    losses = {f'loss_{part}': y[:, part].mean() for part in range(12)}  # as many as a DINO with six layers logs
    start = time.perf_counter()
    if guarded:
        losses = align_losses(losses, model)
    taken = time.perf_counter() - start
    sum(losses.values()).backward()
    model.zero_grad()
    return taken

times = {True: [], False: []}
for number in range(20 + int(sys.argv[1])):
    for guarded in (True, False):
        dist.barrier()
        start = time.perf_counter()
        iteration(guarded)
        if number >= 20:
            times[guarded].append(1e3 * (time.perf_counter() - start))
if dist.get_rank() == 0:
    print(statistics.median(times[True]), statistics.median(times[False]))
dist.destroy_process_group()
"""


def rows(device: str, rounds: int) -> List[Row]:
    """Over gloo whatever the device: the guard's messages go between hosts."""
    runs = [_run(20 * rounds) for _ in range(3)]
    guarded, plain = (statistics.median(column) for column in zip(*runs))
    return [
        Row('ranks in step, added to an iteration on 2 gloo ranks, ms', guarded - plain, None, 0.5),
        Row('ranks in step, iteration with / without', guarded, plain, None),
    ]


def _run(rounds: int) -> List[float]:
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
    return [float(number) for number in outputs[0].split()]
