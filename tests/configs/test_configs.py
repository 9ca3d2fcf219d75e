"""Every config that a user may copy loads, and trains on labels that kill the stock losses."""

from __future__ import annotations

import copy
import math
import os.path as osp
from glob import glob
from typing import Any, List

import pytest
from mmengine.config import Config
from small_runs import expected_samples, shrink, train, type_name

import mmguard

ROOT = osp.join(osp.dirname(__file__), '..', '..', 'configs')
GUARDED = sorted(osp.relpath(path, ROOT) for path in glob(osp.join(ROOT, '*', '*_guarded.py')))
OUT_OF_RANGE = r'out of (bounds|range)'
FAMILIES = {'pidnet', 'mask2former', 'deeplabv3plus', 'new_style'}

NO_GUARD_IN_PIPELINE = pytest.mark.parametrize(
    'name',
    [
        'mask2former/mask2former_r50_cityscapes_guarded.py',
        'deeplabv3plus/deeplabv3plus_r50-d8_ohem_cityscapes_guarded.py',
    ],
)


def load(name: str) -> Config:
    return Config.fromfile(osp.join(ROOT, name))


def steps_of(config: Config, name: str) -> List[int]:
    """Where a transform stands in the training pipeline."""
    steps = config.train_dataloader.dataset.pipeline
    return [number for number, step in enumerate(steps) if type_name(step['type']) == name]


def unguard_pipeline(config: Config) -> None:
    (number,) = steps_of(config, 'GuardSegLabels')
    del config.train_dataloader.dataset.pipeline[number]


def test_every_family_is_there() -> None:
    assert {osp.dirname(name) for name in GUARDED} == FAMILIES


@pytest.mark.parametrize('name', GUARDED)
def test_config_has_the_hook_and_guards_in_every_pipeline(name: str) -> None:
    config = load(name)
    assert [type_name(hook['type']) for hook in config.custom_hooks] == ['LabelGuardHook']
    for mode in ('train', 'val', 'test'):
        steps = config[f'{mode}_dataloader'].dataset.pipeline
        (guard,) = [step for step in steps if type_name(step['type']) == 'GuardSegLabels']
        assert guard['num_classes'] == config.model.decode_head.num_classes


@pytest.mark.parametrize('name', [name for name in GUARDED if name.startswith('pidnet')])
def test_pidnet_guards_before_the_edges_are_drawn(name: str) -> None:
    from mmseg.datasets import PackSegInputs

    config = load(name)
    guard, edge, pack = (steps_of(config, step) for step in ('GuardSegLabels', 'GenerateEdge', 'PackSegInputs'))
    assert [] < guard < edge < pack
    meta_keys = config.train_dataloader.dataset.pipeline[pack[0]]['meta_keys']
    assert set(meta_keys) == {*PackSegInputs().meta_keys, 'label_guard'}


@pytest.mark.slow
@pytest.mark.parametrize('name', GUARDED)
def test_config_trains_and_validates_on_invalid_labels(name: str, cityscapes: str, camvid: str, work_dir: str) -> None:
    """All images once: the log must say of each label file what is in it."""
    is_camvid = 'camvid' in name
    root, folder, iters = (camvid, 'trainannot', 2) if is_camvid else (cityscapes, 'gtFine/train', 4)
    num_classes = 11 if is_camvid else 19
    run = train(shrink(load(name), root, work_dir, iters=iters))
    expected = [s for s in expected_samples(root, folder, num_classes) if s['skipped']]
    assert len(expected) >= 4
    assert [sample for line in run.lines() for sample in line['samples']] == expected
    # The pipeline has mended everything: nothing is left to the losses, and nothing is counted twice.
    losses = [counts for line in run.lines() for counts in line['losses'].values()]
    assert losses
    assert all(counts == {'skipped': 0, 'remapped': 0} for counts in losses)
    for scalars in run.scalars[:iters]:
        assert math.isfinite(scalars['loss'])
    assert 'mIoU' in run.scalars[-1]
    val_folder = 'valannot' if is_camvid else 'gtFine/val'
    expected_val = [s for s in expected_samples(root, val_folder, num_classes) if s['skipped']]
    assert [sample for line in run.lines('val') for sample in line['samples']] == expected_val


@pytest.mark.slow
@pytest.mark.parametrize('name', [name for name in GUARDED if 'cityscapes' in name])
def test_the_same_config_with_the_stock_losses_and_no_guard_dies(name: str, cityscapes: str, work_dir: str) -> None:
    config = shrink(load(name), cityscapes, work_dir, iters=4)
    unguard_pipeline(config)
    make_stock(config.model)
    with pytest.raises((IndexError, RuntimeError), match=OUT_OF_RANGE):
        train(config)


@pytest.mark.slow
@NO_GUARD_IN_PIPELINE
def test_where_the_head_indexes_by_label_a_guarded_loss_alone_does_not_help(
    name: str, cityscapes: str, work_dir: str
) -> None:
    """F11: why the configs guard the pipeline."""
    config = shrink(load(name), cityscapes, work_dir, iters=4)
    unguard_pipeline(config)
    with pytest.raises((IndexError, RuntimeError), match=OUT_OF_RANGE):
        train(config)


@pytest.mark.slow
@pytest.mark.parametrize('name', [name for name in GUARDED if 'cityscapes' in name])
def test_on_clean_labels_the_losses_are_those_of_the_unguarded_config(
    name: str, clean_cityscapes: str, tmp_path: Any
) -> None:
    guarded = shrink(load(name), clean_cityscapes, str(tmp_path / 'guarded'), iters=2)
    stock = shrink(load(name), clean_cityscapes, str(tmp_path / 'stock'), iters=2)
    unguard_pipeline(stock)
    make_stock(stock.model)
    stock.custom_hooks = []
    for config in (guarded, stock):
        config.update(val_dataloader=None, val_cfg=None, val_evaluator=None)
    if 'pidnet' in name:  # F1: the stock loss dies on an ordinary ignored pixel as soon as it has class weights
        for config in (guarded, stock):
            config.model.decode_head.loss_decode[0].class_weight = None
    losses = [
        [
            {key: value for key, value in line.items() if 'loss' in key and 'guard' not in key}
            for line in run.scalars[:2]
        ]
        for run in (train(guarded), train(stock))
    ]
    assert len(losses[0]) == 2
    for ours, theirs in zip(*losses):
        assert ours == pytest.approx(theirs, rel=1e-6)


def make_stock(config: Any) -> None:
    """Takes the guards off all losses."""
    if isinstance(config, dict):
        kind = config.get('type')
        if kind == 'GuardedLoss':
            inner = copy.deepcopy(config['loss'])
            config.clear()
            config.update(inner)
        elif kind is mmguard.GuardedCrossEntropyLoss:
            config['type'] = 'CrossEntropyLoss'
        elif isinstance(kind, str) and 'Guarded' in kind:
            config['type'] = kind.replace('Guarded', '')
        if config.get('type') == 'CrossEntropyLoss':
            config.pop('ignore_index', None)  # mmseg's takes it from the head alone
        for value in config.values():
            make_stock(value)
    elif isinstance(config, (list, tuple)):
        for value in config:
            make_stock(value)
