"""One training of each kind of mmyolo's detectors, with labels that no head knows: stock dies, guarded trains."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar, Dict, List

import pytest
from mmcv.transforms import BaseTransform
from mmengine.registry import TRANSFORMS
from small_det_runs import expected_samples, faults_in_coco, make_coco
from small_runs import Run, train
from small_yolo import with_polygons, yolo_config

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
    return with_polygons(make_coco(str(tmp_path_factory.mktemp('coco'))))


def logged(run: Run) -> List[Dict[str, Any]]:
    return sorted((sample for line in run.lines() for sample in line['samples']), key=lambda sample: sample['source'])


@pytest.mark.parametrize('name', FAMILIES, ids=lambda name: name.partition('/')[0])
def test_stock_dies_before_its_loss_and_guarded_trains_and_names_the_files(
    name: str, coco: str, tmp_path: Path
) -> None:
    with pytest.raises((IndexError, RuntimeError)) as death:
        train(yolo_config(name, coco, str(tmp_path / 'stock')))
    assert not any('loss' in entry.path.parts[-2] for entry in death.traceback), 'an assigner, or the head itself'
    run = train(guard_config(yolo_config(name, coco, str(tmp_path / 'guarded'))))
    assert run.runner.iter == 2
    assert logged(run) == expected_samples(faults_in_coco(coco, 'train', 80))
    assert 'train2017/000000000001.jpg' in run.guard_lines[0]
    assert [line['empty_images'] for line in run.lines()] == [0, 1], 'image 4 has invalid labels alone'


def test_yolov5_of_one_class_trains_any_label_in_silence_and_guarded_leaves_them_out(coco: str, tmp_path: Path) -> None:
    faults = faults_in_coco(coco, 'train', 1)
    runs = {}
    for kind in ('stock', 'guarded'):
        config = yolo_config(FAMILIES[0], coco, str(tmp_path / kind))
        config.model.bbox_head.head_module.num_classes = 1
        runs[kind] = train(config if kind == 'stock' else guard_config(config))
        assert runs[kind].runner.iter == 2
    assert logged(runs['guarded']) == expected_samples(faults)
    assert len(faults) == 16, 'of 18 objects, and stock trained all of them as its one class'


INSTANCES = (
    'yolov5/ins_seg/yolov5_ins_n-v61_syncbn_fast_8xb16-300e_coco_instance.py',
    'yolov5/ins_seg/yolov5_ins_s-v61_syncbn_fast_non_overlap_8xb16-300e_coco_instance.py',
)


@TRANSFORMS.register_module()
class CountInvalid(BaseTransform):
    """Counts the labels 80 and above that are about to be packed."""

    counted: ClassVar[List[int]] = []

    def transform(self, results: Dict[str, Any]) -> Dict[str, Any]:
        self.counted += [int(label) for label in results['gt_bboxes_labels'] if label >= 80]
        return results


@pytest.mark.parametrize('name', [FAMILIES[3], FAMILIES[4], *INSTANCES])
def test_counts_are_exact_behind_mosaic_and_the_log_says_what_it_does_to_file_names(
    name: str, coco: str, tmp_path: Path
) -> None:
    config = yolo_config(name, coco, str(tmp_path), mixed=True)
    config.train_dataloader.dataset.pipeline.insert(-1, dict(type='CountInvalid'))
    CountInvalid.counted.clear()
    run = train(guard_config(config))
    counted = {str(label): CountInvalid.counted.count(label) for label in set(CountInvalid.counted)}
    values: Dict[str, int] = {}
    for sample in logged(run):
        for label, count in sample['values'].items():
            values[label] = values.get(label, 0) + count
    assert counted
    assert values == counted
    assert any('Mosaic' in text for text in run.warnings)
