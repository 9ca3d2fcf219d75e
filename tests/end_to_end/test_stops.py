"""Where a run is meant to stop: max_skipped_ratio and on_invalid='raise'."""

from __future__ import annotations

import re

import pytest
from small_runs import GUARD, LOAD, PACK, Run, tiny_config, train

from mmguard import LabelGuardError

pytestmark = pytest.mark.slow

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


def test_training_goes_on_at_the_limit(cityscapes: str, work_dir: str) -> None:
    config = tiny_config(cityscapes, work_dir)
    config.custom_hooks[0].max_skipped_ratio = RATIOS[1]
    assert len(train(config).lines()) == 4


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


def test_the_limit_also_holds_for_the_losses_alone(cityscapes: str, work_dir: str) -> None:
    config = tiny_config(cityscapes, work_dir, pipeline=[*LOAD, PACK])
    config.custom_hooks[0].max_skipped_ratio = 0.02
    run = Run(config)
    with pytest.raises(LabelGuardError, match='max_skipped_ratio'):
        run.train()
    assert [line['iter'] for line in run.lines()] == [1, 2]


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
