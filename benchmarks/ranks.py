"""Time that two gloo ranks of a small model need to agree on the losses, and to sum the counts of the log."""

from __future__ import annotations

import json
import os
import socket
import statistics
import subprocess
import sys
from typing import Dict, List

from benchmarks.timing import Row

#: Measures whole training iterations, and single calls ('... alone'), compared with the all_reduce that they use.
CHILD = """
import itertools, json, random, statistics, sys, tempfile, time
import torch, torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from benchmarks.hooks import batch, built_runner
from mmguard import LabelGuardHook
from mmguard.distributed import align_losses
dist.init_process_group('gloo')
model = DistributedDataParallel(nn.Sequential(*[nn.Linear(64, 64) for _ in range(20)]))
x = torch.randn(8, 64)
side, message = dist.new_group(backend='gloo'), torch.zeros(8, dtype=torch.int64)

def forward():
    y = model(x)
    return {f'loss_{part}': y[:, part].mean() for part in range(12)}  # as many as a DINO of six layers has

def reduction(losses):
    dist.all_reduce(message, group=side)
    return losses

folder = tempfile.TemporaryDirectory()
runner, seen, hook = built_runner(nn.Linear(1, 1), folder.name), batch(False, 2), LabelGuardHook()
hook.before_run(runner)
hook.before_train(runner)
hook.before_train_epoch(runner)

iterations, added = itertools.count(), []

def iteration(agree, logged=False):
    sum(agree(forward()).values()).backward()
    model.zero_grad()
    if logged:
        start = time.perf_counter()
        hook.after_train_iter(runner, next(iterations), seen, {})
        added.append(1e3 * (time.perf_counter() - start))

agreements = {'plain': lambda losses: losses, 'aligned': lambda losses: align_losses(losses, model), 'bare': reduction}
losses = forward()
calls = {name: lambda agree=agree: iteration(agree) for name, agree in agreements.items()}
calls['logged'] = lambda: iteration(agreements['plain'], logged=True)
calls.update({f'{name} alone': lambda agree=agree: agree(losses) for name, agree in agreements.items()})
times, names, turns = {name: [] for name in calls}, list(calls), random.Random(0)
for number in range(3 + int(sys.argv[1])):
    turns.shuffle(names)  # the same on every rank
    for name in names:
        dist.barrier()
        count, of_each = (1, 100) if name.endswith('alone') else (10, 1)
        for _ in range(count):
            start = time.perf_counter()
            for _ in range(of_each):
                calls[name]()
            if number >= 3:
                times[name].append(1e3 * (time.perf_counter() - start) / of_each)
if dist.get_rank() == 0:
    times['added'] = added
    print(json.dumps({name: statistics.median(taken) for name, taken in times.items()}))
del model  # before the group: torch's reducer may wait for ever otherwise
dist.destroy_process_group()
"""


def rows(device: str, rounds: int) -> List[Row]:
    """Measure on the host, whatever the device: the guard's messages go from host to host."""
    runs = [_run(2 * rounds) for _ in range(3)]
    taken = {name: statistics.median(run[name] for run in runs) for name in runs[0]}
    return [
        Row(
            'ranks in step, a call / a bare gloo all_reduce of 64 bytes, 2 ranks',
            taken['aligned alone'],
            taken['bare alone'],
            1.2,
        ),
        Row('hook, its part of an iteration of 2 ranks, ms', taken['added'], None, 0.1),
        Row('ranks in step, iteration with / without, 2 ranks', taken['aligned'], taken['plain'], None),
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
