"""A config of each folder of mmrotate and mmdet3d; `every_oriented_config.py` has all."""

from __future__ import annotations

import os.path as osp
from typing import Any

import pytest
from mmengine.config import Config
from oriented_configs import ROOTS, holds, one_per_folder, shipped

from mmguard.cli import main
from mmguard.config.read import from_mmengine
from mmguard.tools.apply.guarded import guard_tree, tree_of

CONFIGS = [(framework, name) for framework in ('mmrotate', 'mmdet3d') for name in one_per_folder(framework)]


@pytest.mark.parametrize(('framework', 'name'), CONFIGS)
def test_a_config_is_guarded_and_raises_no_false_alarm(framework: str, name: str) -> None:
    holds(framework, name)


@pytest.mark.parametrize('name', ['minkunet/', 'pointpillars/', 'dgcnn/'])
def test_points_and_objects_in_space_are_neither_scanned_nor_traced(name: str, capsys: Any) -> None:
    file = osp.join(ROOTS['mmdet3d'], next(one for one in shipped('mmdet3d') if one.startswith(name)))
    for command in ('scan', 'trace'):
        assert main([command, file]) == 2
        assert capsys.readouterr().err


def test_a_framework_that_is_not_known_is_named() -> None:
    pipeline = [dict(type='LoadImage'), dict(type='PackPoseInputs')]
    config = Config(
        dict(
            default_scope='mmpose',
            model=dict(type='TopdownPoseEstimator', head=dict(type='HeatmapHead', out_channels=17)),
            train_dataloader=dict(dataset=dict(type='CocoDataset', pipeline=pipeline)),
        )
    )
    left = guard_tree(tree_of(config)).left
    assert all(any(named in line for line in left) for named in ("default_scope = 'mmpose'", 'PackPoseInputs')), left
    assert any("default_scope = 'mmpose'" in note for note in from_mmengine(config).notes)
