"""Every config that a user may copy loads, and trains on labels that kill the stock losses."""

from __future__ import annotations

import math
import os.path as osp
from glob import glob
from pathlib import Path

import pytest
from mmengine.config import Config
from small_runs import expected_samples, shrink, train

from mmguard.compat.stack import find_config_file

ROOT = osp.join(osp.dirname(__file__), '..', '..', 'configs')
FAMILIES = {'pidnet', 'mask2former', 'deeplabv3plus', 'new_style'}
#: Those of mmsegmentation; test_det_configs.py has the others.
GUARDED = sorted(
    osp.relpath(path, ROOT)
    for family in FAMILIES
    for path in glob(osp.join(ROOT, family, '*_guarded.py'))
    if 'coco' not in osp.basename(path)
)


#: Guarded config -> the unguarded one that it must agree with on clean labels.
STOCK = {
    'pidnet/pidnet-s_cityscapes_guarded.py': 'mmseg::pidnet/pidnet-s_2xb6-120k_1024x1024-cityscapes.py',
    'mask2former/mask2former_r50_cityscapes_guarded.py': (
        'mmseg::mask2former/mask2former_r50_8xb2-90k_cityscapes-512x1024.py'
    ),
    'deeplabv3plus/deeplabv3plus_r50-d8_ohem_cityscapes_guarded.py': (
        'mmseg::deeplabv3plus/deeplabv3plus_r50-d8_4xb2-40k_cityscapes-512x1024.py'
    ),
    'new_style/fcn_r50_cityscapes_guarded.py': osp.join(ROOT, 'new_style/fcn_r50_cityscapes.py'),
}
#: And what else is said of it.
SAMPLER = dict(type='OHEMPixelSampler', thresh=0.7, min_kept=100000)


def load(name: str) -> Config:
    return Config.fromfile(osp.join(ROOT, name))


def load_stock(name: str) -> Config:
    config = Config.fromfile(find_config_file(STOCK[name]))
    if 'ohem' in name:
        config.model.decode_head.sampler = SAMPLER
    return config


@pytest.mark.slow
@pytest.mark.parametrize('name', GUARDED)
def test_config_trains_and_validates_on_invalid_labels(name: str, cityscapes: str, camvid: str, work_dir: str) -> None:
    """All images once: the log must say of each label file what is in it."""
    if 'camvid' in name:
        _trains_and_maps_void(shrink(load(name), camvid, work_dir, iters=2), camvid)
        return
    run = train(shrink(load(name), cityscapes, work_dir, iters=4))
    expected = [s for s in expected_samples(cityscapes, 'gtFine/train') if s['skipped']]
    assert len(expected) >= 4
    assert [sample for line in run.lines() for sample in line['samples']] == expected
    # The pipeline has sanitized everything: nothing is left to the losses, and nothing is counted twice.
    losses = [counts for line in run.lines() for counts in line['losses'].values()]
    assert losses
    assert all(counts == {'skipped': 0, 'remapped': 0} for counts in losses)
    for scalars in run.scalars[:4]:
        assert math.isfinite(scalars['loss'])
    assert 'mIoU' in run.scalars[-1]
    expected_val = [s for s in expected_samples(cityscapes, 'gtFine/val') if s['skipped']]
    assert [sample for line in run.lines('val') for sample in line['samples']] == expected_val


def _trains_and_maps_void(config: Config, root: str) -> None:
    """What the config's label_map says is no offence: sums alone, in training and in validation."""
    (hook,) = (hook for hook in config.custom_hooks if hook.type == 'LabelGuardHook')
    hook.max_skipped_ratio = 0.01
    run = train(config)
    for mode in ('train', 'val'):
        mapped = sum(sample['skipped'] for sample in expected_samples(root, f'{mode}annot', 11))
        assert mapped > 0
        assert run.modes[mode]['totals']['pixels']['mapped'] == mapped
        tag = 'train/guard' if mode == 'train' else 'val/guard/val'
        assert sum(run.runner.message_hub.get_scalar(f'{tag}/mapped_pixels').data[0]) == mapped
    assert not osp.exists(osp.join(run.log_dir, 'label_guard.jsonl'))
    assert run.guard_lines == []
    assert 'mIoU' in run.scalars[-1]


@pytest.mark.slow
@pytest.mark.parametrize('name', STOCK)
def test_on_clean_labels_the_losses_are_those_of_the_unguarded_config(
    name: str, clean_cityscapes: str, tmp_path: Path
) -> None:
    losses = []
    for kind, config in (('guarded', load(name)), ('stock', load_stock(name))):
        shrink(config, clean_cityscapes, str(tmp_path / kind), iters=2)
        if config.model.backbone.type == 'PIDNet':  # F1: stock dies of an ignored pixel if there are class weights
            config.model.decode_head.loss_decode[0].class_weight = None
        config.update(val_dataloader=None, val_cfg=None, val_evaluator=None)
        lines = train(config).scalars
        losses.append([{key: n for key, n in line.items() if 'loss' in key and 'guard' not in key} for line in lines])
    ours, theirs = losses
    assert len(ours) == len(theirs) == 2
    for iteration, (our_line, their_line) in enumerate(zip(ours, theirs)):
        # Behind an update the rounding of gradients shows, the more where a loss chooses its pixels by rank.
        assert our_line == pytest.approx(their_line, rel=1e-4 if iteration else 1e-6)
