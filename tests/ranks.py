"""Several processes on this machine, as a launcher would start them."""

from __future__ import annotations

import contextlib
import os
import os.path as osp
import random
import socket
from typing import Any, List, NamedTuple

from warm import Program, run_all

#: What a child begins with: mmengine learns of the process group, which the child makes itself.
PREAMBLE = """
import hashlib, os, sys
import torch
import torch.distributed as dist
dist.init_process_group('gloo')
rank = dist.get_rank()

def distributed(config):
    config.experiment_name = config.visualizer.name = 'two-ranks'
    config.launcher = 'pytorch'
    config.env_cfg.dist_cfg = dict(backend='gloo')
    config.model_wrapper_cfg = dict(type='MMDistributedDataParallel', device_ids=None, find_unused_parameters=False)
    return config

def say_parameters(model):
    digest = hashlib.sha256()
    for parameter in model.parameters():
        digest.update(parameter.detach().numpy().tobytes())
        assert parameter.isfinite().all()
    print('PARAMETERS', digest.hexdigest(), flush=True)

def leave():
    # Not by destroy_process_group: where the model goes after the group, torch's reducer may wait forever, with the
    # GIL, for a thread of gloo's that waits for the GIL.
    sys.stdout.flush()
    os._exit(0)
"""


def free_port() -> int:
    """A port for a process group. Below those that the system gives to connections: nothing takes it in between."""
    while True:
        port = random.SystemRandom().randrange(15000, 30000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(('127.0.0.1', port))
            return port


class Rank(NamedTuple):
    """What a process said, both streams, and how it ended."""

    output: str
    returncode: int

    def said(self, word: str) -> List[str]:
        """The rest of every line that begins with ``word``."""
        return [line[len(word) + 1 :] for line in self.output.splitlines() if line.startswith(f'{word} ')]


def run_ranks(
    child: str, *arguments: str, ranks: int = 2, timeout: float = 240, preamble: str = PREAMBLE
) -> List[Rank]:
    """Runs a script in several processes, which find each other by the usual variables.

    Args:
        child (str): Python source, run behind ``preamble``.
        arguments (str): Its ``sys.argv[1:]``.
        ranks (int): Number of processes.
        timeout (float): Seconds until all of them are killed: a hang is a failure.
        preamble (str): Empty for a script that makes the process group itself: made twice, at one port, a rank may
            meet the first one's store.
    """
    port = str(free_port())
    here = osp.dirname(__file__)
    env = {
        **os.environ,
        'PYTHONPATH': os.pathsep.join([here, osp.dirname(here)]),
        'MASTER_ADDR': '127.0.0.1',
        'MASTER_PORT': port,
        'WORLD_SIZE': str(ranks),
        'OMP_NUM_THREADS': '1',
    }
    programs = [
        Program(preamble + child, ['-c', *arguments], {**env, 'RANK': str(rank), 'LOCAL_RANK': str(rank)})
        for rank in range(ranks)
    ]
    return [Rank(*ended) for ended in run_all(programs, timeout)]


def run_well(child: str, *arguments: str, **options: Any) -> List[Rank]:
    """Run a script as :func:`run_ranks` does; every process must end well."""
    ranks = run_ranks(child, *arguments, **options)
    for rank in ranks:
        assert rank.returncode == 0, rank.output[-3000:]
    return ranks
