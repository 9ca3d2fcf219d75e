"""The detection configs load and build; trained on labels that no head knows, they survive, and tell of each file."""

from __future__ import annotations

import math
import os.path as osp
from glob import glob
from pathlib import Path
from typing import Any, Callable, Dict, Tuple

import numpy as np
import pytest
import torch
from mmdet.registry import MODELS
from mmdet.utils import register_all_modules
from mmengine.config import Config
from small_det_data import FAULTS, MAKERS, SIZE, expected_samples, invalid_pixels
from small_det_runs import LAYOUTS, ROOT, faults_in, load, small_config
from small_runs import train

FAMILIES = sorted(LAYOUTS)
ALL_FAMILIES = pytest.mark.parametrize('family', FAMILIES)


@pytest.fixture(scope='session')
def data_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., str]:
    """Makes each data set once: ``data_of(family, clean=False)`` gives its root."""
    made: Dict[Tuple[Any, bool], str] = {}

    def root_of(family: str, clean: bool = False) -> str:
        key = (MAKERS[family], clean)
        if key not in made:
            faults = () if clean else FAULTS
            made[key] = MAKERS[family](str(tmp_path_factory.mktemp(family)), faults=faults)
        return made[key]

    return root_of


# ---- the files


def test_every_detection_config_is_tested_here() -> None:
    shipped = {osp.relpath(path, ROOT) for path in glob(osp.join(ROOT, '*', '*_guarded.py'))}
    detection = {name for name in shipped if Config.fromfile(osp.join(ROOT, name)).default_scope == 'mmdet'}
    assert detection == {layout.config for layout in LAYOUTS.values()}


@ALL_FAMILIES
def test_the_full_model_builds_with_guarded_losses(family: str) -> None:
    from mmguard.nn.counting import CountsLabels

    register_all_modules(init_default_scope=True)
    config = load(family)
    config.model.backbone.init_cfg = None  # no download
    with torch.device('meta'):  # no memory, no time
        model = MODELS.build(config.model)
    guarded = {name for name, part in model.named_modules() if isinstance(part, CountsLabels)}
    assert (
        guarded
        == {
            'retinanet': {'bbox_head.loss_cls'},
            'faster_rcnn': {'rpn_head.loss_cls', 'roi_head.bbox_head.loss_cls'},
            'mask_rcnn': {'rpn_head.loss_cls', 'roi_head.bbox_head.loss_cls', 'roi_head.mask_head.loss_mask'},
            'dino': {'bbox_head.loss_cls'},
            'mask2former': {'panoptic_head.loss_cls', 'panoptic_head.loss_mask'},
            'panoptic_fpn': {
                'rpn_head.loss_cls',
                'roi_head.bbox_head.loss_cls',
                'roi_head.mask_head.loss_mask',
                'semantic_head.loss_seg',
            },
        }[family]
    )
    assert sum(p.numel() for p in model.parameters()) > 3e7  # a ResNet-50 and more, not a shrunk one


# ---- training on invalid labels


@pytest.mark.slow
@ALL_FAMILIES
def test_config_trains_on_labels_that_its_head_does_not_know(
    family: str, data_of: Callable[..., str], work_dir: str
) -> None:
    """All images once: the log must say of each file what is in it, and of no other."""
    root = data_of(family)
    validates = family in ('retinanet', 'mask_rcnn')
    run = train(small_config(family, root, work_dir, validate=validates, val_size=SIZE // 2))
    faults = faults_in(family, root)
    expected = expected_samples(faults)
    assert len(expected) >= 3
    assert sum(sample['skipped'] for sample in expected) >= 5
    samples = [sample for line in run.lines() for sample in line['samples']]
    assert [sample for sample in samples if sample.get('kind') == 'instances'] == expected
    assert sum(line['skipped_instances'] for line in run.lines()) == len(faults)
    assert sum(line['remapped_instances'] for line in run.lines()) == 0
    pixels = invalid_pixels(root, 'train') if family == 'panoptic_fpn' else {}
    assert {s['source']: s['values'] for s in samples if 'kind' not in s} == pixels
    assert sum(line['skipped_pixels'] for line in run.lines()) == sum(sum(v.values()) for v in pixels.values())
    # The pipeline has sanitized everything: nothing is left to the losses, and nothing is counted twice.
    losses = [counts for line in run.lines() for counts in line['losses'].values()]
    assert losses
    assert all(counts == {'skipped': 0, 'remapped': 0} for counts in losses)
    scalars = [line for line in run.scalars if 'loss' in line]
    assert len(scalars) == 4
    assert all(math.isfinite(value) for line in scalars for key, value in line.items() if 'loss' in key)
    shown = [line.get('guard/skipped_instances', 0) for line in scalars]
    counts = {line['iter']: line['skipped_instances'] for line in run.lines()}
    assert shown == [counts.get(number, 0) for number in (1, 2, 3, 4)]
    assert all(torch.isfinite(p).all() for p in run.runner.model.parameters())
    assert not any('Assigner' in text for text in run.warnings)
    if validates:
        expected = expected_samples(faults_in(family, root, 'val'))
        assert [sample for line in run.lines('val') for sample in line['samples']] == expected != []
        assert any('mAP' in key for key in run.scalars[-1])


@pytest.mark.slow
def test_the_log_says_where_ignored_instances_would_be_background(data_of: Callable[..., str], work_dir: str) -> None:
    config = small_config('retinanet', data_of('retinanet'), work_dir)
    config.model.train_cfg.assigner.ignore_iof_thr = -1
    assert any('Assigner' in text for text in train(config).warnings)


# ---- clean labels


@pytest.mark.slow
@ALL_FAMILIES
def test_on_clean_labels_every_loss_is_that_of_the_stock_config(
    family: str, data_of: Callable[..., str], tmp_path: Path
) -> None:
    """Over a whole run: what an iteration changes in the weights shows in the next."""
    root = data_of(family, clean=True)
    logged = []
    for kind in ('guarded', 'stock'):
        run = train(small_config(family, root, str(tmp_path / kind), stock=kind == 'stock'))
        keys = [key for key in run.scalars[0] if 'loss' in key and 'guard' not in key]
        logged.append({key: np.array([line[key] for line in run.scalars]) for key in keys})
        assert run.lines() == []
    ours, theirs = logged
    assert ours.keys() == theirs.keys()
    assert len(theirs) >= 3
    assert all(values.shape == (4,) for values in theirs.values())
    # Logged are running means, so the weights did change if these do.
    assert len(set(theirs['loss'].tolist())) == 4
    for key, values in theirs.items():
        np.testing.assert_allclose(ours[key], values, rtol=1e-5, atol=1e-8, err_msg=key)
