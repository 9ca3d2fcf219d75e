"""Counts of COCO files equal those that mmdet, pycocotools or plain Python come to."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Dict, List

import numpy as np
import pytest
from coco_cases import NAMES, ann, coco, histogram, random_coco, trained_by_mmdet, write
from hypothesis import given, settings
from hypothesis import strategies as st

from mmguard.findings import diagnose
from mmguard.formats.coco.read import scan_coco
from mmguard.formats.table import find_places

pytest.importorskip('mmseg')


@pytest.mark.parametrize('seed', range(6))
def test_the_histogram_is_what_mmdet_trains(tmp_path: Path, seed: int) -> None:
    record = random_coco(seed)
    names = [category['name'] for category in record['categories']][:: 2 if seed % 2 else -1][:4]
    path = write(tmp_path, record)
    facts = scan_coco(path, class_names=names)
    trained = trained_by_mmdet(path, names)
    assert facts.histogram == histogram(trained)
    assert facts.num_classes == len(names)
    about = facts.annotations
    assert about.images_without_target == sum(not image for image in trained)
    assert about.left_out_names == {
        category['name']: sum(a['category_id'] == category['id'] for a in record['annotations'])
        for category in record['categories']
        if category['name'] not in names
    }
    # Every annotation is trained, ignored or left out for one reason.
    kept = sum(map(len, trained)) + sum(about.left_out.values())
    crowds = [a for a in record['annotations'] if a['iscrowd']]
    assert kept <= facts.total == 200 <= kept + len(crowds)


@pytest.mark.parametrize('seed', range(3))
def test_each_fault_of_boxes_is_counted_once(tmp_path: Path, seed: int) -> None:
    record = random_coco(seed)
    expected: Counter = Counter()
    for a in record['annotations']:
        x, y, w, h = a['bbox']
        if a.get('ignore'):
            continue
        if w <= 0 or h <= 0:
            expected['box_no_area'] += 1
        elif x + w <= 0 or y + h <= 0 or x >= 100 or y >= 80:
            expected['box_outside'] += 1
    facts = scan_coco(write(tmp_path, record))
    assert facts.reasons == dict(expected)
    assert sum(len(examples) for examples in facts.boxes.box_examples.values()) > 0


def test_category_ids_are_labels_where_that_is_said(tmp_path: Path) -> None:
    # facebookresearch/detr#28: ids in the millions.
    record = coco([ann(0, category=2905442), ann(1, category=2905443), ann(2, category=2905443)], first_id=2905442)
    facts = scan_coco(write(tmp_path, record), num_classes=3, labels='ids')
    assert facts.values == facts.histogram == {2905442: 1, 2905443: 2}
    assert facts.annotations.labelled_by == 'category id'
    assert facts.annotations.categories == {2905442: 'cat', 2905443: 'dog', 2905444: 'bird'}


def test_lvis_numbers_every_category_and_takes_files_from_urls(tmp_path: Path) -> None:
    record = coco([ann(0, category=3), ann(1, category=1)])
    for image in record['images']:
        image['coco_url'] = f'http://images.cocodataset.org/val2017/{image.pop("file_name")}'
    (tmp_path / 'val2017').mkdir()
    (tmp_path / 'val2017' / '0.jpg').touch()
    facts = scan_coco(write(tmp_path, record), class_names=['bird'], images=str(tmp_path), family='lvis_url')
    assert facts.histogram == {0: 1, 2: 1}
    assert facts.annotations.missing_files == ['val2017/1.jpg', 'val2017/2.jpg']


@settings(max_examples=60, deadline=None)
@given(
    keys=st.lists(st.integers(-50, 50) | st.integers(-(2**61), 2**61), max_size=12),
    values=st.lists(st.integers(-60, 60), max_size=12),
)
def test_places_are_those_of_a_dict(keys: List[int], values: List[int]) -> None:
    expected: Dict[int, int] = {key: place for place, key in enumerate(keys)}
    looked_up = values + keys
    found = find_places(np.array(looked_up, np.int64), np.array(keys, np.int64))
    assert found.tolist() == [expected.get(value, -1) for value in looked_up]


# ---- what is reported beside the counts


def scan(tmp_path: Path, record: Any, **kwargs: Any) -> SimpleNamespace:
    facts = scan_coco(write(tmp_path, record), **kwargs)
    return SimpleNamespace(**vars(facts.annotations), **vars(facts.boxes), **vars(facts.coco))


def test_clean_data_has_nothing_to_tell(tmp_path: Path) -> None:
    record = coco([ann(number, number % 3, 1 + number % 3) for number in range(9)])
    for image in record['images']:
        (tmp_path / image['file_name']).touch()
    facts = scan_coco(write(tmp_path, record), class_names=NAMES, images=str(tmp_path))
    about = scan(tmp_path, record, class_names=NAMES, images=str(tmp_path))
    assert (facts.values, facts.reasons, facts.offending_files) == ({}, {}, 0)
    assert facts.histogram == {0: 3, 1: 3, 2: 3}
    settings = ('format', 'names_from', 'labelled_by', 'min_size', 'record_advice')
    listed = ('categories', 'instances_of', 'sources')
    reported = {name: value for name, value in vars(about).items() if value and name not in (*settings, *listed)}
    assert reported == {
        'images': 3,
        'annotations': 9,
        'files_with_class': {0: 1, 1: 1, 2: 1},
        'usable': {0: 3, 1: 3, 2: 3},
    }
    assert about.instances_of == {'1': 3, '2': 3, '3': 3}


def test_classes_in_images(tmp_path: Path) -> None:
    about = scan(tmp_path, coco([ann(0), ann(1), ann(2, image=1), ann(3, category=2)]))
    assert about.instances_of == {'1': 3, '2': 1, '3': 0}
    assert about.images_without_target == 1


def test_images_whose_targets_are_faulty_are_not_empty(tmp_path: Path) -> None:
    """A box without an area and a category without a name are the only targets of two of three images without one."""
    record = coco([ann(0), {**ann(1, image=1), 'bbox': [1, 2, 0, 4]}, ann(2, image=2, category=44)])
    record['images'] += [{**record['images'][0], 'id': number, 'file_name': f'{number}.jpg'} for number in (77, 78)]
    about = scan(tmp_path, record)
    assert (about.images_without_target, about.images_spoiled) == (4, 2)
    facts = scan_coco(write(tmp_path, record), class_names=NAMES)
    (finding,) = [one for one in diagnose(facts) if one.code == 'MG146']
    assert finding.evidence.values['number'] == 2
    record['images'] = record['images'][:-2]
    found = [one.code for one in diagnose(scan_coco(write(tmp_path, record), class_names=NAMES))]
    assert {'MG109', 'MG149'} <= set(found)
    assert 'MG146' not in found


def test_duplicates_orphans_and_unnamed(tmp_path: Path) -> None:
    record = coco([ann(7), ann(7), ann(8, image=99), ann(9, category=44), ann(10, category=44)])
    record['images'].append(dict(record['images'][1]))
    record['categories'].append(dict(id=3, name='cat'))
    about = scan(tmp_path, record)
    assert about.duplicate_annotation_ids == [7]
    assert about.duplicate_image_ids == [1]
    assert about.duplicate_files == ['1.jpg']
    assert about.duplicate_category_ids == [3]
    assert about.duplicate_names == ['cat']
    assert 1 in about.left_out.values()
    assert about.unnamed == {44: 2}


def test_names_in_another_order_and_names_that_are_missing(tmp_path: Path) -> None:
    record = coco([ann(0, category=1), ann(1, category=2), ann(2, category=3)])
    about = scan(tmp_path, record, class_names=['dog', 'cat', 'fish'])
    assert about.renamed == [(0, 'cat', 'dog'), (1, 'dog', 'cat')]
    assert list(about.left_out.values()) == [1]
    assert about.left_out_names == {'bird': 1}


def test_images_below_the_filter_of_the_data_set(tmp_path: Path) -> None:
    # mmdetection#3628: 10 x 10, and nothing is left to train on.
    record = coco([ann(0)])
    for image in record['images'][:2]:
        image.update(width=10, height=10)
    about = scan(tmp_path, record)
    assert (about.small_images, about.min_size) == (2, 32)
    assert scan(tmp_path, record, min_size=10).small_images == 0


def test_missing_keys_are_counted(tmp_path: Path) -> None:
    record = coco([ann(number) for number in range(3)])
    del record['annotations'][0]['area'], record['annotations'][1]['bbox'], record['images'][2]['width']
    record['annotations'][2]['area'] = None
    about = scan(tmp_path, record)
    assert about.without_key == {'annotations.area': 2, 'annotations.bbox': 1, 'images.width': 1}


def test_negative_and_overhanging_boxes(tmp_path: Path) -> None:
    record = coco([ann(0, box=(-3, 5, 10, 10)), ann(1, box=(95, 5, 10, 10)), ann(2, box=(95, 5, 5.5, 10))])
    about = scan(tmp_path, record)
    assert (about.negative_boxes, about.over_edge) == (1, 1)
    assert about.box_examples == {'negative': ['0.jpg: -3, 5, 10, 10'], 'over_edge': ['0.jpg: 95, 5, 10, 10']}


@pytest.mark.parametrize('texts', [('a', 'b', 'c'), (2**70, 2**71, 2**72), (0.5, 1.5, 2.5)])
def test_ids_that_are_no_integers_work_as_in_pycocotools(tmp_path: Path, texts: tuple) -> None:
    record = coco([ann(number, number % 3) for number in range(6)])
    for image, text in zip(record['images'], texts):
        image['id'] = text
    for number, annotation in enumerate(record['annotations']):
        annotation['image_id'] = texts[number % 3]
    about = scan(tmp_path, record)
    assert (about.left_out, about.images_without_target, about.unreadable) == ({}, 0, {})
    record['images'][1]['id'] = texts[0]
    about = scan(tmp_path, record)
    assert (about.duplicate_image_ids, list(about.left_out.values())) == ([texts[0]], [2])


def test_categories_of_panoptic_files_say_whether_they_are_things(tmp_path: Path) -> None:
    segment = dict(id=7, category_id=1, bbox=[1, 1, 9, 9], area=81, iscrowd=0)
    record = coco([dict(image_id=0, file_name='0.png', segments_info=[segment])])
    assert scan_coco(write(tmp_path, record)).annotations.without_key == {'categories.isthing': 3}
    for category in record['categories']:
        category['isthing'] = 1
    assert scan_coco(write(tmp_path, record)).annotations.without_key == {}
    del record['categories'][0]['isthing']
    record['annotations'] = [ann(0)]
    assert scan_coco(write(tmp_path, record)).annotations.without_key == {}


def test_lvis_names_its_images_by_url(tmp_path: Path) -> None:
    path = write(tmp_path, coco([ann(0)]))
    assert scan_coco(path, family='lvis_url').annotations.without_key == {'images.coco_url': 3}


@pytest.mark.parametrize('number', [(1 << 62) + 5, (1 << 63) - 1, 1 << 63, -(1 << 70), '000000000139', 2.5])
def test_ids_of_any_size_and_kind_name_their_image_and_category(tmp_path: Path, number: Any) -> None:
    rle = {'size': [80, 100], 'counts': [0, 8000]}
    record = coco([ann(1, image=number, category=number, segmentation=rle)], images=1, names=['cat'])
    record['images'][0]['id'] = record['categories'][0]['id'] = number
    facts = scan_coco(write(tmp_path, record), class_names=['cat'], masks=True)
    assert (facts.histogram, facts.annotations.left_out, facts.coco.mask_faults) == ({0: 1}, {}, {})
