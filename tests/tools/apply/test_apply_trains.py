"""What `mmguard apply` writes trains, on labels that end the stock training."""

from __future__ import annotations

from pathlib import Path

import pytest
import small_det_runs as det
from mmengine.config import Config
from small_runs import shrink, train

import mmguard
from mmguard.cli import main

pytestmark = pytest.mark.slow
PIDNET = 'mmseg::pidnet/pidnet-s_2xb6-120k_1024x1024-cityscapes.py'
NEW_STYLE = Path(__file__).parents[3] / 'configs' / 'new_style' / 'fcn_r50_cityscapes.py'


def test_segmentation(cityscapes: str, work_dir: str, tmp_path: Path) -> None:
    out = tmp_path / 'guarded.py'
    assert main(['apply', PIDNET, '-o', str(out), '--quiet']) == 0
    check(Config.fromfile(out), cityscapes, work_dir)


def test_new_style(cityscapes: str, work_dir: str) -> None:
    check(mmguard.guard_config(Config.fromfile(NEW_STYLE)), cityscapes, work_dir)


def check(config: Config, root: str, work_dir: str) -> None:
    run = train(shrink(config, root, work_dir, iters=2))
    assert sum(line['skipped_pixels'] for line in run.lines()) > 0
    assert run.runner.iter == 2


@pytest.mark.parametrize('family', ['mask_rcnn', 'dino'])
def test_detection(family: str, work_dir: str, tmp_path: Path) -> None:
    layout = det.LAYOUTS[family]
    out = tmp_path / 'guarded.py'
    assert main(['apply', f'mmdet::{layout.stock}', '-o', str(out), '--quiet']) == 0
    root = det.MAKERS[family](str(tmp_path / 'data'))
    run = train(det.shrink(Config.fromfile(out), root, work_dir, data_classes=layout.data_classes))
    faults = det.faults_in(family, root)
    assert sum(line['skipped_instances'] for line in run.lines()) == len(faults) > 0
