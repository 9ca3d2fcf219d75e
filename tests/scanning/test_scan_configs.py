"""The data sets of mmseg configs: the same files and labels as mmseg's own, whatever wraps them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Dict

import numpy as np
import pytest
from label_files import BLOCKS, write
from mmengine.registry import init_default_scope
from put_file import put_config
from scans import run_scan
from small_runs import NUM_CLASSES, TRAIN_IMAGES, VAL_IMAGES, dataset_config, invalid_values

from mmguard.cli import main
from mmguard.errors import CannotRun
from mmguard.formats.format import CannotScan
from mmguard.formats.options import ScanOptions
from mmguard.scanning.config_maps import split_sets
from mmguard.scanning.plans import plan_target

LOAD = [dict(type='LoadImageFromFile'), dict(type='LoadAnnotations')]


def write_config(folder: Path, **parts: Any) -> str:
    """A config file of mmseg with 19 classes."""
    model = dict(decode_head=dict(type='FCNHead', num_classes=NUM_CLASSES))
    return str(put_config(folder / 'config.py', default_scope='mmseg', model=model, **parts))


def loader(dataset: Any) -> Dict[str, Any]:
    return dict(batch_size=1, num_workers=0, dataset=dataset)


def stock_counts(dataset: Any) -> Dict[int, int]:
    """What mmseg's own data set and loader hand to the rest of the pipeline."""
    from mmseg.registry import DATASETS

    init_default_scope('mmseg')
    counts: Dict[int, int] = {}
    for sample in DATASETS.build(dataset):
        for value, count in zip(*np.unique(sample['gt_seg_map'], return_counts=True)):
            counts[int(value)] = counts.get(int(value), 0) + int(count)
    return counts


def test_the_splits_of_cityscapes(cityscapes: str, tmp_path: Path) -> None:
    train, val = (dataset_config(cityscapes, split, LOAD) for split in ('train', 'val'))
    config = write_config(
        tmp_path, train_dataloader=loader(train), val_dataloader=loader(val), test_dataloader=loader(val)
    )
    results = run_scan(config)
    assert [(one.name, one.facts.files) for one in results] == [('train', TRAIN_IMAGES), ('val, test', VAL_IMAGES)]
    expected: Dict[int, int] = {}
    for path in Path(cityscapes).glob('gtFine/train/*/*_labelTrainIds.png'):
        for value, count in invalid_values(str(path)).items():
            expected[int(value)] = expected.get(int(value), 0) + count
    facts = results[0].facts
    assert facts.values == expected
    assert facts.num_classes == NUM_CLASSES
    assert facts.class_names[0] == 'road'
    assert facts.histogram == stock_counts(train)
    assert facts.maps.image_forms == {'rgb': TRAIN_IMAGES}
    assert facts.maps.missing_images == facts.maps.missing_labels == []
    assert not results[0].is_clean
    assert [result.name for result in run_scan(config, splits=('val',))] == ['val']


def custom(root: Path, **more: Any) -> Dict[str, Any]:
    return dict(
        type='BaseSegDataset',
        data_root=str(root),
        data_prefix=dict(img_path='img', seg_map_path='ann'),
        metainfo=dict(classes=tuple('abcde')),
        img_suffix='.jpg',
        pipeline=LOAD,
        **more,
    )


@pytest.fixture
def five(tmp_path: Path) -> Path:
    """Five classes, 0..4, three images."""
    for number in range(3):
        write(tmp_path / 'img' / f'{number}.jpg', np.zeros((*BLOCKS.shape, 3), np.uint8))
        write(tmp_path / 'ann' / f'{number}.png', np.roll(BLOCKS, number))
    return tmp_path


WRAPPED = [
    lambda leaf: dict(type='RepeatDataset', times=2, dataset=leaf),
    lambda leaf: dict(type='ConcatDataset', datasets=[leaf]),
    lambda leaf: dict(type='RepeatDataset', times=2, dataset=dict(type='ConcatDataset', datasets=[leaf, leaf])),
    lambda leaf: dict(type='MultiImageMixDataset', dataset=leaf, pipeline=[dict(type='RandomFlip', prob=0.5)]),
]


@pytest.mark.parametrize('wrap', WRAPPED, ids=['repeat', 'concat', 'repeat concat', 'mix'])
def test_wrappers_are_taken_off(five: Path, wrap: Any) -> None:
    results = run_scan(write_config(five, train_dataloader=loader(wrap(custom(five)))))
    assert len(results) == 1  # the same data set twice is read once
    assert results[0].facts.files == 3
    assert results[0].facts.histogram == stock_counts(custom(five))


def test_reduce_zero_label_and_the_classes_of_the_metainfo_are_applied(five: Path, cityscapes: str) -> None:
    shifted = custom(five, reduce_zero_label=True)
    [result] = run_scan(write_config(five, train_dataloader=loader(shifted)))
    assert result.facts.histogram == stock_counts(shifted)
    assert 255 in result.facts.histogram
    assert list(result.facts.config.reduce_zero_label.values()) == [True]
    fewer = dataset_config(cityscapes, 'train', LOAD)
    fewer['metainfo'] = dict(classes=('car', 'road', 'person'))
    [result] = run_scan(write_config(five, train_dataloader=loader(fewer)))
    assert result.facts.histogram == stock_counts(fewer)
    assert result.facts.class_names == ['car', 'road', 'person']


def test_the_backend_of_the_loader_and_the_map_of_the_guard(five: Path) -> None:
    write(five / 'ann' / '0.png', BLOCKS, 'P')
    by_opencv = custom(five)
    by_opencv['pipeline'] = [LOAD[0], dict(type='LoadAnnotations', imdecode_backend='cv2')]
    [result] = run_scan(write_config(five, train_dataloader=loader(by_opencv)))
    assert result.facts.maps.loaded_otherwise == {'colors': 1}
    mapped = custom(five)
    mapped['pipeline'] = [*LOAD, dict(type='GuardSegLabels', num_classes=5, label_map={4: 255, 3: 0})]
    [result] = run_scan(write_config(five, train_dataloader=loader(mapped)))
    assert sorted(result.facts.histogram) == [0, 1, 2, 255]


def test_a_list_of_names_that_leads_nowhere(five: Path) -> None:
    (five / 'list.txt').write_text('0\n7\n')
    listed = custom(five, ann_file='list.txt')
    [result] = run_scan(write_config(five, train_dataloader=loader(listed)))
    assert result.facts.maps.missing_labels == [os.path.join('ann', '7.png')]
    assert result.facts.maps.missing_images == [os.path.join('img', '7.jpg')]


def test_what_cannot_be_opened_is_reported_and_the_rest_is_scanned(five: Path, capsys: pytest.CaptureFixture) -> None:
    missing = custom(five / 'nowhere', ann_file='list.txt')
    config = write_config(five, train_dataloader=loader(custom(five)), val_dataloader=loader(missing))
    assert main(['scan', config, '--processes', '1', '--json', '-']) == 2
    shown = capsys.readouterr()
    reported = json.loads(shown.out)
    assert [dataset['name'] for dataset in reported['datasets']] == ['train']
    (failed,) = reported['failed']
    assert failed.startswith('val: ')
    assert failed in shown.err
    with pytest.raises(CannotScan, match='val: '):
        plan_target(config, ScanOptions(splits=('val',)))


def test_a_config_that_ships_is_read(cityscapes: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / 'data').mkdir()
    (tmp_path / 'data' / 'cityscapes').symlink_to(cityscapes)  # where that config has it
    monkeypatch.chdir(tmp_path)
    plan = plan_target('mmseg::pspnet/pspnet_r50-d8_4xb2-40k_cityscapes-512x1024.py', ScanOptions())
    assert plan.sources
    assert not plan.failed
    with pytest.raises(CannotRun, match=r'pspnet/no_such\.py'):
        plan_target('mmseg::pspnet/no_such.py', ScanOptions())


def test_the_framework_that_a_data_set_is_not_of_is_named(tmp_path: Path) -> None:
    dataset = dict(type='VideoDataset', ann_file='x.txt', pipeline=[])
    config = put_config(tmp_path / 'config.py', default_scope='mmaction', train_dataloader=dict(dataset=dataset))
    with pytest.raises(CannotScan, match=r"VideoDataset[^$]*'mmaction'|'mmaction'[^$]*VideoDataset"):
        plan_target(str(config), ScanOptions(splits=('train',)))


def test_a_split_may_have_several_loaders() -> None:
    loaders = [dict(dataset=dict(type='A')), 5, dict(batch_size=1), dict(dataset=[dict(type='B'), dict(type='A')])]
    found = split_sets(dict(train_dataloader=dict(dataset=dict(type='C')), val_dataloader=loaders, test_dataloader=7))
    assert [(one.name, one.config['type']) for one in found] == [
        ('train', 'C'), ('val 1 of 3, val 3 of 3', 'A'), ('val 2 of 3', 'B'),
    ]  # fmt: skip
