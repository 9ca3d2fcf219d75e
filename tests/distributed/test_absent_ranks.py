"""A rank that does not come is named, whatever kept it away."""

from __future__ import annotations

import signal
import time

import pytest
from ranks import run_ranks

pytestmark = pytest.mark.slow

CHILD = """
import os, signal, time
from torch import nn
from mmguard.distributed import AbsentRankError, LossAgreement
model = nn.Linear(1, 1)
agreement = LossAgreement(model, timeout=4)
absent = int(sys.argv[1])
agreement({'loss': model(torch.ones(1, 1)).mean()})
if rank == absent:
    if sys.argv[2] == 'killed':
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(14)
    os._exit(0)
start = time.monotonic()
try:
    agreement({'loss': model(torch.ones(1, 1)).mean()})
except AbsentRankError as error:
    print('ABSENT', error.ranks, flush=True)
    print('ERROR', str(error).splitlines()[0], flush=True)
    print('SECONDS', time.monotonic() - start, flush=True)
os._exit(0)
"""


@pytest.mark.parametrize('how', ['killed', 'stuck'])
@pytest.mark.parametrize('absent', [0, 1])
def test_the_other_says_which_rank_did_not_come(absent: int, how: str) -> None:
    start = time.monotonic()
    ranks = run_ranks(CHILD, str(absent), how, timeout=60)
    if how == 'killed':
        assert ranks[absent].returncode == -signal.SIGKILL
    other = ranks[1 - absent]
    assert other.said('ABSENT') == [f'[{absent}]'], other.output[-2000:]
    (error,) = other.said('ERROR')
    assert f'rank {1 - absent} waited for the others, at most 4 s: ' in error
    (seconds,) = other.said('SECONDS')
    assert float(seconds) < 4 + 4 + 1.5, 'the wait, and the roll call'
    assert time.monotonic() - start < 60
