"""Guards of label maps and of the labels of points, before and after the Pack transform."""

from __future__ import annotations

import pickle
from typing import Any, Dict, Tuple

import numpy as np
import pytest
import torch
from mmdet.structures import DetDataSample
from mmengine.registry import TRANSFORMS
from mmengine.structures import BaseDataElement, PixelData
from mmseg.datasets.transforms import GenerateEdge, PackSegInputs

from mmguard import GuardSegLabels, LabelGuardError
from mmguard.labels.tally import LABEL_GUARD, Tally, get_tallies

META_KEYS = ('img_path', 'seg_map_path', LABEL_GUARD)


def sample_of(label: np.ndarray) -> Dict[str, Any]:
    height, width = label.shape[:2]
    return dict(
        img=np.zeros((height, width, 3), np.uint8),
        img_shape=(height, width),
        gt_seg_map=label,
        img_path='a.jpg',
        seg_map_path='a.png',
    )


def packed_of(label: np.ndarray, meta_keys: Tuple[str, ...] = META_KEYS) -> Dict[str, Any]:
    return PackSegInputs(meta_keys=meta_keys)(sample_of(label))


@pytest.fixture
def label() -> np.ndarray:
    label = np.zeros((4, 6), np.uint8)
    label[0, :3] = 19
    label[1, 0] = 200
    label[3] = 255
    return label


def test_sanitizes_before_the_pack_transform(label: np.ndarray) -> None:
    results = GuardSegLabels(19)(sample_of(label))
    assert np.array_equal(results['gt_seg_map'], np.where(label >= 19, 255, label))
    assert results['gt_seg_map'].dtype == np.uint8
    assert get_tallies(results) == {'pixels': Tally(24, 4, 0, {19: 3, 200: 1}, 'a.png')}
    assert label[0, 0] == 19, 'the loaded array may be shared, so it is not written to'


def test_sanitizes_after_the_pack_transform(label: np.ndarray) -> None:
    sample = GuardSegLabels(19)(packed_of(label))['data_samples']
    assert np.array_equal(sample.gt_sem_seg.data[0].numpy(), np.where(label >= 19, 255, label))
    assert sample.gt_sem_seg.data.dtype == torch.int64
    assert get_tallies(sample) == {'pixels': Tally(24, 4, 0, {19: 3, 200: 1}, 'a.png')}
    assert LABEL_GUARD in sample.metainfo_keys()


def test_the_report_travels_through_the_pack_transform_and_on_to_the_hook(label: np.ndarray) -> None:
    results = PackSegInputs(meta_keys=META_KEYS)(GuardSegLabels(19)(sample_of(label)))
    sample = pickle.loads(pickle.dumps(results['data_samples']))
    assert get_tallies(sample)['pixels'].skipped == 4
    assert get_tallies(sample.to('cpu'))['pixels'].skipped == 4


def test_a_second_guard_adds_what_came_in_between(label: np.ndarray) -> None:
    guard = GuardSegLabels(19)
    results = guard(sample_of(label))
    results['gt_seg_map'] = np.pad(results['gt_seg_map'], 1, constant_values=33)
    sample = guard(PackSegInputs(meta_keys=META_KEYS)(results))['data_samples']
    assert get_tallies(sample)['pixels'].values == {19: 3, 200: 1, 33: 48 - 24}


def test_a_clean_map_is_not_copied_and_still_reported() -> None:
    clean = np.full((3, 3), 18, np.uint8)
    results = GuardSegLabels(19)(sample_of(clean))
    assert results['gt_seg_map'] is clean
    assert get_tallies(results) == {'pixels': Tally(9, source='a.png')}
    packed = packed_of(clean)
    before = packed['data_samples'].gt_sem_seg.data
    assert GuardSegLabels(19)(packed)['data_samples'].gt_sem_seg.data is before


def test_generate_edge_draws_no_edge_around_sanitized_pixels() -> None:
    label = np.zeros((64, 64), np.uint8)
    label[20:40, 20:40] = 33
    unguarded = GenerateEdge(edge_width=4)(sample_of(label.copy()))['gt_edge_map']
    guarded = GenerateEdge(edge_width=4)(GuardSegLabels(19)(sample_of(label)))['gt_edge_map']
    assert unguarded.sum() > 0
    assert guarded.sum() == 0


def test_clip_and_label_map() -> None:
    label = np.array([[0, 7, 9]], np.uint8)
    results = GuardSegLabels(3, on_invalid='clip', label_map={7: 1})(sample_of(label))
    assert results['gt_seg_map'].tolist() == [[0, 1, 2]]
    assert get_tallies(results)['pixels'] == Tally(3, 0, 1, {9: 1}, 'a.png', mapped=1)


def test_raise_names_the_file(label: np.ndarray) -> None:
    with pytest.raises(LabelGuardError) as caught:
        GuardSegLabels(19, on_invalid='raise')(sample_of(label))
    (tally,) = caught.value.tallies
    assert (tally.source, tally.total, tally.skipped) == ('a.png', 24, 4)


@pytest.mark.parametrize('ignore_index', [-100, 300])
def test_an_ignore_index_beyond_uint8_does_not_wrap_to_a_class(label: np.ndarray, ignore_index: int) -> None:
    sanitized = GuardSegLabels(19, ignore_index=ignore_index)(sample_of(label))['gt_seg_map']
    assert sanitized[0, 0] == sanitized[3, 0] == ignore_index


@pytest.mark.parametrize('shape', [(4, 6, 3), (4, 6, 4), (4,)])
def test_a_map_that_is_not_2d_is_refused_with_its_file(shape: Tuple[int, ...], refuses: Any) -> None:
    results = dict(gt_seg_map=np.zeros(shape, np.uint8), seg_map_path='masks/a.png')
    with refuses(ValueError, match=r'masks/a\.png'):
        GuardSegLabels(19)(results)


def test_a_packed_color_mask_is_refused_with_its_file(refuses: Any) -> None:
    sample = packed_of(np.zeros((4, 6), np.uint8))
    sample['data_samples'].gt_sem_seg = PixelData(data=torch.zeros(3, 4, 6, dtype=torch.int64))
    with refuses(ValueError, match=r'a\.png.*\(3, 4, 6\)'):
        GuardSegLabels(19)(sample)


def test_a_floating_point_map_is_refused_with_its_file(refuses: Any) -> None:
    with refuses(TypeError, match=r'a\.png'):
        GuardSegLabels(19)(sample_of(np.zeros((4, 6), np.float32)))


def test_samples_without_labels_pass() -> None:
    assert GuardSegLabels(19)(dict(img_path='a.jpg')) == dict(img_path='a.jpg')
    packed = PackSegInputs(meta_keys=('img_path',))(dict(img=np.zeros((4, 6, 3), np.uint8), img_path='a.jpg'))
    assert LABEL_GUARD not in GuardSegLabels(19)(packed)['data_samples']


def test_serves_mmdet_samples_whose_field_has_another_name() -> None:
    sample = DetDataSample(metainfo=dict(img_path='a.jpg'))
    sample.gt_sem_seg = PixelData(sem_seg=torch.tensor([[[0, 54, 255]]], dtype=torch.uint8))
    GuardSegLabels(54)(dict(data_samples=sample))
    assert sample.gt_sem_seg.sem_seg.tolist() == [[[0, 255, 255]]]
    assert get_tallies(sample)['pixels'] == Tally(3, 1, 0, {54: 1}, 'a.jpg')


def test_is_built_by_the_registry_and_says_what_it_is() -> None:
    guard = TRANSFORMS.build(dict(type='GuardSegLabels', num_classes=19, label_map={11: 255}))
    assert repr(guard) == "GuardSegLabels(num_classes=19, ignore_index=255, on_invalid='ignore', label_map={11: 255})"


def test_all_others_of_a_label_map_are_mapped_and_not_skipped() -> None:
    guard = GuardSegLabels(2, label_map={7: 0, 8: 1, '*': 255})
    results = guard(sample_of(np.array([[7, 8, 11, 12], [0, 255, 7, 3]], np.uint8)))
    assert results['gt_seg_map'].tolist() == [[0, 1, 255, 255], [255, 255, 0, 255]]
    assert get_tallies(results)['pixels'] == Tally(8, 0, 0, {}, 'a.png', mapped=7)
    assert "'*': 255" in repr(guard)


def test_all_others_are_no_class_that_does_not_exist() -> None:
    with pytest.raises(ValueError, match=r"'\*': 2"):
        GuardSegLabels(2, label_map={7: 0, '*': 2})


def test_points_are_refused(refuses: Any) -> None:
    with refuses(ValueError):
        GuardSegLabels(2)({'pts_semantic_mask': np.array([0, 7])})
    with refuses(ValueError):
        GuardSegLabels(2)({'data_samples': BaseDataElement(gt_pts_seg=BaseDataElement())})
