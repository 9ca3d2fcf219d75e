"""Several samples of one file are counted each, several views of one sample once: in validation and test loops."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any, Dict, List

import numpy as np
import pytest
from mmcv.transforms import BaseTransform
from mmdet.datasets import CocoDataset
from mmdet.registry import DATASETS as DET_DATASETS
from mmengine.config import ConfigDict
from mmengine.registry import TRANSFORMS
from mmseg.datasets import CityscapesDataset
from mmseg.registry import DATASETS
from small_det_runs import MAKERS, faults_in, small_config
from small_runs import GUARD, LOAD, PACK, Run, add_loop, expected_samples, tiny_config

pytestmark = pytest.mark.slow


@DATASETS.register_module()
class TilesOfCityscapes(CityscapesDataset):
    """Of every file two samples: its columns of even and of odd number."""

    def load_data_list(self) -> List[Dict[str, Any]]:
        return [{**found, 'half': half} for found in super().load_data_list() for half in (0, 1)]


@DET_DATASETS.register_module()
class TwiceCoco(CocoDataset):
    def load_data_list(self) -> List[Dict[str, Any]]:
        return [copy.deepcopy(found) for found in super().load_data_list() for _ in range(2)]


@TRANSFORMS.register_module()
class TakeHalf(BaseTransform):
    def transform(self, results: Dict[str, Any]) -> Dict[str, Any]:
        for key in ('img', 'gt_seg_map'):
            results[key] = np.ascontiguousarray(results[key][:, results['half'] :: 2])
        results['img_shape'] = results['ori_shape'] = results['img'].shape[:2]
        return results


@pytest.mark.parametrize('batch_size', [1, 2, 3])
def test_tiles_of_one_file_in_one_batch(batch_size: int, cityscapes: str, work_dir: str) -> None:
    config = tiny_config(cityscapes, work_dir)
    add_loop(config, 'test', [*LOAD, dict(type='TakeHalf'), PACK, GUARD])
    config.test_dataloader.batch_size = batch_size
    config.test_dataloader.dataset.type = 'TilesOfCityscapes'
    run = Run(config).test()
    in_files = sum(sample['skipped'] for sample in expected_samples(cityscapes, 'gtFine/val'))
    assert sum(line['skipped_pixels'] for line in run.lines('test')) == in_files > 0
    assert sum(len(line['samples']) for line in run.lines('test')) == 2, 'both halves of one file hold some'


@pytest.mark.parametrize('batch_size', [1, 2])
def test_instances_of_an_image_that_comes_twice(batch_size: int, tmp_path: Path) -> None:
    root = MAKERS['mask_rcnn'](str(tmp_path / 'data'))
    config = small_config('mask_rcnn', root, str(tmp_path), validate=True)
    config.val_dataloader.update(batch_size=batch_size)
    config.val_dataloader.dataset.type = 'TwiceCoco'
    config.val_evaluator = dict(type='CocoMetric', ann_file=config.val_evaluator.ann_file, format_only=True)
    config.val_evaluator.outfile_prefix = str(tmp_path / 'predictions')
    run = Run(config)
    run.runner.val()
    faults = faults_in('mask_rcnn', root, 'val')
    assert sum(line['skipped_instances'] for line in run.lines('val')) == 2 * len(faults) > 0


@pytest.mark.parametrize('batch_size', [1, 2])
def test_views_of_a_tile(batch_size: int, cityscapes: str, work_dir: str) -> None:
    config = tiny_config(cityscapes, work_dir)
    flips = [dict(type='RandomFlip', prob=0.0), dict(type='RandomFlip', prob=1.0)]
    views = dict(type='TestTimeAug', transforms=[flips, [LOAD[1]], [dict(type='TakeHalf')], [PACK], [GUARD]])
    add_loop(config, 'test', [LOAD[0], views])
    config.test_dataloader.batch_size = batch_size
    config.test_dataloader.dataset.type = 'TilesOfCityscapes'
    config.model = ConfigDict(type='SegTTAModel', module=config.model)
    run = Run(config).test()
    in_files = sum(sample['skipped'] for sample in expected_samples(cityscapes, 'gtFine/val'))
    assert sum(line['skipped_pixels'] for line in run.lines('test')) == in_files > 0
