"""RankGuardHook through the real Runner."""

from __future__ import annotations

import os.path as osp
from typing import Any, Dict

import pytest
import torch
from mmengine.config import Config
from mmengine.hooks import Hook
from mmengine.registry import HOOKS
from ranks import run_ranks
from small_runs import Run, tiny_config
from this_stack import skip_where_torch_fails

pytestmark = pytest.mark.slow

ITERS = 6
HERE = osp.dirname(__file__)


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


def test_clean_data_trains_as_without_the_hook(clean_cityscapes: str, work_dir: str) -> None:
    guarded = config_of(clean_cityscapes, osp.join(work_dir, 'guarded'))
    plain = config_of(clean_cityscapes, osp.join(work_dir, 'plain'))
    plain.custom_hooks.pop()
    left, right = (state_of(Run(config).train()) for config in (guarded, plain))
    assert left.keys() == right.keys()
    assert [name for name in left if not torch.equal(left[name], right[name])] == []


def test_a_compiled_step_is_guarded_and_given_back(clean_cityscapes: str, work_dir: str) -> None:
    """The agreement stands between two graphs; behind the training there is the compiled step, not the class's."""
    config = config_of(clean_cityscapes, osp.join(work_dir, 'compiled'), iters=4)
    config.compile = dict(backend='eager')
    try:
        compiled = Run(config).train()
    except torch._dynamo.exc.InternalTorchDynamoError:
        stock = config_of(clean_cityscapes, osp.join(work_dir, 'stock'), iters=4)
        stock.custom_hooks = [hook for hook in stock.custom_hooks if hook['type'] != 'RankGuardHook']
        stock.compile = config.compile
        skip_where_torch_fails(Run(stock).train)
        raise
    plain = state_of(Run(config_of(clean_cityscapes, osp.join(work_dir, 'plain'), iters=4)).train())
    for name, value in state_of(compiled).items():
        torch.testing.assert_close(value, plain[name], msg=lambda reported, name=name: f'{name}: {reported}')
    assert hasattr(vars(compiled.runner.model)['train_step'], '_torchdynamo_orig_callable')
    assert 'parse_losses' not in vars(compiled.runner.model)


def test_everything_is_put_back_and_a_second_training_is_guarded(clean_cityscapes: str, work_dir: str) -> None:
    run = Run(config_of(clean_cityscapes, work_dir))
    for _ in range(2):
        run.runner.train_loop._iter = 0
        run.train()
        assert not {'parse_losses', 'train_step'} & set(vars(run.runner.model))
        assert 'run' not in vars(run.runner.train_loop)


ONE_RAISES = """
sys.path.insert(0, sys.argv[3])
import time
from test_rank_guard import config_of
from mmguard.distributed import AbsentRankError
from small_runs import Run
config = distributed(config_of(sys.argv[1], sys.argv[2], iters=4))
if rank == 1:
    config.model.decode_head.loss_decode = dict(type='CrossEntropyLoss')
    config.custom_hooks.insert(0, dict(type='SpoilLabelsHook', iteration=2))
start = time.monotonic()
try:
    Run(config).train()
except AbsentRankError as error:
    print('ABSENT', error.ranks, str(error), flush=True)
except IndexError:
    time.sleep(6)  # its process lives on, as one does that waits for a communicator to end
    print('SAID it', flush=True)
import os
os._exit(0)
"""


UNUSED = """
import os, tempfile
from mmengine.hooks import Hook
from mmengine.model import BaseModel
from mmengine.runner import Runner
from torch import nn
import mmguard

class Model(BaseModel):
    def __init__(self):
        super().__init__()
        self.used, self.branch = nn.Linear(2, 1), nn.Linear(2, 1)
        self.calls = 0

    def forward(self, x, mode):
        self.calls += 1
        loss = self.used(x).mean()
        return {'loss': loss + self.branch(x).mean() if self.calls < 3 else loss}

runner = Runner(
    Model(),
    sys.argv[1],
    train_dataloader=dict(
        dataset=[dict(x=torch.ones(2))] * 20, batch_size=1, sampler=dict(type='DefaultSampler', shuffle=False),
        collate_fn=dict(type='default_collate')),
    optim_wrapper=dict(optimizer=dict(type='SGD', lr=0.1)),
    train_cfg=dict(by_epoch=True, max_epochs=1),
    custom_hooks=[dict(type='RankGuardHook')],
    launcher='pytorch', env_cfg=dict(dist_cfg=dict(backend='gloo')),
    cfg=dict(model_wrapper_cfg=dict(type='MMDistributedDataParallel', device_ids=None, find_unused_parameters=False)),
)
try:
    runner.train()
except RuntimeError as error:
    print('ERROR', str(error).splitlines()[0], flush=True)
os._exit(0)
"""


def test_a_branch_that_is_left_from_some_iteration_on_is_named(work_dir: str) -> None:
    """The losses are called the same as before, so it is DistributedDataParallel that notices."""
    for rank in run_ranks(UNUSED, work_dir):
        (said,) = rank.said('ERROR') or [rank.output[-3000:]]
        assert said.startswith('branch.weight, branch.bias')
        assert 'find_unused_parameters=True' in said


@HOOKS.register_module()
class SpoilLabelsHook(Hook):
    """A label that the stock loss dies of."""

    def __init__(self, iteration: int) -> None:
        self.iteration = iteration

    def before_train_iter(self, runner: Any, batch_idx: int, data_batch: Any = None) -> None:
        if runner.iter == self.iteration:
            data_batch['data_samples'][0].gt_sem_seg.data[:] = 77


def test_a_rank_that_dies_of_an_error_tells_the_other_which(clean_cityscapes: str, work_dir: str) -> None:
    quiet, dies = run_ranks(ONE_RAISES, clean_cityscapes, work_dir, HERE)
    assert dies.said('SAID') == ['it'], dies.output[-3000:]
    (reported,) = quiet.said('ABSENT')
    assert reported.startswith('[1] ')
    assert 'IndexError: Target 77' in reported
