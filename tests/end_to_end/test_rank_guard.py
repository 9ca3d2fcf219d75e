"""RankGuardHook through the real Runner."""

from __future__ import annotations

import os.path as osp
from typing import Any, Dict, Tuple

import pytest
import torch
from mmengine.config import Config
from mmengine.hooks import Hook
from mmengine.registry import HOOKS
from ranks import run_ranks
from small_runs import Run, tiny_config

from mmguard import LabelGuardError

pytestmark = pytest.mark.slow

ITERS = 6
HERE = osp.dirname(__file__)


@HOOKS.register_module()
class PoisonHook(Hook):
    """Turns the images of some iterations into NaN, as a broken decoder or a division by zero does."""

    priority = 'VERY_HIGH'

    def __init__(self, iterations: Tuple[int, ...], rank: int = 0) -> None:
        self.iterations, self.rank = iterations, rank

    def before_train_iter(self, runner: Any, batch_idx: int, data_batch: Any = None) -> None:
        if runner.iter in self.iterations and runner.rank == self.rank:
            data_batch['inputs'] = [torch.full_like(image.float(), float('nan')) for image in data_batch['inputs']]


def config_of(root: str, work_dir: str, iters: int = ITERS, **guard: Any) -> Config:
    """Momentum, a schedule and batch normalisation: everything that an iteration can leave traces in."""
    config = tiny_config(root, work_dir, iters=iters)
    config.custom_hooks.append(dict(type='RankGuardHook', **guard))
    config.optim_wrapper.optimizer.momentum = 0.9
    config.param_scheduler = [
        dict(type='LinearLR', start_factor=0.1, begin=0, end=3, by_epoch=False),
        dict(type='PolyLR', power=0.9, eta_min=1e-4, begin=3, end=20, by_epoch=False),
    ]
    return config


def state_of(run: Run) -> Dict[str, Any]:
    """Weights, buffers, momentum buffers and learning rate."""
    optimizer = run.runner.optim_wrapper.optimizer
    state = {name: value.clone() for name, value in run.runner.model.state_dict().items()}
    for number, buffers in optimizer.state_dict()['state'].items():
        state[f'momentum {number}'] = buffers['momentum_buffer'].clone()
    state['lr'] = torch.tensor([group['lr'] for group in optimizer.param_groups])
    return state


def assert_same(left: Dict[str, Any], right: Dict[str, Any]) -> None:
    assert left.keys() == right.keys()
    different = [name for name in left if not torch.equal(left[name], right[name])]
    assert not different


def test_a_skipped_iteration_leaves_no_trace(clean_cityscapes: str, work_dir: str) -> None:
    config = config_of(clean_cityscapes, osp.join(work_dir, 'skipped'), on_nonfinite='skip')
    config.custom_hooks.append(dict(type='PoisonHook', iterations=(2, 3)))
    skipped = Run(config).train()
    # The same run without the iterations: the sampler deals out the images that are left.
    reference = config_of(clean_cityscapes, osp.join(work_dir, 'reference'), iters=ITERS - 2)
    reference.train_dataloader.dataset.indices = [0, 1, 2, 3, 0, 1, 2, 3]
    assert_same(state_of(skipped), state_of(Run(reference).train()))
    assert 'guard: iter 3 skipped, losses that are not finite: rank 0: decode.loss_ce (samples: ' in skipped.log
    assert 'aachen_000004_000019_gtFine_labelTrainIds.png' in skipped.log
    assert skipped.runner.message_hub.get_scalar('train/guard/skipped_iterations').data[0].tolist() == [
        0,
        0,
        1,
        2,
        2,
        2,
    ]


def test_without_it_the_weights_are_lost(clean_cityscapes: str, work_dir: str) -> None:
    config = config_of(clean_cityscapes, work_dir)
    config.custom_hooks.append(dict(type='PoisonHook', iterations=(2,)))
    state = state_of(Run(config).train())
    assert any(value.isnan().any() for value in state.values())


def test_clean_data_trains_as_without_the_hook(clean_cityscapes: str, work_dir: str) -> None:
    guarded = config_of(clean_cityscapes, osp.join(work_dir, 'guarded'), on_nonfinite='skip', grad_report=True)
    plain = config_of(clean_cityscapes, osp.join(work_dir, 'plain'))
    plain.custom_hooks.pop()
    assert_same(state_of(Run(guarded).train()), state_of(Run(plain).train()))


def test_too_many_in_a_row_stop_the_run(clean_cityscapes: str, work_dir: str) -> None:
    config = config_of(clean_cityscapes, work_dir, on_nonfinite='skip', max_skipped=1)
    config.custom_hooks.append(dict(type='PoisonHook', iterations=(1, 3, 4)))
    with pytest.raises(LabelGuardError, match=r'2 iterations in a row .* more than max_skipped=1'):
        Run(config).train()


def test_raise_names_the_samples(clean_cityscapes: str, work_dir: str) -> None:
    config = config_of(clean_cityscapes, work_dir, on_nonfinite='raise')
    config.custom_hooks.append(dict(type='PoisonHook', iterations=(1,)))
    with pytest.raises(LabelGuardError, match=r'not finite: rank 0: decode\.loss_ce \(samples: .*aachen_000002'):
        Run(config).train()


def test_gradients_that_are_not_finite_are_named(clean_cityscapes: str, work_dir: str) -> None:
    config = config_of(clean_cityscapes, work_dir, grad_report=True)
    config.custom_hooks.append(dict(type='PoisonHook', iterations=(1,)))
    log = Run(config).train().log
    assert 'guard: iter 2: gradients of ' in log
    assert 'nearest to the loss: decode_head.conv_seg.' in log


TWO_RANKS = """
sys.path.insert(0, sys.argv[4])
from test_rank_guard import PoisonHook, config_of, state_of
from small_runs import Run
iters, indices, poisoned = eval(sys.argv[3])
config = distributed(config_of(sys.argv[1], sys.argv[2], iters=iters, on_nonfinite='skip'))
config.train_dataloader.dataset.indices = indices
config.custom_hooks.append(dict(type='PoisonHook', iterations=poisoned, rank=1))
run = Run(config).train()
digest = hashlib.sha256()
for name, value in state_of(run).items():
    if 'running' not in name and 'tracked' not in name:  # batch statistics are those of each rank's own images
        digest.update(value.numpy().tobytes())
print('STATE', digest.hexdigest(), flush=True)
dist.destroy_process_group()
"""


def test_two_ranks_leave_it_out_together(clean_cityscapes: str, work_dir: str) -> None:
    """Only rank 1 has a loss that is not finite; parameters, momentum and learning rate are those without it."""
    whole, without = [0, 1, 2, 3, 4, 5, 6, 7, 0, 2, 4, 6], [0, 1, 2, 3, 0, 2, 4, 6]
    skipped = run_ranks(TWO_RANKS, clean_cityscapes, osp.join(work_dir, 'a'), repr((3, whole, (1,))), HERE)
    reference = run_ranks(TWO_RANKS, clean_cityscapes, osp.join(work_dir, 'b'), repr((2, without, ())), HERE)
    for rank in (*skipped, *reference):
        assert rank.returncode == 0, rank.output[-3000:]
    (state,) = reference[0].said('STATE')
    assert [rank.said('STATE') for rank in (*skipped, *reference)] == [[state]] * 4
    # The other ranks of mmengine log errors alone.
    assert 'guard: iter 2 skipped, losses that are not finite: rank 1: decode.loss_ce (samples: ' in skipped[0].output
