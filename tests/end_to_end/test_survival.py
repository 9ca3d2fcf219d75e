"""What the stock PIDNet does with a label that is no class, and what the guarded one does."""

from __future__ import annotations

import math

import pytest
from mmengine.config import Config
from small_runs import dataset_config, expected_samples, shrink, train
from this_stack import IS_ONEDL

from mmguard.compat.stack import config_file

pytestmark = pytest.mark.slow

STOCK = 'mmseg::pidnet/pidnet-s_2xb6-120k_1024x1024-cityscapes.py'


def stock_pidnet(root: str, work_dir: str) -> Config:
    config = shrink(Config.fromfile(config_file(STOCK)), root, work_dir, iters=4)
    config.update(val_dataloader=None, val_cfg=None, val_evaluator=None)
    return config


def test_stock_pidnet_with_its_class_weights_dies_of_an_ignored_pixel(clean_cityscapes: str, work_dir: str) -> None:
    """F1, F3."""
    config = stock_pidnet(clean_cityscapes, work_dir)
    config.model.decode_head.loss_decode[0].avg_non_ignore = IS_ONEDL
    with pytest.raises((IndexError, RuntimeError)):
        train(config)


def test_three_lines_and_guarded_losses_keep_the_same_run_alive(cityscapes: str, work_dir: str) -> None:
    """No guard in the pipeline: GuardedCrossEntropyLoss and GuardedLoss alone."""
    config = stock_pidnet(cityscapes, work_dir)
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


def test_the_guard_before_generate_edge_draws_no_edges_around_invalid_pixels(cityscapes: str) -> None:
    from mmseg.registry import DATASETS
    from small_runs import GUARD, LOAD, PACK

    def edges(*steps: dict) -> int:
        pipeline = [*LOAD, *steps, PACK]
        dataset = DATASETS.build(dict(dataset_config(cityscapes, 'train', pipeline), _scope_='mmseg'))
        return int(dataset[3]['data_samples'].gt_edge_map.data.sum())

    edge = dict(type='GenerateEdge', edge_width=4)
    assert edges(GUARD, edge) < edges(edge)
