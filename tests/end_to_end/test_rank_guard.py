"""RankGuardHook through the real Runner."""

from __future__ import annotations

import os.path as osp
import re
from typing import Any, Dict, Tuple

import pytest
import torch
from mmengine.config import Config
from mmengine.hooks import EMAHook, Hook
from mmengine.optim import AmpOptimWrapper
from mmengine.registry import HOOKS, OPTIM_WRAPPERS
from ranks import run_ranks
from small_runs import Run, tiny_config
from this_stack import skip_where_torch_fails

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


@OPTIM_WRAPPERS.register_module()
class CpuAmpOptimWrapper(AmpOptimWrapper):
    """mmengine's, which is for GPUs alone, with torch's gradient scaler for the CPU."""

    def __init__(self, **arguments: Any) -> None:
        super(AmpOptimWrapper, self).__init__(**arguments)
        self.cast_dtype = torch.bfloat16
        self._scale_update_param = None
        self.loss_scaler = torch.amp.GradScaler('cpu', init_scale=256.0, growth_interval=2)


def state_of(run: Run) -> Dict[str, Any]:
    """Weights, buffers, momentum buffers, learning rate, gradient scaler and the average of the weights."""
    optimizer = run.runner.optim_wrapper.optimizer
    state = {name: value.clone() for name, value in run.runner.model.state_dict().items()}
    for number, buffers in optimizer.state_dict()['state'].items():
        state[f'momentum {number}'] = buffers['momentum_buffer'].clone()
    scaler = getattr(run.runner.optim_wrapper, 'loss_scaler', None)
    if scaler is not None:
        state['scaler'] = torch.tensor([scaler.get_scale(), scaler.state_dict()['_growth_tracker']])
    for hook in run.runner.hooks:
        if isinstance(hook, EMAHook):
            state.update({f'average {name}': value.clone() for name, value in hook.ema_model.state_dict().items()})
    state['lr'] = torch.tensor([group['lr'] for group in optimizer.param_groups])
    return state


def count_skipped(run: Run) -> int:
    """Return how many lines name a loss that is not finite."""
    return len(re.findall(r'guard: iter \d+ .*decode\.loss_ce', run.log))


def assert_same(left: Dict[str, Any], right: Dict[str, Any]) -> None:
    assert left.keys() == right.keys()
    different = [name for name in left if not torch.equal(left[name], right[name])]
    assert not different


@pytest.mark.parametrize(
    'training',
    [
        dict(),
        dict(accumulative_counts=2),
        dict(type='CpuAmpOptimWrapper'),
        dict(type='CpuAmpOptimWrapper', accumulative_counts=2),
    ],
    ids=['plain', 'accumulated', 'mixed precision', 'mixed precision, accumulated'],
)
def test_a_skipped_iteration_leaves_no_trace(clean_cityscapes: str, work_dir: str, training: Dict[str, Any]) -> None:
    """The 2nd and the 3rd: with gradients accumulated over two, the end of one step and the begin of the next."""
    if 'type' in training:  # torch < 2.3 scales gradients on a GPU alone
        skip_where_torch_fails(lambda: torch.amp.GradScaler('cpu'))

    def config(name: str, iters: int) -> Config:
        config = config_of(clean_cityscapes, osp.join(work_dir, name), iters=iters, on_nonfinite='skip')
        config.optim_wrapper.update(training)
        config.custom_hooks.append(dict(type='EMAHook', momentum=0.5))
        return config

    spoilt = config('skipped', ITERS)
    spoilt.custom_hooks.append(dict(type='PoisonHook', iterations=(1, 2)))
    skipped = Run(spoilt).train()
    # The same run without the iterations: the sampler deals out the images that are left.
    reference = config('reference', ITERS - 2)
    reference.train_dataloader.dataset.indices = [0, 1, 6, 7, 0, 1, 2, 3]
    assert_same(state_of(skipped), state_of(Run(reference).train()))
    assert re.search(r'guard: iter 2 .*decode\.loss_ce.*aachen_000002_000019_gtFine_labelTrainIds\.png', skipped.log)
    counted = skipped.runner.message_hub.get_scalar('train/guard/skipped_iterations').data[0].tolist()
    assert counted == [0, 1, 2, 2, 2, 2]


def test_clean_data_trains_as_without_the_hook(clean_cityscapes: str, work_dir: str) -> None:
    guarded = config_of(clean_cityscapes, osp.join(work_dir, 'guarded'), on_nonfinite='skip', grad_report=True)
    plain = config_of(clean_cityscapes, osp.join(work_dir, 'plain'))
    plain.custom_hooks.pop()
    assert_same(state_of(Run(guarded).train()), state_of(Run(plain).train()))


def test_a_compiled_step_is_guarded_and_given_back(clean_cityscapes: str, work_dir: str) -> None:
    """The agreement stands between two graphs; behind the training there is the compiled step, not the class's."""
    config = config_of(clean_cityscapes, osp.join(work_dir, 'compiled'), iters=4, on_nonfinite='skip')
    config.custom_hooks.append(dict(type='PoisonHook', iterations=(1, 2)))
    config.compile = dict(backend='eager')
    try:
        compiled = Run(config).train()
    except torch._dynamo.exc.InternalTorchDynamoError:
        stock = config_of(clean_cityscapes, osp.join(work_dir, 'stock'), iters=4)
        stock.custom_hooks = [hook for hook in stock.custom_hooks if hook['type'] != 'RankGuardHook']
        stock.compile = config.compile
        skip_where_torch_fails(Run(stock).train)
        raise
    config = config_of(clean_cityscapes, osp.join(work_dir, 'plain'), iters=4, on_nonfinite='skip')
    config.custom_hooks.append(dict(type='PoisonHook', iterations=(1, 2)))
    plain = state_of(Run(config).train())
    for name, value in state_of(compiled).items():
        torch.testing.assert_close(value, plain[name], msg=lambda reported, name=name: f'{name}: {reported}')
    assert count_skipped(compiled) == 2
    assert hasattr(vars(compiled.runner.model)['train_step'], '_torchdynamo_orig_callable')
    assert 'parse_losses' not in vars(compiled.runner.model)


def test_too_many_in_a_row_stop_the_run(clean_cityscapes: str, work_dir: str) -> None:
    config = config_of(clean_cityscapes, work_dir, on_nonfinite='skip', max_skipped=1)
    config.custom_hooks.append(dict(type='PoisonHook', iterations=(1, 3, 4)))
    with pytest.raises(LabelGuardError, match='max_skipped=1'):
        Run(config).train()


def test_raise_names_the_samples(clean_cityscapes: str, work_dir: str) -> None:
    config = config_of(clean_cityscapes, work_dir, on_nonfinite='raise')
    config.custom_hooks.append(dict(type='PoisonHook', iterations=(1,)))
    with pytest.raises(LabelGuardError, match=r'decode\.loss_ce.*aachen_000002'):
        Run(config).train()


def test_gradients_that_are_not_finite_are_named(clean_cityscapes: str, work_dir: str) -> None:
    config = config_of(clean_cityscapes, work_dir, grad_report=True)
    config.custom_hooks.append(dict(type='PoisonHook', iterations=(1,)))
    log = Run(config).train().log
    assert re.search(r'guard: iter 2: .*decode_head\.conv_seg\.', log)


@pytest.mark.parametrize('first', [True, False])
def test_a_hook_that_looks_for_a_loss_does_not_end_the_run(clean_cityscapes: str, work_dir: str, first: bool) -> None:
    """mmdet's, as in the stock configs of SSD and YOLACT; it sees every loss that is trained on."""
    pytest.importorskip('mmdet.engine.hooks')
    config = config_of(clean_cityscapes, work_dir, on_nonfinite='skip')
    looks = dict(type='mmdet.CheckInvalidLossHook', interval=1, priority='VERY_LOW')
    config.custom_hooks.insert(0 if first else len(config.custom_hooks), looks)
    config.custom_hooks.append(dict(type='PoisonHook', iterations=(1, ITERS - 1)))
    run = Run(config).train()
    assert count_skipped(run) == 2
    (hook,) = (hook for hook in run.runner.hooks if type(hook).__name__ == 'CheckInvalidLossHook')
    assert 'after_train_iter' not in vars(hook), 'put back'
    with pytest.raises(AssertionError):
        hook.after_train_iter(run.runner, 0, outputs={'loss': torch.tensor(float('nan'))})


def test_everything_is_put_back_and_a_second_training_is_guarded(clean_cityscapes: str, work_dir: str) -> None:
    config = config_of(clean_cityscapes, work_dir, on_nonfinite='skip', grad_report=True)
    config.custom_hooks.append(dict(type='PoisonHook', iterations=(1,)))
    run = Run(config)
    for times in 1, 2:
        run.runner.train_loop._iter = 0
        run.train()
        assert count_skipped(run) == times
        model = run.runner.model
        assert not {'parse_losses', 'train_step'} & set(vars(model))
        assert 'watched_step' not in repr(vars(run.runner.optim_wrapper)['step'])  # mmengine's schedulers put one there
        assert 'run' not in vars(run.runner.train_loop)
        assert not any(getattr(one, '_post_accumulate_grad_hooks', None) for one in model.parameters())


TWO_RANKS = """
sys.path.insert(0, sys.argv[3])
from test_rank_guard import PoisonHook, config_of, state_of
from small_runs import Run
for number, (iters, indices, poisoned) in enumerate(eval(sys.argv[4])):
    config = distributed(config_of(sys.argv[1], f'{sys.argv[2]}/{number}', iters=iters, on_nonfinite='skip'))
    config.experiment_name = config.visualizer.name = f'two-ranks-{number}'
    config.train_dataloader.dataset.indices = indices
    config.custom_hooks.append(dict(type='PoisonHook', iterations=poisoned, rank=1))
    run = Run(config).train()
    digest = hashlib.sha256()
    for name, value in state_of(run).items():
        if 'running' not in name and 'tracked' not in name:  # batch statistics are those of each rank's own images
            digest.update(value.numpy().tobytes())
    print('STATE', digest.hexdigest(), flush=True)
leave()
"""


def test_two_ranks_leave_it_out_together(clean_cityscapes: str, work_dir: str) -> None:
    """Only rank 1 has a loss that is not finite; parameters, momentum and learning rate are those without it."""
    skipped = (3, [0, 1, 2, 3, 4, 5, 6, 7, 0, 2, 4, 6], (1,))
    reference = (2, [0, 1, 2, 3, 0, 2, 4, 6], ())
    another = (2, [0, 1, 2, 3, 4, 5, 6, 7], ())
    ranks = run_ranks(TWO_RANKS, clean_cityscapes, work_dir, HERE, repr([skipped, reference, another]))
    for rank in ranks:
        assert rank.returncode == 0, rank.output[-3000:]
    skipped_state, reference_state, another_state = ranks[0].said('STATE')
    assert ranks[1].said('STATE') == [skipped_state, reference_state, another_state]
    assert skipped_state == reference_state != another_state
    # The other ranks of mmengine log errors alone.
    assert re.search(r'guard: iter 2 .*decode\.loss_ce', ranks[0].output)


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
