"""The data sets of a config: the files that mmdet would read, through all wrappers, counted as mmdet trains them."""

from __future__ import annotations

import contextlib
import io
from collections import Counter
from pathlib import Path
from typing import Any, Dict

import pytest
from coco_cases import ann, coco, write
from mmengine.config import Config
from mmengine.registry import init_default_scope
from small_det_data import MAKERS
from small_det_runs import LAYOUTS, faults_in, small_config

from mmguard.scanning.config_instances import find_det_datasets, merge_facts, scan_detection_config


def trained_by_mmdet(cfg: Config) -> Dict[int, int]:
    from mmdet.registry import DATASETS

    init_default_scope('mmdet')
    counts: Counter = Counter()
    for dataset in find_det_datasets(cfg):
        settings = {**dataset.settings, 'filter_cfg': None, 'pipeline': [], 'serialize_data': False}
        with contextlib.redirect_stdout(io.StringIO()):
            built = DATASETS.build(settings)
        counts.update(i['bbox_label'] for image in built.data_list for i in image['instances'] if not i['ignore_flag'])
    return dict(sorted(counts.items()))


@pytest.mark.parametrize('family', ['mask_rcnn', 'dino', 'faster_rcnn', 'mask2former'])
def test_the_configs_of_the_training_tests(tmp_path: Path, family: str) -> None:
    root = MAKERS[family](str(tmp_path / 'data'))
    cfg = small_config(family, root, str(tmp_path / 'work'), validate=True)
    facts = scan_detection_config(cfg)
    labels = Counter(fault.label for fault in faults_in(family, root) if fault.reason == 'label')
    assert facts.num_classes == LAYOUTS[family].num_classes
    assert facts.values == dict(sorted(labels.items()))
    assert facts.histogram == trained_by_mmdet(cfg)
    assert facts.files == 8
    assert (facts.annotations.missing, facts.annotations.unreadable) == (0, {})
    val = scan_detection_config(cfg, 'val')
    assert val.files == 4
    assert sum(val.values.values()) == sum(f.reason == 'label' for f in faults_in(family, root, 'val'))


def loader(dataset: Dict[str, Any]) -> Config:
    return Config(dict(train_dataloader=dict(dataset=dataset), model=dict(bbox_head=dict(num_classes=2))))


def leaf(root: Path, **more: Any) -> Dict[str, Any]:
    return dict(type='CocoDataset', data_root=str(root), ann_file='train.json', data_prefix=dict(img='images/'), **more)


def test_wrappers_are_opened_and_paths_are_joined(tmp_path: Path) -> None:
    one, two = leaf(tmp_path), leaf(tmp_path, metainfo=dict(classes=('cat',)))
    cfg = loader(
        dict(
            type='MultiImageMixDataset',
            dataset=dict(
                type='RepeatDataset',
                times=3,
                dataset=dict(
                    type='ConcatDataset',
                    datasets=[one, dict(type='ClassBalancedDataset', oversample_thr=1, dataset=two)],
                ),
            ),
        )
    )
    first, second = find_det_datasets(cfg)
    assert first.path == 'train_dataloader.dataset.dataset.dataset.datasets[0]'
    assert second.path == 'train_dataloader.dataset.dataset.dataset.datasets[1].dataset'
    assert first.ann_file == str(tmp_path / 'train.json')
    assert first.images == str(tmp_path / 'images') + '/'
    assert len(first.class_names) == 80
    assert second.class_names == ['cat']


def test_the_filter_and_the_class_list_come_from_the_config(tmp_path: Path) -> None:
    record = coco([ann(0, category=1), ann(1, image=1, category=3), ann(2, image=2, category=2)])
    record['images'][0].update(width=30)
    write(tmp_path, record)
    (tmp_path / 'images').mkdir()
    (tmp_path / 'images' / '0.jpg').touch()
    cfg = loader(leaf(tmp_path, metainfo=dict(classes=('bird', 'cat')), filter_cfg=dict(min_size=31)))
    facts = scan_detection_config(cfg)
    assert facts.class_names == ['bird', 'cat']
    assert facts.histogram == {0: 1, 1: 1}
    assert facts.coco.renamed == [(0, 'cat', 'bird'), (1, 'bird', 'cat')]
    assert facts.annotations.left_out_names == {'dog': 1}
    assert facts.annotations.small_images == 1
    assert facts.annotations.missing_files == ['1.jpg', '2.jpg']
    cfg.train_dataloader.dataset.test_mode = True
    assert scan_detection_config(cfg).annotations.small_images == 0


def test_classes_in_a_file_and_classes_without_a_comma(tmp_path: Path) -> None:
    write(tmp_path, coco([ann(0, category=1), ann(1, category=2)]))
    names = tmp_path / 'names.txt'
    names.write_text('cat\ndog\n')
    cfg = loader(leaf(tmp_path, metainfo=dict(classes=str(names))))
    assert scan_detection_config(cfg).class_names == ['cat', 'dog']
    cfg.train_dataloader.dataset.metainfo.classes = 'cat'
    assert scan_detection_config(cfg).histogram == {0: 1}


def test_data_sets_of_unknown_formats_are_named(tmp_path: Path) -> None:
    from mmdet.datasets import VOCDataset

    write(tmp_path, coco([ann(0)]))
    odd = dict(type='CrowdHumanDataset', data_root='x', ann_file='y')
    facts = scan_detection_config(loader(dict(type='ConcatDataset', datasets=[leaf(tmp_path), odd])))
    (places,) = [where for what, where in facts.annotations.unreadable.items() if 'CrowdHumanDataset' in what]
    assert places == ['train_dataloader.dataset.datasets[1]']
    untyped = dict(data_root='x', ann_file='y')
    own = type('WithFilesElsewhere', (VOCDataset,), {'parse_data_info': lambda self, info: info})
    for dataset, split, named in (
        (odd, 'train', 'CrowdHumanDataset'),
        (dict(odd, type='WIDERFaceDataset'), 'train', 'WIDERFaceDataset'),
        (dict(odd, type='OpenImagesDataset'), 'train', r'OpenImagesDataset\. .*`mmguard trace CONFIG --samples 50`'),
        (dict(odd, type=own), 'train', 'WithFilesElsewhere'),
        (untyped, 'train', 'type'),
        (odd, 'val', "'val'"),
        (odd, 'training', "'train', 'val', 'test'"),
    ):
        with pytest.raises(ValueError, match=named):
            scan_detection_config(loader(dataset), split)


@pytest.mark.parametrize('is_own', [False, True])
def test_images_of_a_class_that_finds_its_own_are_not_missing(tmp_path: Path, is_own: bool) -> None:
    from mmdet.datasets import CocoDataset

    write(tmp_path, coco([ann(1), ann(2)]))
    own = type('WithImagesElsewhere', (CocoDataset,), {'parse_data_info': lambda self, info: info})
    dataset = dict(leaf(tmp_path), type=own if is_own else CocoDataset)
    found = scan_detection_config(loader(dataset)).annotations
    assert found.images > 0
    assert (found.missing == 0) is is_own


def test_a_data_set_whose_files_are_not_there_is_reported(tmp_path: Path) -> None:
    for dataset in (leaf(tmp_path), dict(type='VOCDataset', data_root=str(tmp_path), ann_file='none.txt')):
        facts = scan_detection_config(loader(dataset))
        assert facts.total == 0
        assert facts.annotations.unreadable


def test_facts_add_up(tmp_path: Path) -> None:
    write(tmp_path, coco([ann(0), ann(0, category=2), ann(2, box=(0, 0, 0, 5))]))
    once = scan_detection_config(loader(leaf(tmp_path, metainfo=dict(classes=('cat', 'fish')))))
    twice = merge_facts([once, once])
    assert twice.histogram == {label: 2 * count for label, count in once.histogram.items()}
    assert (twice.total, twice.files, twice.num_classes) == (6, 6, 2)
    assert twice.reasons == {'box_no_area': 2}
    assert twice.annotations.categories == once.annotations.categories
    assert twice.coco.duplicate_annotation_ids == [0]
    assert twice.annotations.left_out_names == {'dog': 2, 'bird': 0}
