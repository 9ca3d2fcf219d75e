"""The recipe for RT-DETR's loop, on two ranks as real processes; rank 1 meets labels that are no classes."""

from __future__ import annotations

import subprocess
from typing import List

import pytest
import torch
from example_scripts import EXAMPLES, last_words
from ranks import Rank, run_ranks

pytest.importorskip('transformers')

from rtdetr_det_engine import ITERS, NUM_CLASSES, batches, small_rtdetr

from mmguard.detection import guard_targets

RUN_EXAMPLE = """
import runpy, sys
sys.path.insert(0, sys.argv[1])
sys.argv[:] = ['rtdetr_det_engine.py', *sys.argv[2:]]
runpy.run_path(f'{sys.path[0]}/rtdetr_det_engine.py', run_name='__main__')
"""


def example(*arguments: str, timeout: float = 240) -> List[Rank]:
    return run_ranks(RUN_EXAMPLE, str(EXAMPLES), *arguments, timeout=timeout, preamble='')


def output_of(ranks: List[Rank]) -> str:
    return '\n'.join(rank.output for rank in ranks)


@pytest.mark.slow
def test_stock_dies_of_the_label() -> None:
    ranks = example('--stock')
    assert all(rank.returncode for rank in ranks)
    assert 'IndexError' in ranks[1].output
    assert 'denoising_training_group' in ranks[1].output  # which embeds labels


@pytest.mark.slow
def test_with_the_targets_guarded_alone_the_ranks_differ_and_hang_or_die() -> None:
    try:
        ranks = example('--targets-only', timeout=90)
    except subprocess.TimeoutExpired:
        return  # hung
    assert all(rank.returncode for rank in ranks)
    assert 'IndexError' not in output_of(ranks)
    assert not any(rank.said('PARAMETERS') for rank in ranks)


@pytest.mark.slow
def test_with_both_it_trains_the_ranks_stay_bit_equal_and_learn_what_one_process_learns() -> None:
    ranks = example()
    assert [rank.returncode for rank in ranks] == [0, 0], output_of(ranks)[-4000:]
    assert ranks[0].said('PARAMETERS') == ranks[1].said('PARAMETERS') != []
    assert ranks[0].said('LOSS') == ranks[1].said('LOSS')  # reduced over ranks
    invalid = [label for _, targets in batches(1) for target in targets for label in target['class_labels'].tolist()]
    values = {label: invalid.count(label) for label in invalid if label >= NUM_CLASSES}
    for number, expected in enumerate(({}, values)):
        (said,) = ranks[number].said('RANK')
        assert said.startswith(f'{number}: {sum(expected.values())} of 60 ')
        assert eval(said[said.index('{') :]) == expected
    first, last = map(float, ranks[0].said('LOSS')[0].split(' -> '))
    history = in_one_process()
    assert first == pytest.approx(history[0], rel=1e-4)
    assert last == pytest.approx(history[-1], rel=1e-3)
    assert last < 0.9 * first


def in_one_process() -> List[float]:
    """Both ranks' batches, one after the other; the mean of their losses; no DistributedDataParallel, no alignment."""
    torch.manual_seed(0)
    model = small_rtdetr()
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    states = [torch.get_rng_state()] * 2  # the noise of each rank
    history = []
    for both in zip(batches(0), batches(1)):
        total = torch.zeros(())
        for rank, (samples, targets) in enumerate(both):
            torch.set_rng_state(states[rank])
            targets, _ = guard_targets(targets, NUM_CLASSES, label_key='class_labels', return_tally=True)
            total = total + model(samples, labels=targets).loss / 2
            states[rank] = torch.get_rng_state()
        optimizer.zero_grad()
        total.backward()
        # A parameter that one rank alone has a gradient of is stepped on all: DDP averages it with zeros.
        for parameter in model.parameters():
            if parameter.requires_grad and parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        optimizer.step()
        history.append(total.item())
    assert len(history) == ITERS
    return history


SIDE_BY_SIDE = """
sys.path.insert(0, sys.argv[1])
from rtdetr_det_engine import batches, small_rtdetr, train_one_epoch
from torch.nn.parallel import DistributedDataParallel
for guard in (True, False):
    torch.manual_seed(0)
    model = DistributedDataParallel(small_rtdetr(), find_unused_parameters=False)
    clean = [batch for number, batch in enumerate(batches(rank)) if not 5 <= number < 15]
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    history, tally = train_one_epoch(model, clean, optimizer, guard, guard)
    assert not tally
    say_parameters(model)
    print('HISTORY', history)
leave()
"""


@pytest.fixture(scope='module')
def side_by_side() -> List[Rank]:
    ranks = run_ranks(SIDE_BY_SIDE, str(EXAMPLES))
    assert [rank.returncode for rank in ranks] == [0, 0], output_of(ranks)[-4000:]
    return ranks


@pytest.mark.slow
def test_on_clean_targets_the_trajectory_is_that_of_the_stock_loop_bit_for_bit(side_by_side: List[Rank]) -> None:
    for word in ('PARAMETERS', 'HISTORY'):
        said = side_by_side[0].said(word) + side_by_side[1].said(word)
        assert len(said) == 4
        assert len(set(said)) == 1


@pytest.mark.slow
def test_without_torchrun_it_ends_with_one_line() -> None:
    assert '`torchrun --nproc-per-node 2`' in last_words(str(EXAMPLES / 'rtdetr_det_engine.py'))
