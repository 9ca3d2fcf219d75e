"""Labels of points, before their classes are made and behind the Pack transform."""

from __future__ import annotations

from typing import Any, Dict

import numpy as np
import pytest
import torch
from mmengine.structures import BaseDataElement

from mmguard.labels.errors import LabelGuardError
from mmguard.labels.tally import tallies_of
from mmguard.transforms import GuardedPointSegClassMapping, GuardSegLabels

#: Raw value 4 is class 0, 6 is class 1; 2 says "unlabelled".
TABLE = np.array([2, 2, 2, 2, 0, 2, 1, 2])


def raw() -> Dict[str, Any]:
    return {
        'pts_semantic_mask': np.array([4, 6, 0, 8, -1, 300, 4]),
        'seg_label_mapping': TABLE,
        'pts_semantic_mask_path': 'labels/000.label',
        'lidar_path': 'points/000.bin',
    }


def packed(values: Any) -> Dict[str, Any]:
    sample = BaseDataElement(metainfo={'lidar_path': 'points/000.bin'})
    sample.gt_pts_seg = BaseDataElement(pts_semantic_mask=torch.tensor(values))
    return {'data_samples': sample}


def test_values_beyond_the_table_are_unlabelled_and_counted() -> None:
    with pytest.raises(IndexError):
        TABLE[raw()['pts_semantic_mask']]
    results = GuardedPointSegClassMapping()(raw())
    assert results['pts_semantic_mask'].tolist() == [0, 1, 2, 2, 2, 2, 0]
    tally = tallies_of(results)['pixels']
    assert (tally.total, tally.skipped, tally.values) == (7, 3, {8: 1, -1: 1, 300: 1})
    assert tally.source == 'labels/000.label'


def test_a_table_maps_as_stock_where_all_values_are_in_it() -> None:
    results = {**raw(), 'pts_semantic_mask': np.arange(8), 'eval_ann_info': {'pts_semantic_mask': np.arange(8)}}
    results = GuardedPointSegClassMapping()(results)
    assert results['pts_semantic_mask'].tolist() == TABLE.tolist()
    assert results['eval_ann_info']['pts_semantic_mask'] is results['pts_semantic_mask']
    assert not tallies_of(results)['pixels']


def test_a_label_map_goes_before_the_table_and_is_no_mistake() -> None:
    results = GuardedPointSegClassMapping(label_map={300: 1, 4: 2})(raw())
    assert results['pts_semantic_mask'].tolist() == [2, 1, 2, 2, 2, 1, 2]
    tally = tallies_of(results)['pixels']
    assert (tally.skipped, tally.values, tally.mapped) == (2, {8: 1, -1: 1}, 3)
    with pytest.raises(TypeError, match='label_map'):
        GuardedPointSegClassMapping(label_map={'a': 1})


def test_the_mapping_raises_with_the_name_of_the_file() -> None:
    with pytest.raises(LabelGuardError) as caught:
        GuardedPointSegClassMapping(on_invalid='raise')(raw())
    (tally,) = caught.value.tallies
    assert (tally.source, tally.total, tally.skipped) == ('labels/000.label', 7, 3)


def test_packed_points_are_sanitized_as_a_map_is() -> None:
    sample = GuardSegLabels(2, ignore_index=2)(packed([0, 1, 2, 3, -1]))['data_samples']
    assert sample.gt_pts_seg.pts_semantic_mask.tolist() == [0, 1, 2, 2, 2]
    tally = tallies_of(sample)['pixels']
    assert (tally.total, tally.skipped, tally.values, tally.source) == (5, 2, {3: 1, -1: 1}, 'points/000.bin')


def test_points_before_the_pack_transform() -> None:
    results = {'pts_semantic_mask': np.array([0, 7]), 'lidar_path': 'a.bin'}
    results = GuardSegLabels(2)(results)
    assert results['pts_semantic_mask'].tolist() == [0, 255]
    assert tallies_of(results)['pixels'].source == 'a.bin'


def test_points_with_more_than_one_label_each_are_refused(refuses: Any) -> None:
    with refuses(ValueError):
        GuardSegLabels(2)(packed([[0, 1]]))


def test_a_table_without_unlabelled_values_needs_the_label_that_the_head_ignores() -> None:
    results = {**raw(), 'seg_label_mapping': np.array([0, 1, 2]), 'pts_semantic_mask': np.array([2, 3])}
    assert GuardedPointSegClassMapping(ignore_index=19)(results)['pts_semantic_mask'].tolist() == [2, 19]
