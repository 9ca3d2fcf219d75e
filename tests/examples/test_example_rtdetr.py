"""The recipe for RT-DETR's loop, on two ranks as real processes; rank 1 meets labels that are no classes."""

from __future__ import annotations

import subprocess
from typing import Any, Dict, Iterator, List, Tuple

import pytest
import torch
from example_scripts import EXAMPLES
from ranks import Rank, run_ranks
from rtdetr_det_engine import ITERS, NUM_CLASSES, batches
from small_rtdetr import SetCriterion, SmallRTDETR

from mmguard.functional import guard_targets

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
    assert 'IndexError: index out of range in self' in ranks[1].output  # the embedding of the denoising
    assert 'denoising_class_embed' in ranks[1].output


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
    invalid = [label for _, targets in batches(1) for target in targets for label in target['labels'].tolist()]
    values = {label: invalid.count(label) for label in invalid if label >= NUM_CLASSES}
    assert ranks[0].said('RANK') == ['0: 0 of 60 instances left out, values {}']
    (said,) = ranks[1].said('RANK')
    prefix = f'1: {sum(values.values())} of 60 instances left out, values '
    assert said.startswith(prefix)
    assert eval(said[len(prefix) :]) == values
    first, last = map(float, ranks[0].said('LOSS')[0].split(' -> '))
    history = in_one_process()
    assert first == pytest.approx(history[0], rel=1e-4)
    assert last == pytest.approx(history[-1], rel=1e-3)
    assert last < 0.8 * first


class CriterionOfRanks(SetCriterion):
    """The number of instances is given, as the ranks would have agreed on it."""

    number = 1.0

    def average_number(self, targets: Any) -> float:
        return self.number


def in_one_process() -> List[float]:
    """Both ranks' batches, one after the other; the mean of their losses; no DistributedDataParallel, no alignment."""
    torch.manual_seed(0)
    model, criterion = SmallRTDETR(NUM_CLASSES), CriterionOfRanks(NUM_CLASSES)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    states = [torch.get_rng_state()] * 2  # the noise of each rank
    history = []
    for both in zip(batches(0), batches(1)):
        guarded = [guard_targets(targets, NUM_CLASSES, return_tally=True)[0] for _, targets in both]
        criterion.number = max(1.0, sum(len(one['labels']) for targets in guarded for one in targets) / 2)
        total = torch.zeros(())
        for rank, ((samples, _), targets) in enumerate(zip(both, guarded)):
            torch.set_rng_state(states[rank])
            total = total + sum(criterion(model(samples, targets), targets).values()) / 2
            states[rank] = torch.get_rng_state()
        optimizer.zero_grad()
        total.backward()
        # A parameter that one rank alone has a gradient of is stepped on all: DDP averages it with zeros.
        for parameter in model.parameters():
            parameter.grad = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        optimizer.step()
        history.append(total.item())
    assert len(history) == ITERS
    return history


ASIDE = """
sys.path.insert(0, sys.argv[1])
from mmguard.distributed import align_losses
from rtdetr_det_engine import NUM_CLASSES, SetCriterion, SmallRTDETR, batches, reduce_dict, train_one_epoch
from torch.nn.parallel import DistributedDataParallel
for guard in (True, False):
    torch.manual_seed(0)
    model = DistributedDataParallel(SmallRTDETR(NUM_CLASSES), find_unused_parameters=False)
    clean = [batch for number, batch in enumerate(batches(rank)) if not 5 <= number < 15]
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    history, tally = train_one_epoch(model, SetCriterion(NUM_CLASSES), clean, optimizer, guard, guard)
    assert not tally
    say_parameters(model)
    print('HISTORY', history)
linear = torch.nn.Linear(1, 1)
zero = linear(torch.ones(1, 1)).sum() * 0
mine = {'loss_bbox': zero + 1 + rank, ('loss_bbox_dn_0', 'loss_bce')[rank]: zero + 10 * (1 + rank)}
for losses in (mine, align_losses(mine, linear)):
    print('REDUCED', {key: value.item() for key, value in reduce_dict(losses).items()})
leave()
"""


@pytest.fixture(scope='module')
def aside() -> List[Rank]:
    ranks = run_ranks(ASIDE, str(EXAMPLES))
    assert [rank.returncode for rank in ranks] == [0, 0], output_of(ranks)[-4000:]
    return ranks


@pytest.mark.slow
def test_on_clean_targets_the_trajectory_is_that_of_the_stock_loop_bit_for_bit(aside: List[Rank]) -> None:
    for word in ('PARAMETERS', 'HISTORY'):
        said = aside[0].said(word) + aside[1].said(word)
        assert len(said) == 4
        assert len(set(said)) == 1


@pytest.mark.slow
def test_reduce_dict_mixes_unlike_losses_and_does_not_once_they_are_aligned(aside: List[Rank]) -> None:
    """As many losses on each rank, but not the same ones: stacked by sorted key, nothing crashes."""
    stock, aligned = zip(*(rank.said('REDUCED') for rank in aside))
    assert [eval(said) for said in stock] == [
        {'loss_bbox': 1.5, 'loss_bbox_dn_0': 15.0},  # rank 1's loss_bce is in it
        {'loss_bbox': 1.5, 'loss_bce': 15.0},
    ]
    whole = {'loss_bbox': 1.5, 'loss_bbox_dn_0': 5.0, 'loss_bce': 10.0}
    assert [eval(said) for said in aligned] == [whole, whole]


# ---- the stand-in does what it stands in for


def one_batch(labels: List[List[int]]) -> Tuple[torch.Tensor, List[Dict[str, torch.Tensor]]]:
    generator = torch.Generator().manual_seed(0)
    boxes = (torch.rand(len(one), 4, generator=generator) * 0.4 + 0.3 for one in labels)
    targets = [{'labels': torch.tensor(one, dtype=torch.int64), 'boxes': box} for one, box in zip(labels, boxes)]
    return torch.randn(len(labels), 3, 32, 32, generator=generator), targets


@pytest.fixture
def network() -> Iterator[SmallRTDETR]:
    torch.manual_seed(0)
    return SmallRTDETR(NUM_CLASSES)


def test_without_targets_denoising_losses_and_a_gradient_are_missing(network: SmallRTDETR) -> None:
    keys = {}
    for labels in ([[1, 0], []], [[], []]):
        network.zero_grad()
        images, targets = one_batch(labels)
        losses = SetCriterion(NUM_CLASSES)(network(images, targets), targets)
        sum(losses.values()).backward()
        unreached = [name for name, parameter in network.named_parameters() if parameter.grad is None]
        keys[len(labels[0])] = (set(losses), unreached)
    names = {f'loss_{kind}{suffix}' for kind in ('bce', 'bbox') for suffix in ('', '_aux_0', '_aux_1')}
    denoising = {f'loss_{kind}_dn_{i}' for kind in ('bce', 'bbox') for i in range(2)}
    assert keys == {2: (names | denoising, []), 0: (names, ['denoising_class_embed.weight'])}


@pytest.mark.parametrize('label', [NUM_CLASSES + 1, 600, -1])
def test_labels_are_indices_before_any_loss(network: SmallRTDETR, label: int) -> None:
    images, targets = one_batch([[1, label]])
    with pytest.raises(IndexError, match='index out of range in self'):
        network(images, targets)
    guarded, (tally,) = guard_targets(targets, NUM_CLASSES, box_format='cxcywh', return_tally=True)
    assert tally.values == {label: 1}
    losses = SetCriterion(NUM_CLASSES)(network(images, guarded), guarded)
    assert sum(losses.values()).isfinite()
