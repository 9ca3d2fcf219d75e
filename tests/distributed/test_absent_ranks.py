"""A rank that does not come is named, whatever kept it away."""

from __future__ import annotations

import re
import signal
import time

import pytest
from ranks import Rank, run_ranks

pytestmark = pytest.mark.slow

CHILD = """
import os, signal, time
from torch import nn
from mmguard.distributed import AbsentRankError, LossAgreement
model = nn.Linear(1, 1)

def losses():
    return {'loss': model(torch.ones(1, 1)).mean()}

pids = [None, None]
dist.all_gather_object(pids, os.getpid())
agreements = {}
for over, no_board in (('memory', '0'), ('gloo', '1')):
    os.environ['MMGUARD_NO_BOARD'] = no_board
    agreements[over] = LossAgreement(model, timeout=2 + int(no_board))
    agreements[over](losses())
if rank == int(sys.argv[1]):
    if sys.argv[2] == 'killed':
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(60)
for over, agreement in agreements.items():
    start = time.monotonic()
    try:
        agreement(losses())
    except AbsentRankError as error:
        print(over, error.ranks, f'{time.monotonic() - start:.3f}', str(error).splitlines()[0], flush=True)
if sys.argv[2] == 'stuck':
    os.kill(pids[1 - rank], signal.SIGKILL)
os._exit(0)
"""


def said(rank: Rank, over: str) -> tuple:
    """The ranks that are named, the seconds that it took, the message."""
    (line,) = rank.said(over)
    ranks, seconds, message = re.fullmatch(r'(\[.*?\]) (\S+) (.*)', line).groups()
    return ranks, float(seconds), message


@pytest.mark.parametrize('how', ['killed', 'stuck'])
@pytest.mark.parametrize('absent', [0, 1])
def test_the_other_says_which_rank_did_not_come(absent: int, how: str) -> None:
    start = time.monotonic()
    ranks = run_ranks(CHILD, str(absent), how, timeout=60)
    assert ranks[absent].returncode == -signal.SIGKILL
    other = ranks[1 - absent]

    named, seconds, message = said(other, 'memory')
    assert named == f'[{absent}]', other.output[-2000:]
    if how == 'killed':
        assert f'rank {absent} is gone, its process' in message
        assert seconds < 1.9, 'told at once, not after the timeout'
    else:
        assert f'rank {absent} did not come: its process' in message
        assert 2 <= seconds < 5

    named, seconds, message = said(other, 'gloo')
    assert named == f'[{absent}]', other.output[-2000:]
    assert f'rank {1 - absent} waited for the others, at most 3 s: ' in message
    assert seconds < 3 + 3 + 3, 'the wait, and the roll call'
    assert time.monotonic() - start < 60
