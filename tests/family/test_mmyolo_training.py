"""One training of each kind of mmyolo's detectors, with labels that no head knows: stock dies, guarded trains."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, List

import pytest
from small_det_runs import expected_samples, faults_in_coco, make_coco
from small_runs import Run, train
from small_yolo import yolo_config

from mmguard import guard_config

FAMILIES = (
    'yolov5/yolov5_s-v61_syncbn_fast_8xb16-300e_coco.py',
    'yolov6/yolov6_s_syncbn_fast_8xb32-400e_coco.py',
    'yolov7/yolov7_tiny_syncbn_fast_8x16b-300e_coco.py',
    'yolov8/yolov8_s_syncbn_fast_8xb16-500e_coco.py',
    'yolox/yolox_s_fast_8xb8-300e_coco.py',
    'rtmdet/rtmdet_s_syncbn_fast_8xb32-300e_coco.py',
    'ppyoloe/ppyoloe_plus_s_fast_8xb8-80e_coco.py',
)


@pytest.fixture(scope='module')
def coco(tmp_path_factory: pytest.TempPathFactory) -> str:
    return make_coco(str(tmp_path_factory.mktemp('coco')))


def logged(run: Run) -> List[Dict[str, Any]]:
    return sorted((sample for line in run.lines() for sample in line['samples']), key=lambda sample: sample['source'])


@pytest.mark.parametrize('name', FAMILIES, ids=lambda name: name.partition('/')[0])
def test_stock_dies_before_its_loss_and_guarded_trains_and_names_the_files(
    name: str, coco: str, tmp_path: Path
) -> None:
    with pytest.raises((IndexError, RuntimeError), match=r'out of bounds|must be smaller than num_classes') as death:
        train(yolo_config(name, coco, str(tmp_path / 'stock')))
    assert not any('loss' in entry.path.parts[-2] for entry in death.traceback), 'an assigner, or the head itself'
    run = train(guard_config(yolo_config(name, coco, str(tmp_path / 'guarded'))))
    assert run.runner.iter == 2
    assert logged(run) == expected_samples(faults_in_coco(coco, 'train', 80))
    assert 'first: train2017/000000000001.jpg' in run.guard_lines[0]
    assert [line['empty_images'] for line in run.lines()] == [0, 1], 'image 4 has invalid labels alone'
