"""Errors of several processes, made by torchrun with gloo: the rank that failed first, out of all that is said."""

from __future__ import annotations

import os
import textwrap
from pathlib import Path
from typing import Any, Dict

import pytest
from explained_logs import explain_log
from warm import TORCHRUN, run

from mmguard.commands.explain.explanation import Explanation

BEGIN = """
import datetime
import os
import signal
import time
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group('gloo', timeout=datetime.timedelta(seconds=SECONDS))
rank = dist.get_rank()
model = torch.nn.ModuleDict({'used': torch.nn.Linear(3, 2), 'mask_head': torch.nn.Linear(3, 2)})


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = model

    def forward(self, x, both):
        return self.parts['used'](x) + (self.parts['mask_head'](x) if both else 0)

"""


def explained(folder: Path, body: str, seconds: int = 60, more: Dict[str, str] = {}) -> Explanation:  # noqa: B006
    script = folder / 'train.py'
    script.write_text(BEGIN.replace('SECONDS', str(seconds)) + textwrap.dedent(body))
    environment = {**os.environ, 'OMP_NUM_THREADS': '1', 'GLOO_SOCKET_IFNAME': 'lo', **more}
    done = run(TORCHRUN, '--standalone', '--nproc_per_node=2', str(script), environment=environment)
    found = explain_log(done.output)
    assert found.signature is not None, done.output
    return found


@pytest.mark.slow
def test_the_rank_with_the_label_is_named_and_not_the_one_that_waited(tmp_path: Path) -> None:
    body = """
    if rank == 1:
        F.cross_entropy(torch.rand(2, 3), torch.tensor([0, 255]))
    dist.all_reduce(torch.zeros(1))
    """
    found = explained(tmp_path, body)
    assert found.signature.code == 'MG413'
    assert found.trouble.rank in ('1', '')  # torch before 2.2 marks no lines
    assert found.raised.message == 'Target 255 is out of bounds.'


BODIES: Dict[str, Any] = {
    'MG450': (
        """
    net = DistributedDataParallel(Net())
    for step in range(3):
        net(torch.rand(2, 3), both=False).sum().backward()
    """,
        dict(more={'TORCH_DISTRIBUTED_DEBUG': 'INFO'}),
    ),
    'MG458': (
        """
    dist.all_reduce(torch.zeros(1))
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    dist.all_reduce(torch.zeros(1))
    """,
        {},
    ),
    'MG454': ('\n    time.sleep(20 * rank)\n    dist.all_reduce(torch.zeros(1))\n', dict(seconds=4)),
    'MG453': ('\n    dist.all_reduce(torch.zeros((21, 39)[rank]))\n', dict(more={'TORCH_DISTRIBUTED_DEBUG': 'DETAIL'})),
}


@pytest.mark.slow
@pytest.mark.parametrize('code', BODIES)
def test_what_stops_ranks(code: str, tmp_path: Path) -> None:
    body, options = BODIES[code]
    found = explained(tmp_path, body, **options)
    assert found.signature.code == code
    assert 'mask_head' in found.raised.message or code != 'MG450'
