"""EMA, gradient accumulation, mixed precision, log by epoch of a loop by iterations: the counts stay what they are."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any, Dict, Iterator, List

import pytest
import torch
from mmengine.config import Config
from mmengine.dataset import pseudo_collate
from mmengine.optim import OptimWrapper
from mmengine.registry import FUNCTIONS, OPTIM_WRAPPERS
from small_runs import GUARD, LOAD, PACK, add_loop, tiny_config, train

from mmguard.hooks.batches import KeepsReports

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


MODES = [ema, accumulation, mixed_precision, activation_checkpoints]


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


def test_a_hard_example_sampler_that_asks_the_loss_is_not_counted_twice(cityscapes: str, work_dir: str) -> None:
    config = tiny_config(cityscapes, work_dir, pipeline=[*LOAD, PACK])
    config.model.decode_head.sampler = dict(type='OHEMPixelSampler', min_kept=100)
    assert [line['losses'][LOSS]['skipped'] for line in train(config).lines()] == SKIPPED


def test_a_loop_by_iterations_with_a_log_by_epoch(cityscapes: str, work_dir: str) -> None:
    config = tiny_config(cityscapes, work_dir)
    config.log_processor = dict(by_epoch=True)
    config.custom_hooks[0].interval = 3
    run = train(config)
    assert [(line['epoch'], line['iter'], line['step']) for line in run.lines()] == [(1, 3, 3), (1, 4, 4)]
    assert [line['skipped_pixels'] for line in run.lines()] == [77 + 252 + 63, 161]


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
