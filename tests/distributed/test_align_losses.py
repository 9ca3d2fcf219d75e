"""Ranks that differ in their losses, as real processes under DistributedDataParallel."""

from __future__ import annotations

import inspect
import os.path as osp
import re
from collections import Counter
from pathlib import Path
from typing import List

import pytest
import torch.distributed as dist
from ranks import Rank, free_port, run_well

EXAMPLE = osp.join(osp.dirname(__file__), '..', '..', 'examples', 'ddp_plain_pytorch.py')

RUN_EXAMPLE = """
import os, runpy, sys
path, *trainings = sys.argv[1:]
for training in trainings:
    # A port each: a rank that is early must not meet the end of the group before.
    os.environ['MASTER_PORT'], *options = training.split()
    sys.argv = [path, *options]
    runpy.run_path(path, run_name='__main__')
sys.stdout.flush()
os._exit(0)
"""


def run_example(*trainings: str, timeout: float) -> List[Rank]:
    """Runs it on two ranks, for each of the trainings with these options."""
    # No group says which port comes next: torch may wait forever where one is ended right after a broadcast.
    ports = [f'{free_port()} {options}' for options in trainings]
    return run_well(RUN_EXAMPLE, EXAMPLE, *ports, timeout=timeout, preamble='')


@pytest.mark.slow
def test_with_alignment_it_trains_and_ranks_stay_bit_equal() -> None:
    """And on clean data the trajectory is that without it."""
    ranks = run_example('', '--targets-everywhere', '--targets-everywhere --stock', timeout=200)
    aligned, clean, stock = ranks[0].said('PARAMETERS')
    assert ranks[1].said('PARAMETERS') == [aligned, clean, stock]
    assert clean == stock != aligned


CHILD = """
from torch import nn
from torch.utils.checkpoint import checkpoint
from mmguard.distributed import LossAgreement, align_losses
torch.manual_seed(0)
both = nn.ModuleDict(dict(a=nn.Linear(2, 1), b=nn.Linear(2, 1)))
x = torch.ones(3, 2)

def forward(keys):
    losses = {}
    if 'a' in keys: losses['loss_a'] = both['a'](x).mean()
    if 'b' in keys: losses['loss_b'] = [both['b'](x).mean(), both['b'](x).sum()]
    if 'c' in keys: losses['loss_a'] = torch.zeros(())
    if 'acc' in keys: losses['acc'] = torch.ones(())
    return losses

def say(losses):
    graphs = {k: [p.requires_grad for p in v] if isinstance(v, list) else v.requires_grad for k, v in losses.items()}
    print('KEYS', dict(sorted(graphs.items())))
"""

KINDS = """
for mine in eval(sys.argv[1]):
    losses = forward(mine[rank])
    aligned = align_losses(losses, both)
    print('SAME', aligned is losses)
    say(aligned)
    total = sum(sum(v) if isinstance(v, list) else v for k, v in aligned.items() if 'loss' in k)
    both.zero_grad()
    total.backward()
    print('GRADS', [p.grad is not None and bool(p.grad.isfinite().all()) for p in both.parameters()])
    print('ZERO', [bool((p.grad == 0).all()) for p in both.parameters()])
leave()
"""


@pytest.mark.slow
def test_missing_constant_and_forgotten_losses_are_filled() -> None:
    iterations = [
        (['a', 'b', 'acc'], ['a', 'b', 'acc']),  # equal: nothing is touched
        (['a', 'b', 'acc'], ['a']),  # rank 1 lacks a list and a number
        (['a', 'b', 'acc'], ['c', 'b', 'acc']),  # rank 1 has a constant
        (['a'], ['a']),  # both lack what they had before
        (['a', 'b', 'acc'], []),  # rank 1 has nothing at all
    ]
    ranks = run_well(CHILD + KINDS, repr(iterations))
    for rank in ranks:
        assert rank.said('GRADS') == ['[True, True, True, True]'] * len(iterations)
    first, second = ranks
    assert first.said('SAME') == ['True', 'True', 'True', 'False', 'True']
    assert second.said('SAME') == ['True', 'False', 'False', 'False', 'False']
    whole = "{'acc': False, 'loss_a': True, 'loss_b': [True, True]}"
    filled = "{'acc': False, 'loss_a': True, 'loss_b': [True]}"
    assert first.said('KEYS') == [whole, whole, whole, filled, whole]
    assert second.said('KEYS') == [whole, filled, whole, filled, filled]
    assert second.said('ZERO')[1] == '[False, False, True, True]'
    assert second.said('ZERO')[4] == '[True, True, True, True]'


REDUCED = """
for mine in eval(sys.argv[1]):
    # Each loss is its letter's place in the alphabet, on every rank that has it.
    losses = {f'loss_{key}': both['a'](x).mean() * 0 + ord(key) - 96 for key in mine[rank]}
    aligned = align_losses(losses, both)
    print('ORDER', ''.join(key[-1] for key in aligned))
    print('SAME', aligned is losses)
    with torch.set_grad_enabled(False):
        for value in aligned.values():  # as mmseg 0.x logs them: no names are exchanged
            dist.all_reduce(value)
    print('MEAN', {key[-1]: round(value.item()) for key, value in sorted(aligned.items())})
leave()
"""


@pytest.mark.slow
@pytest.mark.parametrize('ranks', [2, 3])
def test_a_loop_that_reduces_entry_by_entry_adds_up_equal_losses(ranks: int) -> None:
    """Keys are in one order on all ranks: that of the ranks which have them."""
    iterations = [
        ('abc', 'abc', 'abc'),  # equal: nothing is touched
        ('ac', 'abc', 'bc'),  # what is missing stands in the middle, and at the beginning
        ('bd', 'ac', 'abcd'),  # each has a part
        ('abcd', 'bacd', 'dcba'),  # all have all, in their own order
        ('c', '', 'ba'),  # known from before, on no rank or on one
        ('abcd', 'abcd', 'abcd'),
    ]
    found = run_well(CHILD + REDUCED, repr(iterations), ranks=ranks)
    for rank in found:
        assert rank.said('ORDER') == found[0].said('ORDER')
    has = [Counter(''.join(mine[:ranks])) for mine in iterations]
    for mean, keys in zip(found[0].said('MEAN'), has):
        assert {k: v for k, v in eval(mean).items() if v} == {k: n * (ord(k) - 96) for k, n in keys.items()}
    order = found[0].said('ORDER')
    assert [order[place] for place in (0, 1, 3, 5)] == ['abc', 'abc', 'abcd', 'abcd']
    assert [found[0].said('SAME')[place] for place in (0, 5)] == ['True', 'True']


TRAININGS = """
for timeout in 50, 51:
    # Two agreements in turns, all of them in one process.
    one, again = LossAgreement(both, timeout=timeout), LossAgreement(both, timeout=timeout)
    for _ in range(3):
        one(forward(['a', 'b']))
        again(forward(['a', 'b'] if rank else ['a']))
dist.barrier()
# A process group of its own for each training of one process; model and arguments are the same.
align_losses(forward(['a']), both)
dist.destroy_process_group()
dist.init_process_group('gloo', init_method=sys.argv[1], rank=rank, world_size=3)
for _ in range(3):
    say(align_losses(forward(['a', 'b'] if rank else ['b']), both))
dist.barrier()
dist.destroy_process_group()
leave()
"""


@pytest.mark.slow
def test_several_agreements_and_trainings_in_one_process(tmp_path: Path) -> None:
    ranks = run_well(CHILD + TRAININGS, f'file://{tmp_path}/store', ranks=3, timeout=120)
    for rank in ranks:
        assert rank.said('KEYS') == ["{'loss_a': True, 'loss_b': [True, True]}"] * 3


OTHER_GROUPS = """
def agree():
    say(LossAgreement(both, timeout=20)(forward(['a', 'b'] if rank == 1 else ['a'])).losses)

def summed(name, ranks=None, **options):
    total = torch.ones(())
    dist.all_reduce(total, group=dist.new_group(ranks, **options))
    print(name, int(total))

local = dict(use_local_synchronization=True) if sys.argv[2] == 'True' else {}
if sys.argv[1] == 'before':
    if local and rank:
        summed('PAIR', [1, 2], **local)
    if local and rank == 2:
        dist.new_group([2], **local)
agree()
if sys.argv[1] == 'after':
    summed('ALL')
    if local and rank:
        summed('PAIR', [1, 2], **local)
dist.barrier()  # the store goes with rank 0
leave()
"""


@pytest.mark.slow
@pytest.mark.parametrize('order', ['before', 'after'])
def test_agreements_and_groups_that_some_ranks_make_do_not_disturb_each_other(order: str) -> None:
    """torch names a group after the number of those before it, which then differs between ranks."""
    local = 'use_local_synchronization' in inspect.signature(dist.new_group).parameters
    ranks = run_well(CHILD + OTHER_GROUPS, order, str(local), ranks=3, timeout=100)
    for number, rank in enumerate(ranks):
        keys = "{'loss_a': True, 'loss_b': [True%s]}" % (', True' if number == 1 else '')
        assert rank.said('KEYS') == [keys]
        assert rank.said('PAIR') == (['2'] if local and number else [])
        assert rank.said('ALL') == (['3'] if order == 'after' else [])


# ---- what a first batch without targets, or a branch that nobody uses, leaves without a gradient

NO_TARGETS = """
from torch.nn.parallel import DistributedDataParallel
sys.path.insert(0, sys.argv[1])
from ddp_plain_pytorch import SmallDETR
from mmguard.distributed import align_losses

class Unused(SmallDETR):
    def __init__(self):
        super().__init__()
        self.dropped = nn.Linear(2, 2)

nn = torch.nn
for kind in SmallDETR, Unused:
    torch.manual_seed(0)
    model = DistributedDataParallel(kind())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    torch.manual_seed(rank)
    for iteration in range(6):
        targets = [0, 0, 0, 0, 4 - 4 * rank, 4][iteration]
        losses = model(torch.randn(4, 3, 16, 16), torch.randint(0, 3, (targets,)), torch.rand(targets, 4))
        losses = align_losses(losses, model, samples=[f'{rank}-{iteration}.jpg'])
        optimizer.zero_grad()
        sum(losses.values()).backward()
        optimizer.step()
    say_parameters(model)
leave()
"""


@pytest.mark.slow
def test_a_first_batch_without_targets_on_all_ranks_trains() -> None:
    ranks = run_well(NO_TARGETS, osp.dirname(EXAMPLE))
    said = ranks[0].said('PARAMETERS')
    assert said == ranks[1].said('PARAMETERS')
    assert len(said) == 2
    assert 'guard: ' not in ranks[1].output, 'the first rank reports'
    lines = [line for line in ranks[0].output.splitlines() if 'guard: ' in line]
    named = [set(re.findall(r'(?:dn_)?loss_\w+|\d-\d\.jpg|\w+\.(?:weight|bias)', line)) for line in lines]
    assert {'loss_cls', 'loss_box', 'dn_loss_box', '1-4.jpg'} in named
    unreached = {'label_embedding.weight', 'denoise.weight', 'denoise.bias'}
    assert unreached in named
    assert unreached | {'dropped.weight', 'dropped.bias'} in named


NO_LOSS = """
from torch.nn.parallel import DistributedDataParallel
model = DistributedDataParallel(both)
for iteration, keys in enumerate([[], ['c'], [], ['a', 'b']]):
    losses = align_losses(forward(keys), model)
    print('KEYS', sorted(losses))
    sum(sum(v) if isinstance(v, list) else v for v in losses.values()).backward()
    print('GRADS', [p.grad is not None for p in model.parameters()])
    model.zero_grad()
leave()
"""


@pytest.mark.slow
def test_where_no_rank_has_a_loss_that_reaches_anything_zeros_do() -> None:
    for rank in run_well(CHILD + NO_LOSS):
        assert rank.said('GRADS') == ['[True, True, True, True]'] * 4
        assert rank.said('KEYS') == ["['loss_filled']", "['loss_a']", "['loss_a']", "['loss_a', 'loss_b']"]
