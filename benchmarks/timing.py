"""Interleaved timing and peak memory."""

from __future__ import annotations

import gc
import json
import random
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Dict, NamedTuple, Optional

import torch


@dataclass
class Row:
    """One line of the table.

    Args:
        what (str): What is measured.
        ours (float): Median of mmguard.
        peer (float): Median of the peer, in the same unit; ``None`` if the bar is absolute.
        bar (float, optional): Upper limit of the ratio (without a peer of ``ours``); ``None``: for comparison only.
        unit (str): Unit of ``ours`` and ``peer``, ``'ms'`` or ``'MiB'``.
    """

    what: str
    ours: float
    peer: Optional[float]
    bar: Optional[float]
    unit: str = 'ms'

    @property
    def figure(self) -> float:
        return self.ours if self.peer is None else self.ours / self.peer

    @property
    def holds(self) -> bool:
        return self.bar is None or self.figure <= self.bar


def synchronize(device: str) -> None:
    if device == 'cuda':
        torch.cuda.synchronize()


def interleaved(calls: Dict[str, Callable[[], object]], rounds: int, device: str = 'cpu') -> Dict[str, float]:
    """Return the median time of each call in milliseconds. Every round runs all calls in a new random order.

    The state of the allocator depends on the previous call: in a fixed order, the same loss took 13 or 19 ms.
    """
    names, order = list(calls), random.Random(0)
    times: Dict[str, list] = {name: [] for name in names}
    for name in names:
        calls[name]()  # warm-up, compilation
    gc.collect()
    gc.disable()
    try:
        for _ in range(rounds):
            order.shuffle(names)
            for name in names:
                synchronize(device)
                start = time.perf_counter()
                calls[name]()
                synchronize(device)
                times[name].append(1e3 * (time.perf_counter() - start))
    finally:
        gc.enable()
    return {name: statistics.median(taken) for name, taken in times.items()}


def peak_memory(call: Callable[[], object], device: str = 'cpu') -> float:
    """Return the peak memory that torch allocates during the call, in MiB above the memory before it."""
    call()
    gc.collect()
    if device == 'cuda':
        torch.cuda.synchronize()
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        call()
        torch.cuda.synchronize()
        return (torch.cuda.max_memory_allocated() - before) / 2**20
    return memory_of(call).peak / 2**20


class Memory(NamedTuple):
    """Bytes of the CPU allocator above those before a call: at the peak, and after the call."""

    peak: int
    kept: int


def memory_of(call: Callable[[], object]) -> Memory:
    """Return the memory that a call takes from the CPU allocator, read from the profiler's trace."""
    call()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        result = call()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, 'trace.json')
        profile.export_chrome_trace(str(path))
        events = json.loads(path.read_text())['traceEvents']
    held = peak = 0
    for event in sorted((e for e in events if e.get('name') == '[memory]'), key=lambda e: e['ts']):
        held += event['args']['Bytes']
        peak = max(peak, held)
    del result
    return Memory(peak, held)
