"""Trainings of mmdet3d through its Runner: labels of points and of objects, stock and guarded."""

from __future__ import annotations

import json
import pickle
from collections import Counter
from pathlib import Path
from typing import Any, Dict, List

import numpy as np
import pytest
from mmdet3d.registry import DATASETS
from mmengine.registry import init_default_scope
from mmengine.runner import Runner
from small_points import CLASSES, HEAD_CLASSES, make_kitti, make_s3dis, pillars_config, points_config

from mmguard import guard_config
from mmguard.tools.apply.guarded import guard_tree, tree_of

#: KITTI's categories in the order of its numbers, as far as the sets of these tests have them.
NUMBERED = {0: 'Pedestrian', 1: 'Cyclist', 2: 'Car', 4: 'Truck'}


def lines(work_dir: Path) -> List[Dict[str, Any]]:
    (file,) = work_dir.rglob('label_guard.jsonl')
    return [json.loads(line) for line in file.read_text().splitlines()]


def samples_in(work_dir: Path) -> Dict[str, Dict[str, int]]:
    return {Path(s['source']).name: s['values'] for line in lines(work_dir) for s in line['samples']}


def planted_points(root: Path) -> Dict[str, Dict[str, int]]:
    """File -> value -> points whose value S3DIS does not have, read from the label files."""
    found = {}
    for file in (root / 'labels').iterdir():
        labels = np.fromfile(file, np.int64)
        values = Counter(str(value) for value in labels[(labels < 0) | (labels > 14)].tolist())
        if values:
            found[file.name] = dict(values)
    return found


def test_stock_dies_of_a_point_beyond_the_table(tmp_path: Path) -> None:
    config = points_config(make_s3dis(str(tmp_path / 'data')), str(tmp_path / 'stock'))
    with pytest.raises(IndexError, match=r'\b300\b'):
        Runner.from_cfg(config).train()


def test_stock_trains_a_negative_label_as_another_class(tmp_path: Path) -> None:
    config = points_config(make_s3dis(str(tmp_path / 'data'), leave_out=300), str(tmp_path / 'stock'))
    init_default_scope('mmdet3d')
    packed = DATASETS.build(config.train_dataloader.dataset)[1]  # the office
    raw = np.fromfile(tmp_path / 'data' / 'labels' / 'office.bin', np.int64)
    trained = packed['data_samples'].gt_pts_seg.pts_semantic_mask
    assert (raw[:2].tolist(), trained[:2].tolist()) == ([-3, -3], [12, 12]), (
        'clutter, counted from the end of the table'
    )
    Runner.from_cfg(config).train()


def test_guarded_points_train_and_are_counted(tmp_path: Path) -> None:
    root = Path(make_s3dis(str(tmp_path / 'data')))
    config = guard_config(points_config(str(root), str(tmp_path / 'guarded')))
    Runner.from_cfg(config).train()
    assert samples_in(tmp_path / 'guarded') == planted_points(root)
    assert sum(line['skipped_pixels'] for line in lines(tmp_path / 'guarded')) == 4
    losses = {
        name for line in lines(tmp_path / 'guarded') for name, count in line['losses'].items() if any(count.values())
    }
    assert losses == set(), 'what the pipeline sanitized is not counted again by the loss'


def objects_beyond(root: Path) -> Dict[str, Dict[str, int]]:
    """File -> label -> objects that the head does not know, read from the list of the data set."""
    with (root / 'infos.pkl').open('rb') as file:
        listed = pickle.load(file)['data_list']
    found = {}
    for one in listed:
        names = [NUMBERED.get(instance['bbox_label_3d'], '') for instance in one['instances']]
        labels = [CLASSES.index(name) for name in names if name]
        values = dict(Counter(str(label) for label in labels if label >= HEAD_CLASSES))
        if values:
            found[one['lidar_points']['lidar_path']] = values
    return found


def test_stock_trains_objects_beyond_the_head_as_background_without_a_word(tmp_path: Path) -> None:
    config = pillars_config(make_kitti(str(tmp_path / 'data')), str(tmp_path / 'stock'))
    Runner.from_cfg(config).train()
    assert objects_beyond(tmp_path / 'data')


def test_guarded_objects_train_and_are_counted(tmp_path: Path) -> None:
    root = Path(make_kitti(str(tmp_path / 'data')))
    config = guard_config(pillars_config(str(root), str(tmp_path / 'guarded')))
    Runner.from_cfg(config).train()
    assert samples_in(tmp_path / 'guarded') == objects_beyond(root) == {'000.bin': {'3': 1}, '001.bin': {'3': 2}}
    assert sum(line['skipped_instances'] for line in lines(tmp_path / 'guarded')) == 3


def test_a_head_that_goes_by_the_type_of_its_loss_keeps_it(tmp_path: Path) -> None:
    """Anchor3DHead would take a sampler, and another average, for a loss of another type."""
    guarded = guard_tree(tree_of(pillars_config(str(tmp_path), str(tmp_path))))
    assert guarded.tree['model']['bbox_head']['loss_cls']['type'] == 'mmdet.FocalLoss'
    assert any(line.startswith('model.bbox_head.loss_cls: FocalLoss') for line in guarded.left)
