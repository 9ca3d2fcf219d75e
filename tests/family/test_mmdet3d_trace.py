"""`mmguard trace` of points and of objects in space, through pipelines of mmdet3d."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Tuple

import numpy as np
from mmengine.config import Config
from small_scans import objects, points, read_infos, write, write_config, write_infos

from mmguard import guard_config
from mmguard.cli import main

Output = Any


def traced(config: Config, folder: Path, capsys: Output, *options: str) -> Tuple[int, str]:
    """Exit code and the table, without its lines."""
    file = folder / 'config.py'
    write_config(config, file)
    capsys.readouterr()
    code = main(['trace', str(file), *options])
    return code, ' '.join(capsys.readouterr().out.replace('│', ' ').split())


def planted(root: Path, value: int) -> Config:
    config = points('s3dis', root)
    labels = np.fromfile(root / 'labels' / '1.bin', np.int64)
    labels[3] = value
    write(root / 'labels' / '1.bin', labels)
    return config


def test_raw_values_of_a_clean_file_are_none_out_of_range(tmp_path: Path, capsys: Output) -> None:
    code, text = traced(points('semantickitti', tmp_path / 'data'), tmp_path, capsys)
    assert (code, 'every value is valid at every step' in text) == (0, True), text
    assert 'LoadAnnotations3D 40 points + 0..1, 10..11, 15, 18, 30, 40, 48, 70, 252, 259 appear' in text
    print(text)
    assert '10, 252 become 0' in text


def test_a_value_behind_the_table_ends_the_stock_pipeline_and_is_unlabelled_in_the_guarded_one(
    tmp_path: Path, capsys: Output
) -> None:
    config = planted(tmp_path / 'data', 300)
    code, text = traced(config, tmp_path, capsys, '--sample', 'labels/1.bin')
    assert (code, '300 appears (1 point, invalid): loaded by LoadAnnotations3D' in text) == (2, True), text
    assert 'IndexError: index 300 is out of bounds' in text
    code, text = traced(guard_config(config), tmp_path, capsys, '--sample', 'labels/1.bin')
    assert (code, '300 becomes 13 (1 point): GuardedPointSegClassMapping: seg_label_mapping' in text) == (1, True), text
    assert 'invalid, at one step or another: 300 (points)' in text


def test_a_negative_value_becomes_another_class(tmp_path: Path, capsys: Output) -> None:
    code, text = traced(planted(tmp_path / 'data', -3), tmp_path, capsys, '--value', '-3')
    assert (code, '-3 becomes 12 (1 point): counted from the end of seg_label_mapping' in text) == (1, True), text


def test_an_object_is_followed_through_turns_to_the_step_that_leaves_it_out(tmp_path: Path, capsys: Output) -> None:
    root = tmp_path / 'data'
    config = objects('kitti', root)
    infos = read_infos(root)
    far = infos['data_list'][1]['instances'][2]
    far['bbox_3d'][0] = 500.0
    write_infos(root, infos['data_list'], infos['metainfo'])
    turn = [
        dict(type='RandomFlip3D', flip_ratio_bev_horizontal=1.0),
        dict(type='GlobalRotScaleTrans', rot_range=[0.5, 0.6], scale_ratio_range=[1.05, 1.05]),
    ]
    config.train_dataloader.dataset.pipeline[2:2] = turn
    code, text = traced(config, tmp_path, capsys, '--sample', '1')
    assert code == 0, text
    print(text)
    assert 'RandomFlip3D GlobalRotScaleTrans ObjectRangeFilter - 2 vanishes (1 instance): label 2 at (' in text
    assert 'm: ObjectRangeFilter left it out' in text


def test_an_object_that_the_head_does_not_know_is_taken_out_by_the_guard(tmp_path: Path, capsys: Output) -> None:
    config = objects('kitti', tmp_path / 'data')
    config.model.bbox_head.num_classes = 2
    code, text = traced(guard_config(config), tmp_path, capsys, '--sample', '0')
    assert code == 1, text
    assert 'invalid: 2 (1 instance)' in text
    assert 'taken out by GuardInstanceLabels (label 2 is no class)' in text
