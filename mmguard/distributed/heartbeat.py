"""Heartbeats of ranks, which identify the missing rank after a collective fails."""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import threading
import time
from typing import Any, Dict, List

import torch.distributed as dist

from mmguard.compat.torch_names import get_default_store
from mmguard.text import join_with_and, plural

#: Seconds between two heartbeats of a rank.
BEAT = 0.5
#: Seconds that other ranks get to answer a roll call, or to send a heartbeat.
PATIENCE = 3.0
#: Seconds that an ending rank gives other ranks to read its reason: the store may end with its process.
LINGER = 0.2
#: Modules in which a rank waits for others: collectives, DistributedDataParallel, backward.
WAITING = ('torch.distributed', 'torch.nn.parallel', 'torch.autograd', 'mmguard.distributed.channel')


class AbsentRankError(RuntimeError):
    """Error if a rank did not join a collective.

    Attributes:
        ranks (list[int]): Ranks to inspect: the ranks that ended; if none ended, the ranks that did not reach the
            collective, or the ranks that reached it if at least as many ranks wait in another collective.
    """

    def __init__(self, message: str, ranks: List[int]) -> None:
        super().__init__(message)
        self.ranks = ranks


class Heartbeat:
    """Reports of this rank in the common store: its heartbeat, the code line that it runs, and why it left.

    A thread sends heartbeat and code line twice a second. Other ranks read the reports after a collective has failed.
    """

    def __init__(self) -> None:
        self.rank, self.ranks = dist.get_rank(), range(dist.get_world_size())
        self._others = [rank for rank in self.ranks if rank != self.rank]
        self._world, self._thread = dist.group.WORLD, threading.get_ident()
        self._who = f'process {os.getpid()} on {socket.gethostname()}'
        self._prefix = 'mmguard'
        self._ended = threading.Event()
        with contextlib.suppress(Exception):  # without a store no rank can be named, but training continues
            self._prefix += f'/{(self.store.add("made", 1) - 1) // len(self.ranks)}'
            self._send_position()
            threading.Thread(target=self._send_heartbeats, name='mmguard-presence', daemon=True).start()

    @property
    def store(self) -> Any:
        """Common store of the ranks, limited to the keys of these heartbeats."""
        # Not kept as an attribute, which would hold the store's port after the process group is destroyed.
        return dist.PrefixStore(self._prefix, get_default_store())

    def end(self) -> None:
        """Stop the heartbeats."""
        self._ended.set()

    def leave(self, reason: str) -> None:
        """Record in the store that this rank has left, and why."""
        with contextlib.suppress(Exception):  # the store may be gone, and then no rank can read it
            self.store.set(f'why/{self.rank}', reason)
            self.store.add(f'left/{self.rank}', 1)
            self.store.add('left', 1)

    def answer(self, call: int) -> None:
        """Record that this rank has reached the collective with the number ``call``."""
        with contextlib.suppress(Exception):
            self.store.add(f'{call}/{self.rank}', 1)
            self.store.add(f'{call}', 1)

    def build_error(self, call: int, waited: float) -> AbsentRankError:
        """Build the error for a failed collective, after this rank has answered."""
        try:
            explanation, ranks = self._judge(self._call_roll(call), call)
        except Exception:  # torch raises several kinds when the other side of a socket is gone
            explanation = (
                'the process with the store of all ranks (rank 0, or torchrun) is gone, so their reports cannot be read'
            )
            ranks = [0]
        return AbsentRankError(f'rank {self.rank} waited {waited:.1f} s for the others: {explanation}', ranks)

    # ---- heartbeats

    def _send_heartbeats(self) -> None:
        with contextlib.suppress(Exception):  # the process group or its store is gone
            while not self._ended.wait(BEAT) and dist.group.WORLD is self._world:
                self._send_position()

    def _send_position(self) -> None:
        self.store.set(f'where/{self.rank}', f'{self._who}|{describe_position(self._thread)}')
        self.store.add(f'beats/{self.rank}', 1)

    # ---- roll call

    def _call_roll(self, call: int) -> Dict[int, List[str]]:
        """Return {rank: [state, details]} of silent ranks; state: ended, gone (no heartbeat), waiting or elsewhere."""
        store, end = self.store, time.monotonic() + PATIENCE
        beats = {rank: store.add(f'beats/{rank}', 0) for rank in self._others}
        while store.add(f'{call}', 0) + store.add('left', 0) < len(self.ranks) and time.monotonic() < end:
            time.sleep(0.05)
        states = {}
        for rank in self._others:
            if store.add(f'{call}/{rank}', 0):
                continue
            if store.add(f'left/{rank}', 0):
                states[rank] = ['ended', f'rank {rank} ended training: {store.get(f"why/{rank}").decode()}']
                continue
            who, _, place = store.get(f'where/{rank}').decode().partition('|') if beats[rank] else ('', '', '')
            name = f'rank {rank} ({who})' if who else f'rank {rank}'
            if store.add(f'beats/{rank}', 0) == beats[rank]:
                states[rank] = [
                    'gone',
                    f'no heartbeat from {name} for {PATIENCE:g} s: it was killed (out of memory?) or hangs; see its '
                    f'log and dmesg',
                ]
            else:
                kind = 'waiting' if place.startswith('waits') else 'elsewhere'
                states[rank] = [kind, f'{name} is alive, but {place}']
        time.sleep(LINGER)
        return states

    def _judge(self, states: Dict[int, List[str]], call: int) -> Any:
        ended = [rank for rank, (kind, _) in states.items() if kind in ('ended', 'gone')]
        details = '; '.join(states[rank][1] for rank in (ended or states))
        if not states:
            return 'all ranks are present, so the connection between them failed', []
        waiting = [rank for rank, (kind, _) in states.items() if kind == 'waiting']
        here = [rank for rank in self.ranks if rank not in states]
        if ended or len(waiting) < len(here):
            return details, ended or list(states)
        skipped = f'{plural(len(here), "rank")} {join_with_and(map(str, here))}'
        return f'{details}: {skipped} skipped this collective, or the others should have skipped it as well', here


def describe_position(thread: int) -> str:
    """Describe the position of a thread: ``waits in all_reduce, called from metric.py, line 12``."""
    frame: Any = sys._current_frames()[thread]
    waits = _get_module(frame).startswith(WAITING)
    call = frame.f_code.co_name
    while frame.f_back is not None and f'{_get_module(frame)}.'.startswith(('torch.', 'mmguard.', 'mmengine.dist.')):
        frame = frame.f_back
    return f'{"waits" if waits else "is"} in {call}, called from {frame.f_code.co_filename}, line {frame.f_lineno}'


def _get_module(frame: Any) -> str:
    return str(frame.f_globals.get('__name__', ''))
