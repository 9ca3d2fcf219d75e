"""Trainings of mmdet3d through its Runner: labels of points and of objects, stock and guarded."""

from __future__ import annotations

import json
import pickle
from collections import Counter
from pathlib import Path
from typing import Any, Dict, List

import numpy as np
import pytest
import torch
from mmdet3d.models.losses import LovaszLoss
from mmengine.runner import Runner
from small_points import CLASSES, HEAD_CLASSES, make_kitti, make_s3dis, pillars_config, points_config

from mmguard import guard_config
from mmguard.losses import GuardedLoss
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


IGNORED = 19


def pair(labels: torch.Tensor, scores: torch.Tensor, guarded: bool) -> tuple:
    scores = scores.clone().requires_grad_()
    stock = LovaszLoss(loss_weight=1.0, reduction='none')
    loss = (GuardedLoss(stock) if guarded else stock)(scores, labels, ignore_index=IGNORED)
    loss.sum().backward()
    return loss.sum().detach(), scores.grad


@pytest.mark.parametrize('labels', [[0, 3, 3, 1, 19, 19], [2, 2, 2, 2, 2, 2], [0, 19, 19, 19, 5, 7]])
def test_valid_labels_give_the_loss_and_gradient_of_stock(labels: list) -> None:
    scores = torch.randn(6, 20, generator=torch.Generator().manual_seed(0))
    stock, guarded = (pair(torch.tensor(labels), scores, which) for which in (False, True))
    torch.testing.assert_close(guarded, stock)


@pytest.mark.parametrize('invalid', [20, 300, -1])
def test_an_invalid_label_counts_as_deleted(invalid: int) -> None:
    scores = torch.randn(7, 20, generator=torch.Generator().manual_seed(1))
    labels = torch.tensor([0, 3, invalid, 1, 19, 3, 5])
    keep = labels != invalid
    loss, grad = pair(labels, scores, True)
    expected, of_kept = pair(labels[keep], scores[keep], False)
    torch.testing.assert_close((loss, grad[keep]), (expected, of_kept))
    assert not grad[~keep].any()


@pytest.mark.parametrize('labels', [[300, 19, 300], [300, 4, 19]])
def test_none_or_one_point_that_is_left(labels: list) -> None:
    loss, grad = pair(torch.tensor(labels), torch.randn(3, 20), True)
    assert torch.isfinite(loss)
    assert torch.isfinite(grad).all()
    assert bool(grad.any()) is (4 in labels)
