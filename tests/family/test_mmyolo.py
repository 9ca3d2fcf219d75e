"""`check`, `scan` and `trace` know mmyolo's heads, assigners, data sets and mixing transforms."""

from __future__ import annotations

import json
import os.path as osp
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any, ClassVar, Dict, List

import pytest
from mmcv.transforms import BaseTransform
from mmengine.config import Config
from mmengine.registry import DATASETS, TRANSFORMS, init_default_scope
from mmyolo_configs import holds, outcome, shipped
from small_det_data import expected_samples, faults_in_coco, make_coco, make_voc, voc_classes
from small_runs import Run, train
from small_yolo import with_polygons, yolo_config

from mmguard import guard_config
from mmguard.cli import main
from mmguard.config.changes import change_data
from mmguard.config.read import ReadConfig, from_mmengine
from mmguard.findings.engine import diagnose
from mmguard.scanning.config_instances import scan_detection_config

YOLOV8 = 'yolov8/yolov8_s_syncbn_fast_8xb16-500e_coco.py'


def trained(config: Config) -> Dict[int, int]:
    """Label -> instances, as mmyolo's own data set lists them."""
    init_default_scope('mmyolo')
    dataset = config.train_dataloader.dataset
    dataset = dataset if 'datasets' not in dataset else dataset.datasets[0]
    built = DATASETS.build({**dataset, 'pipeline': [], 'serialize_data': False})
    return Counter(i['bbox_label'] for image in built.data_list for i in image['instances'] if not i['ignore_flag'])


@pytest.fixture(scope='module')
def coco(tmp_path_factory: pytest.TempPathFactory) -> str:
    return with_polygons(make_coco(str(tmp_path_factory.mktemp('coco'))))


def test_the_number_of_classes_is_wrong_in_the_head_and_in_its_assigner(coco: str, tmp_path: Path) -> None:
    config = from_mmengine(yolo_config(YOLOV8, coco, str(tmp_path)))
    found = diagnose(config=config)
    places = {'model.bbox_head.head_module.num_classes', 'model.train_cfg.assigner.num_classes'}
    assert {(finding.code, place) for finding in found for place in finding.places} == {('MG201', p) for p in places}
    (edit,) = found[0].edits
    assert dict(edit.config) == dict.fromkeys(places, 83)
    assert diagnose(config=ReadConfig(change_data(config.data, edit.config))) == []


def test_a_scan_counts_what_the_data_set_of_coco_files_trains(coco: str, tmp_path: Path) -> None:
    config = yolo_config(YOLOV8, coco, str(tmp_path))
    facts = scan_detection_config(config)
    assert facts.values == Counter(fault.label for fault in faults_in_coco(coco, 'train', 80)) == {80: 2, 82: 3}
    assert facts.histogram == trained(config)


def test_a_scan_counts_what_the_data_set_of_voc_files_trains(tmp_path: Path) -> None:
    root = make_voc(str(tmp_path), data_classes=20, faults=())
    dataset = dict(
        type='YOLOv5VOCDataset',
        data_root=root,
        ann_file='VOC2007/ImageSets/Main/trainval.txt',
        data_prefix=dict(sub_data_root='VOC2007/'),
        metainfo=dict(classes=voc_classes(20)),
    )
    config = Config(dict(default_scope='mmyolo', train_dataloader=dict(dataset=dataset)))
    facts = scan_detection_config(config)
    assert facts.histogram == trained(config)
    assert facts.loader is not None
    assert facts.loader.files > 0
    assert (facts.loader.failed, facts.loader.differing, facts.loader.unknown) == ({}, {}, '')


def test_a_trace_names_the_images_that_mosaic_mixed_in(coco: str, tmp_path: Path) -> None:
    file = tmp_path / 'mosaic.py'
    yolo_config(YOLOV8, coco, str(tmp_path), mixed=True).dump(file)
    assert main(['trace', str(file), '--value', '82', '--json', str(tmp_path / 'story.json')]) == 1
    story = json.loads((tmp_path / 'story.json').read_text())
    assert story['mixed']
    (mosaic,) = [step for step in story['steps'] if step['step'] == 'Mosaic']
    (change,) = [one for one in mosaic['changes'] if one['value'] == 82][:1]
    assert change['origin'].endswith(('3.jpg', '4.jpg')), 'the only files that hold a label 82'


def test_a_scan_needs_no_mmyolo_that_can_be_imported(coco: str, tmp_path: Path) -> None:
    file = tmp_path / 'config.py'
    yolo_config(YOLOV8, coco, str(tmp_path)).dump(file)
    program = 'import sys; from mmguard.cli import main; sys.exit(main(sys.argv[1:]))'  # beside mmcv 2.1 it refuses
    done = subprocess.run(
        [sys.executable, '-c', program, 'scan', str(file), '--split', 'train'],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert 'MG108' in done.stdout
    assert re.search(r'\b82\b', done.stdout)


FIRST = list({osp.dirname(name): name for name in reversed(shipped())}.values())


@pytest.mark.parametrize('name', FIRST)
def test_it_is_guarded_without_exception_or_false_alarm(name: str) -> None:
    holds(outcome(name))


FAMILIES = (
    'yolov5/yolov5_s-v61_syncbn_fast_8xb16-300e_coco.py',
    'yolov6/yolov6_s_syncbn_fast_8xb32-400e_coco.py',
    'yolov7/yolov7_tiny_syncbn_fast_8x16b-300e_coco.py',
    'yolov8/yolov8_s_syncbn_fast_8xb16-500e_coco.py',
    'yolox/yolox_s_fast_8xb8-300e_coco.py',
    'rtmdet/rtmdet_s_syncbn_fast_8xb32-300e_coco.py',
    'ppyoloe/ppyoloe_plus_s_fast_8xb8-80e_coco.py',
)


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
