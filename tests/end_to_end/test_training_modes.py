"""EMA, accumulation, mixed precision, a frozen head, a swapped loss, a log by epoch: the counts stay what they are."""

from __future__ import annotations

import math
import re
from contextlib import contextmanager
from typing import Any, Dict, Iterator, List

import pytest
import torch
from mmengine.config import Config
from mmengine.dataset import pseudo_collate
from mmengine.hooks import Hook
from mmengine.optim import OptimWrapper
from mmengine.registry import FUNCTIONS, HOOKS, OPTIM_WRAPPERS
from mmseg.models import EncoderDecoder
from mmseg.registry import MODELS
from small_runs import GUARD, LOAD, PACK, Run, add_loop, expected_samples, shrink, tiny_config, train

from mmguard import LabelGuardError
from mmguard.compat.stack import find_config_file
from mmguard.hooks.discovery import KeepsReports

pytestmark = pytest.mark.slow
SKIPPED = [77, 252, 63, 161]
LOSS = 'decode_head.loss_decode'


@OPTIM_WRAPPERS.register_module(force=True)
class _CpuAmpOptimWrapper(OptimWrapper):
    """mmengine's AmpOptimWrapper refuses a machine without a GPU."""

    @contextmanager
    def optim_context(self, model: Any) -> Iterator[None]:
        with super().optim_context(model), torch.autocast('cpu', dtype=torch.bfloat16):
            yield


def ema(config: Config) -> None:
    config.custom_hooks.append(dict(type='EMAHook'))
    config.train_cfg.val_interval = 2
    add_loop(config, 'val')


def accumulation(config: Config) -> None:
    config.optim_wrapper.accumulative_counts = 2


def mixed_precision(config: Config) -> None:
    config.optim_wrapper.type = '_CpuAmpOptimWrapper'


def activation_checkpoints(config: Config) -> None:
    config.activation_checkpointing = ['backbone']


@MODELS.register_module(force=True)
class _FrozenHead(EncoderDecoder):
    """The head stays in evaluation mode; its loss trains the rest."""

    def train(self, mode: bool = True) -> _FrozenHead:
        super().train(mode)
        self.decode_head.eval()
        return self


def frozen_head(config: Config) -> None:
    config.model.type = '_FrozenHead'


@HOOKS.register_module(force=True)
class _SwapLoss(Hook):
    """Hook that gives the head another loss, like a curriculum."""

    def before_train_iter(self, runner: Any, *_: Any, **__: Any) -> None:
        if runner.iter == 2:
            runner.model.decode_head.loss_decode = MODELS.build(dict(type='GuardedCrossEntropyLoss'))


def loss_swapped_in(config: Config) -> None:
    config.custom_hooks.append(dict(type='_SwapLoss'))


MODES = [ema, accumulation, mixed_precision, activation_checkpoints, frozen_head, loss_swapped_in]


@pytest.mark.parametrize('mode', MODES, ids=lambda mode: mode.__name__)
@pytest.mark.parametrize('pipeline', [[*LOAD, PACK, GUARD], [*LOAD, PACK]], ids=['pipeline', 'loss alone'])
def test_counts_are_those_of_a_plain_run(
    mode: Any, pipeline: List[Dict[str, Any]], cityscapes: str, work_dir: str
) -> None:
    config = tiny_config(cityscapes, work_dir, pipeline=pipeline)
    mode(config)
    lines = train(config).lines()
    in_pipeline = [line['skipped_pixels'] for line in lines]
    in_loss = [line['losses'][LOSS]['skipped'] for line in lines]
    assert (in_pipeline, in_loss) == ((SKIPPED, [0] * 4) if len(pipeline) == 4 else ([0] * 4, SKIPPED))


def test_a_loop_by_iterations_with_a_log_by_epoch(cityscapes: str, work_dir: str) -> None:
    config = tiny_config(cityscapes, work_dir)
    config.log_processor = dict(by_epoch=True)
    run = train(config)
    assert [(line['epoch'], line['iter'], line['step']) for line in run.lines()] == [(1, n, n) for n in (1, 2, 3, 4)]
    assert [line['skipped_pixels'] for line in run.lines()] == SKIPPED


@FUNCTIONS.register_module(force=True)
def own_collate(batch: List[Dict[str, Any]]) -> Any:
    return pseudo_collate(batch)


def test_a_second_training_of_a_runner_is_counted_as_the_first(cityscapes: str, work_dir: str) -> None:
    """It has a data loader of its own, whose collate function may leave reports behind, too."""
    config = tiny_config(cityscapes, work_dir)
    config.train_dataloader.collate_fn = dict(type='own_collate')
    run = train(config)
    run.runner._train_loop = dict(type='IterBasedTrainLoop', max_iters=4)
    run.train()
    assert [line['skipped_pixels'] for line in run.lines()] == [*SKIPPED, *SKIPPED]
    assert isinstance(run.runner.train_dataloader.collate_fn, KeepsReports)


STOCK = 'mmseg::pidnet/pidnet-s_2xb6-120k_1024x1024-cityscapes.py'


def test_three_lines_and_guarded_losses_keep_the_same_run_alive(cityscapes: str, work_dir: str) -> None:
    """No guard in the pipeline: GuardedCrossEntropyLoss and GuardedLoss alone."""
    config = shrink(Config.fromfile(find_config_file(STOCK)), cityscapes, work_dir, iters=4)
    config.update(val_dataloader=None, val_cfg=None, val_evaluator=None)
    config.custom_hooks = [dict(type='LabelGuardHook')]
    losses = config.model.decode_head.loss_decode
    losses[0].type = 'GuardedCrossEntropyLoss'
    losses[1:] = [dict(type='GuardedLoss', loss=loss) for loss in losses[1:]]
    run = train(config)
    assert all(math.isfinite(line['loss']) for line in run.scalars)
    expected = [s for s in expected_samples(cityscapes, 'gtFine/train') if s['skipped']]
    assert [sample for line in run.lines() for sample in line['loss_samples']] == expected
    for line in run.lines():
        skipped = sum(sample['skipped'] for sample in line['loss_samples'])
        counts = {name[-1]: loss['skipped'] for name, loss in line['losses'].items()}
        assert counts['0'] == counts['1'] == skipped
        assert counts['2'] == 0  # the edge map holds 0 and 1 alone
        assert counts['3'] <= skipped  # it sees the labels near the predicted edges


#: Share of skipped pixels after each of the first four iterations: 77, 252, 63 and 161 of 8192 each.
RATIOS = [77 / 8192, 329 / 16384, 392 / 24576, 553 / 32768]


def test_training_stops_once_the_running_ratio_exceeds_the_limit(cityscapes: str, work_dir: str) -> None:
    assert RATIOS[0] < 0.02 < RATIOS[1]
    config = tiny_config(cityscapes, work_dir)
    config.custom_hooks[0].max_skipped_ratio = 0.02
    run = Run(config)
    with pytest.raises(LabelGuardError, match=r'2\.01 %.*max_skipped_ratio=0\.02.*/gtFine/train/') as error:
        run.train()
    assert run.runner.iter == 1  # in the second iteration
    assert [line['iter'] for line in run.lines()] == [1, 2]
    assert {tally.skipped for tally in error.value.tallies} == {77, 42, 210}
    assert '329 of 16,384' in run.log  # the table is there, too


def test_the_ratio_is_that_of_the_whole_run_also_after_a_resume(
    cityscapes: str, work_dir: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv('TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD', '1')
    config = tiny_config(cityscapes, work_dir, iters=2)
    config.default_hooks.checkpoint = dict(type='CheckpointHook', by_epoch=False, interval=2)
    train(config)
    resumed = tiny_config(cityscapes, work_dir)
    resumed.resume = True
    resumed.custom_hooks[0].max_skipped_ratio = 0.015
    assert RATIOS[2] > 0.015 > 63 / 8192  # the third iteration alone would not exceed it
    run = Run(resumed)
    with pytest.raises(LabelGuardError, match=r'\b1\.6 %'):
        run.train()
    assert run.runner.iter == 2


@pytest.mark.parametrize('workers', [0, 1])
@pytest.mark.parametrize('place', ['before', 'after'])
def test_raise_in_the_transform_names_the_file(place: str, workers: int, cityscapes: str, work_dir: str) -> None:
    guard = dict(GUARD, on_invalid='raise')
    pipeline = [*LOAD, guard, PACK] if place == 'before' else [*LOAD, PACK, guard]
    config = tiny_config(cityscapes, work_dir, pipeline=pipeline)
    config.train_dataloader.update(num_workers=workers)
    config.train_dataloader.dataset.indices = [1, 4, 5]  # the third holds the label 19
    with pytest.raises(LabelGuardError) as error:
        train(config)
    message = str(error.value)
    assert 'gtFine/train/aachen/aachen_000005_000019_gtFine_labelTrainIds.png' in message
    assert re.search(r'63 of 4,096.*\b19\b', message)
    assert '10, 0)' in message


@pytest.mark.parametrize('wrapped', [False, True])
def test_raise_in_the_loss_names_the_file(wrapped: bool, cityscapes: str, work_dir: str) -> None:
    config = tiny_config(cityscapes, work_dir, pipeline=[*LOAD, PACK])
    loss = dict(type='GuardedCrossEntropyLoss')
    if wrapped:
        loss = dict(type='GuardedLoss', loss=dict(type='TverskyLoss'))
    config.model.decode_head.loss_decode = dict(loss, on_invalid='raise')
    config.train_dataloader.dataset.indices = [1, 4, 7, 5]
    with pytest.raises(LabelGuardError) as error:
        train(config)
    named = 'gtFine/train/aachen/aachen_000005_000019_gtFine_labelTrainIds.png'
    assert str(error.value).startswith(f'{cityscapes}/{named}: ')
    assert error.value.positions[0] == (1, 10, 0)
