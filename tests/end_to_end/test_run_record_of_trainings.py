"""``label_guard.json`` of real trainings: what was valid, and sums that an independent count gives, too."""

from __future__ import annotations

import os.path as osp
from collections import Counter

import pytest
from small_runs import (
    LOAD,
    NUM_CLASSES,
    PACK,
    SIZE,
    TRAIN_IMAGES,
    VAL_IMAGES,
    Run,
    add_loop,
    expected_samples,
    tiny_config,
    train,
)

pytestmark = pytest.mark.slow  # trains small models


def test_totals_are_those_of_all_iterations(cityscapes: str, work_dir: str) -> None:
    config = tiny_config(cityscapes, work_dir, iters=8)  # every image twice
    add_loop(config, 'val')
    config.train_cfg.val_interval = 4
    modes = train(config).modes
    for mode, images, loops in (('train', TRAIN_IMAGES, 2), ('val', VAL_IMAGES, 2)):
        expected = expected_samples(cityscapes, f'gtFine/{mode}')
        skipped = [sample['skipped'] for sample in expected]
        values: Counter = sum((Counter(sample['values']) for sample in expected), Counter())
        totals = modes[mode]['totals']
        assert totals['pixels'] == dict(
            total=loops * images * SIZE**2,
            skipped=loops * sum(skipped),
            remapped=0,
            values={value: loops * count for value, count in values.items()},
        )
        assert (totals['files'], totals['offending_files']) == (images, sum(map(bool, skipped)))
        assert modes[mode]['ended'] is True
        (guard,) = modes[mode]['guards']
        assert (guard['kind'], guard['num_classes'], guard['ignore_index']) == ('pixels', NUM_CLASSES, 255)
        assert modes[mode]['data_roots'] == [cityscapes]
        assert len(modes[mode]['classes']) == NUM_CLASSES
    assert (modes['train']['iter'], modes['train']['totals']['iterations']) == (8, 8)
    (spaces,) = modes['train']['losses'].values()
    assert spaces == [dict(kind='pixels', num_classes=NUM_CLASSES, ignore_index=255)]
    assert modes['val']['losses'] == {}


def test_a_clean_run_leaves_its_totals_and_no_line(clean_cityscapes: str, work_dir: str) -> None:
    run = train(tiny_config(clean_cityscapes, work_dir, iters=2))
    totals = run.modes['train']['totals']
    assert totals['pixels'] == dict(total=4 * SIZE**2, skipped=0, remapped=0, values={})
    assert (totals['iterations'], totals['offending_iterations']) == (2, 0)
    assert not osp.exists(osp.join(run.log_dir, 'label_guard.jsonl'))


def test_what_only_the_loss_saw_is_there(cityscapes: str, work_dir: str) -> None:
    modes = train(tiny_config(cityscapes, work_dir, pipeline=[*LOAD, PACK])).modes
    (count,) = modes['train']['totals']['losses'].values()
    skipped = sum(sample['skipped'] for sample in expected_samples(cityscapes, 'gtFine/train'))
    assert count == dict(seen=TRAIN_IMAGES * SIZE**2, skipped=skipped, remapped=0)
    assert modes['train']['guards'] == []


def test_a_training_that_dies_has_not_ended(cityscapes: str, work_dir: str) -> None:
    config = tiny_config(cityscapes, work_dir)
    config.custom_hooks.append(dict(type='StopAt'))
    run = Run(config)
    with pytest.raises(FloatingPointError):
        run.train()
    assert run.modes['train']['ended'] is False
