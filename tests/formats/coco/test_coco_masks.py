"""Masks of COCO files: what is wrong with them is what stops mmdet, or what it ignores."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any, Dict, List

import numpy as np
import pytest
from coco_cases import NAMES, ann, coco, write
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from mmdet.datasets.transforms import LoadAnnotations
from pycocotools import mask as encoder

from mmguard.facts.labels import CocoFacts
from mmguard.findings import diagnose
from mmguard.formats.coco.masks import MASK_FAULTS, Rle, mask_column
from mmguard.formats.coco.read import scan_coco
from mmguard.scanning.config_instances import find_det_datasets, scan_detection_config

_, NONE, NO_MASK, NO_NUMBERS, SHORT, FAR, OTHER_SIZE, COUNTS, EMPTY, NO_PIXEL, LONG = MASK_FAULTS
BOX = [[10, 10, 30, 10, 30, 30, 10, 30]]
PIXELS = np.zeros((80, 100), np.uint8)
PIXELS[10:30, 10:30] = 1
TEXT = encoder.encode(np.asfortranarray(PIXELS))['counts'].decode()
RUNS = [810, *[20, 60] * 19, 20, 5650]


def about(folder: Path, record: Dict[str, Any], **options: Any) -> CocoFacts:
    return scan_coco(write(folder, record), class_names=NAMES, masks=True, **options).coco


def loaded(mask: Any) -> Any:
    """What mmdet makes of the mask of one object: its ignore flag."""
    instance = dict(bbox=[10, 10, 30, 30], bbox_label=0, ignore_flag=0, **({'mask': mask} if mask else {}))
    return LoadAnnotations(with_mask=True)(dict(instances=[instance], ori_shape=(80, 100)))['gt_ignore_flags'].tolist()


@pytest.mark.parametrize(
    'mask', [BOX, [*BOX, *BOX], {'size': [80, 100], 'counts': TEXT}, {'size': [80, 100], 'counts': RUNS}]
)
def test_masks_that_mmdet_loads(tmp_path: Path, mask: Any) -> None:
    assert about(tmp_path, coco([ann(0, segmentation=mask)])).mask_faults == {}
    assert loaded(mask) == [False]


#: Mask, its fault, and whether mmdet stops there; else it ignores the object, or trains other pixels.
WRONG: List[Any] = [
    (None, NONE, True),
    ([], NONE, True),
    ({}, NONE, True),
    ('', NONE, True),
    ('garbage', NO_MASK, True),
    (5, NO_MASK, True),
    (True, NO_MASK, True),
    ({'counts': TEXT}, NO_MASK, False),
    ({'size': [80, 100]}, NO_MASK, False),
    ({'size': 'large', 'counts': RUNS}, NO_MASK, True),
    ({'size': [80, 100], 'counts': 5}, NO_MASK, False),
    ({'size': [80, 100], 'counts': ['a']}, COUNTS, True),
    ({'size': [80, 100], 'counts': [-5, 8005]}, COUNTS, None),
    ({'size': [80, 100], 'counts': 'garbage~~'}, COUNTS, None),
    ({'size': [80, 100], 'counts': TEXT[:-1]}, COUNTS, None),
    ({'size': [80, 100], 'counts': TEXT + 'ö'}, COUNTS, None),
    ({'size': [80, 100], 'counts': [8000, 20, 60]}, COUNTS, None),
    ({'size': [80, 100], 'counts': ''}, COUNTS, None),
    ({'size': [80, 100], 'counts': [8000]}, EMPTY, False),
    ({'size': [100, 80], 'counts': RUNS}, OTHER_SIZE, None),
    ({'size': [8, 9], 'counts': [10, 62]}, OTHER_SIZE, True),
    ({'size': [10**9, 10**9], 'counts': [1, 10**18 - 1]}, OTHER_SIZE, None),
    ({'size': [10**30, 10**30], 'counts': [10**400]}, OTHER_SIZE, None),
    ({'size': [-80, -100], 'counts': RUNS}, OTHER_SIZE, None),
    ([1, 2, 3, 4, 5, 6], NO_NUMBERS, True),
    ([['a'] * 6], NO_NUMBERS, True),
    ([[[1, 1], [9, 1], [9, 9], [1, 9], [1, 5], [1, 2]]], NO_NUMBERS, None),
    ([[1, 1, 9, 1, 9, float('nan')]], NO_NUMBERS, None),
    ([[1, 1, 9, 1, 9, float('inf')]], NO_NUMBERS, None),
    ([[1, 2]], SHORT, False),
    ([[]], SHORT, False),
    ([[1, 1, 9, 1, 9, 9, 5]], SHORT, False),
    ([*BOX, [1, 2]], SHORT, None),
    ([[1, 1, 900, 1, 9, 9]], FAR, None),
    ([[1, 1, 10**400, 1, 9, 9]], FAR, None),
    ([[-500, 1, 9, 1, 9, 9]], FAR, None),
    # On a line, within a pixel, longer than it is wide, and of several parts.
    ([[40.5, 7.5, 43.5, 10.5, 42, 9]], NO_PIXEL, None),
    ([[61.2, 3.2, 61.7, 3.2, 61.7, 3.7]], NO_PIXEL, None),
    ([[10, 10, 30, 10, 30, 10.3, 10, 10.3]], NO_PIXEL, None),
    ([[5, 5, 9, 5, 7, 5], [2.2, 2.2, 2.4, 2.2, 2.4, 2.4]], NO_PIXEL, None),
]


#: Fault -> its code; all others cannot be decoded.
CODES = {
    NONE: 'MG396',
    **dict.fromkeys([OTHER_SIZE, FAR], 'MG397'),
    **dict.fromkeys([SHORT, NO_PIXEL, EMPTY], 'MG398'),
}


@pytest.mark.parametrize(('mask', 'fault', 'stops'), WRONG)
def test_each_fault_is_named(tmp_path: Path, mask: Any, fault: str, stops: Any) -> None:
    record = coco([ann(6, segmentation=BOX), ann(7, 1, segmentation=mask)])
    found = about(tmp_path, record)
    assert found.mask_faults == {fault: 1}
    assert found.mask_examples == {fault: ['1.jpg: annotation 7']}
    assert diagnose(scan_coco(write(tmp_path, record), class_names=NAMES, masks=True))[0].code == CODES.get(
        fault, 'MG179'
    )
    # Read with the standard library, as blocks with unusual values are: nothing else comes out.
    record['annotations'][0]['note'] = float('nan')
    assert about(tmp_path, record).mask_faults == {fault: 1}
    if stops is not None:  # others may end the process, or take all memory
        if stops:
            with pytest.raises((KeyError, TypeError, ValueError, IndexError, AssertionError)):
                loaded(mask)
        elif fault != EMPTY:
            assert loaded(mask) == [True]


def test_what_is_not_loaded_needs_no_mask(tmp_path: Path) -> None:
    record = coco([ann(0, segmentation=BOX), ann(1, ignore=1), ann(2, image=9), ann(3, box=(10, 10, 0.5, 20))])
    assert about(tmp_path, record).mask_faults == {}
    record['annotations'].append(ann(4, iscrowd=1))  # mmdet loads the masks of crowds, too
    assert about(tmp_path, record).mask_faults == {NONE: 1}


def test_sizes_of_rles_are_compared_unasked(tmp_path: Path) -> None:
    turned = {'size': [100, 80], 'counts': [8000 - 9, 9]}
    record = coco([ann(0, segmentation=turned), ann(1, segmentation=[]), ann(2, segmentation='garbage')])
    facts = scan_coco(write(tmp_path, record), class_names=NAMES).coco
    assert (facts.mask_faults, facts.masks_read) == ({OTHER_SIZE: 1}, False)


def test_images_behind_the_annotations(tmp_path: Path) -> None:
    record = coco([ann(0, segmentation={'size': [100, 80], 'counts': [8000 - 9, 9]})])
    (tmp_path / 'train.json').write_text(
        json.dumps({key: record[key] for key in ('annotations', 'categories', 'images')})
    )
    facts = scan_coco(str(tmp_path / 'train.json'), masks=True).coco
    assert facts.mask_faults == {OTHER_SIZE: 1}


@given(
    st.lists(
        arrays(np.uint8, st.tuples(st.integers(1, 12), st.integers(1, 90)), elements=st.integers(0, 1)), min_size=1
    )
)
def test_run_lengths_are_added_up_as_pycocotools_decodes_them(pixels: List[np.ndarray]) -> None:
    encoded = [encoder.encode(np.asfortranarray(one)) for one in pixels]
    masks = [Rle(tuple(one.shape), code['counts'].decode()) for one, code in zip(pixels, encoded)]
    faults = [MASK_FAULTS[code] for code in mask_column(masks)['fault']]
    assert faults == ['' if one.any() else EMPTY for one in pixels]
    more = [Rle((height, width + 1), mask.counts) for mask in masks for height, width in [mask.size]]
    assert {MASK_FAULTS[code] for code in mask_column(more)['fault']} == {COUNTS}


@given(st.lists(st.text('0123456789:;<=>?@ABCXYZ[]^_`abmno~é', max_size=30), min_size=1))
def test_no_text_crashes_it_or_shifts_the_next(texts: List[str]) -> None:
    alone = [int(mask_column([Rle((9, 9), text)])['fault'][0]) for text in texts]
    assert mask_column([Rle((9, 9), text) for text in texts])['fault'].tolist() == alone


def test_a_config_asks_for_masks(tmp_path: Path) -> None:
    write(tmp_path, coco([ann(0, segmentation='garbage')]))
    leaf = dict(type='CocoDataset', data_root=str(tmp_path), ann_file='train.json', metainfo=dict(classes=tuple(NAMES)))
    cfg: Dict[str, Any] = dict(train_dataloader=dict(dataset=leaf), val_dataloader=dict(dataset=dict(leaf)))

    def faults(split: str = 'train', **options: Any) -> Dict[str, int]:
        found = scan_detection_config(cfg, split, 3, **options).coco
        return found.mask_faults

    assert faults() == {}
    assert faults(masks=True) == {NO_MASK: 1}
    leaf['pipeline'] = [dict(type='LoadAnnotations', with_bbox=True, with_mask=True)]
    assert faults() == {NO_MASK: 1}
    assert faults('val') == {NO_MASK: 1}  # they are compared with those that are predicted
    del leaf['pipeline']
    cfg['model'] = dict(roi_head=dict(mask_head=dict(type='FCNMaskHead', num_classes=3)))
    assert [dataset.masks for dataset in find_det_datasets(cfg)] == [True]


def test_many_masks_take_no_time(tmp_path: Path) -> None:
    masks = [BOX, {'size': [80, 100], 'counts': TEXT}, [[float(n * n % 89) for n in range(400)]]]
    record = coco([ann(n, n % 3, segmentation=masks[n % 3]) for n in range(30_000)])
    path = write(tmp_path, record)
    start = time.process_time()
    facts = scan_coco(path, class_names=NAMES, masks=True).coco
    assert facts.mask_faults == {}
    assert time.process_time() - start < 5  # half a second on an idle machine


@given(arrays(np.float64, st.tuples(st.integers(3, 6), st.just(2)), elements=st.floats(20, 24, width=16)))
def test_thin_polygons_are_drawn_as_pycocotools_draws_them(corners: np.ndarray) -> None:
    polygon = corners.ravel().tolist()
    (fault,) = mask_column([[polygon]])['fault']
    is_empty = not encoder.area(encoder.merge(encoder.frPyObjects([polygon], 80, 100)))
    assert MASK_FAULTS[fault] == (NO_PIXEL if is_empty else '')


@pytest.mark.timeout(60)
def test_thin_polygons_cost_no_more_than_their_file(tmp_path: Path) -> None:
    zigzag = [[x for n in range(12_000) for x in ((0.0, 0.0) if n % 2 else (16_000.0, 16_000.0))]]
    thin = [[0, 0, 16_000, 16_000, 1, 1]]
    image = dict(id=0, file_name='a.jpg', width=20_000, height=20_000)
    began = time.process_time()
    for masks, faults in (([zigzag], {LONG: 1}), ([thin] * 20_000, {LONG: 19_900})):
        record = {**coco([ann(1, segmentation=mask) for mask in masks]), 'images': [image]}
        found = about(tmp_path, record).mask_faults
        assert found.get(LONG, 0) >= faults[LONG]
    assert time.process_time() - began < 20
    # Fifty wires of one pixel, through a whole image.
    wire = [[x for n in range(300) for x in (10.0 * n, 50.0 + n % 2)] + [2990.0, 50.0]]
    record = {**coco([ann(1, segmentation=wire)] * 50), 'images': [image]}
    assert LONG not in about(tmp_path, record).mask_faults
