"""A rank that does not come is named, whatever kept it away; those that wait for it are not."""

from __future__ import annotations

import json
import signal
from typing import List, NamedTuple

import pytest
from ranks import Rank, run_ranks, run_well

from mmguard.facts.run import MISSED_ANOTHER, RankFacts, RunFacts
from mmguard.findings import diagnose

CHILD = """
import contextlib, os, signal, time
from torch import nn
from mmguard.distributed import AbsentRankError, LossAgreement
from mmguard.compat.torch_names import get_default_store
model = nn.Linear(1, 1)
agreement = LossAgreement(model, timeout=float(sys.argv[2]))

def agree():
    agreement({'loss': model(torch.ones(1, 1)).mean()})

def compute_metric():
    dist.all_reduce(torch.zeros(1))

for _ in range(3):
    agree()
exec(sys.argv[1])
start = time.monotonic()
for _ in range(2):  # from then on it is the same error
    try:
        agree()
    except AbsentRankError as error:
        print('NAMED', error.ranks, f'{time.monotonic() - start:.3f}', flush=True)
        print('TEXT', str(error).splitlines()[0], flush=True)
with contextlib.suppress(Exception):  # it went with rank 0
    get_default_store().add('done', 1)
    end = time.monotonic() + 10
    # With rank 0 goes the store, in which those that come later look; at most one rank is killed.
    while rank == 0 and get_default_store().add('done', 0) < dist.get_world_size() - 1 and time.monotonic() < end:
        time.sleep(0.05)
leave()
"""


class Named(NamedTuple):
    """Which ranks one rank names, after how many seconds, and its message."""

    ranks: List[int]
    seconds: float
    message: str


def named_by(rank: Rank) -> Named:
    first, _ = (line.rsplit(' ', 1) for line in rank.said('NAMED'))
    message, again = rank.said('TEXT')
    assert message == again
    return Named(json.loads(first[0]), float(first[1]), message)


def is_out_of_step(named: Named) -> bool:
    """True if `mmguard report` takes the message for a rank that skipped a collective."""
    facts = RankFacts(0, MISSED_ANOTHER, 'rank 0 waited', f'AbsentRankError: {named.message}', 37)
    return 'MG304' in [finding.code for finding in diagnose(run=RunFacts(), ranks=[facts])]


def run(absent: str, timeout: float = 60, ranks: int = 3) -> List[Rank]:
    return run_ranks(CHILD, absent, str(timeout), ranks=ranks, timeout=100)


@pytest.mark.slow
@pytest.mark.parametrize('killed', [0, 1, 2])  # with rank 0 goes the store
def test_a_killed_rank_is_named_within_seconds(killed: int) -> None:
    ranks = run(f'if rank == {killed}: os.kill(os.getpid(), signal.SIGKILL)')
    assert ranks.pop(killed).returncode == -signal.SIGKILL
    for rank in ranks:
        named = named_by(rank)
        assert named.ranks == [killed]
        assert named.seconds < 5
        assert not is_out_of_step(named)


@pytest.mark.slow
def test_a_rank_that_is_busy_meanwhile_is_not_named() -> None:
    """It is still in its data loading when the roll is called, and comes later."""
    ranks = run('if rank == 2: os.kill(os.getpid(), signal.SIGKILL)\nif rank == 1: time.sleep(5)')
    assert named_by(ranks[0]).ranks == [2]
    assert named_by(ranks[0]).seconds < 5
    assert named_by(ranks[1]).ranks == [2]


@pytest.mark.slow
@pytest.mark.parametrize('left', [0, 2])
def test_a_rank_that_says_why_it_leaves_is_quoted_at_once(left: int) -> None:
    """Its process lives on, as one does that waits for a communicator to end."""
    ranks = run(f'if rank == {left}: agreement.leave("IndexError: Target 24"); time.sleep(8); leave()')
    for rank in (rank for number, rank in enumerate(ranks) if number != left):
        named = named_by(rank)
        assert named.ranks == [left]
        assert named.seconds < 2
        assert 'IndexError: Target 24' in named.message


@pytest.mark.slow
def test_a_rank_that_lives_elsewhere_is_named_after_the_timeout_with_its_place() -> None:
    ranks = run('if rank == 1: time.sleep(12)', timeout=4)
    for rank in (ranks[0], ranks[2]):
        named = named_by(rank)
        assert named.ranks == [1]
        assert 4 <= named.seconds < 4 + 5
        assert '<module>' in named.message


@pytest.mark.slow
def test_the_rank_that_skips_a_collective_is_named_not_those_that_wait_in_it() -> None:
    ranks = run('if rank != 1: compute_metric()', timeout=4)
    named = named_by(ranks[1])
    assert named.ranks == [1]
    assert named.message.count('all_reduce') == 2
    assert is_out_of_step(named)


@pytest.mark.slow
def test_the_one_rank_that_calls_a_collective_is_named() -> None:
    for rank in run('if rank == 1: compute_metric()', timeout=4)[::2]:
        assert named_by(rank).ranks == [1]
        assert 'all_reduce' in named_by(rank).message
        assert is_out_of_step(named_by(rank))


FORKED = """
worker = os.fork()
if not worker:
    try:
        agree()
    except RuntimeError as error:
        print('WORKER', type(error).__name__, flush=True)
    agreement.leave('a worker ends')
    os._exit(0)
os.waitpid(worker, 0)
agree()
print('TRAINS on', flush=True)
"""


@pytest.mark.slow
def test_a_process_that_was_forked_takes_no_part() -> None:
    for rank in run_well(CHILD + 'leave()', FORKED, '20', timeout=100):
        assert rank.said('WORKER') == ['RuntimeError']
        assert rank.said('TRAINS') == ['on']
        assert rank.said('NAMED') == []


ENDS = """
import atexit
from torch import nn
from mmguard.distributed import align_losses
model = nn.Linear(1, 1)
atexit.register(lambda: print('ENDS well', flush=True))
for _ in range(3):
    align_losses({'loss': model(torch.ones(1, 1)).mean()}, model)
dist.barrier()
if rank == int(sys.argv[1]):
    dist.destroy_process_group()
"""


@pytest.mark.slow
@pytest.mark.parametrize('destroys', [0, 5])
def test_a_process_ends_without_an_abort(destroys: int) -> None:
    """Whether or not it ends its process group before: the thread and gloo's are gone in time."""
    for rank in run_well(ENDS, str(destroys), timeout=60):
        assert rank.said('ENDS') == ['well']
