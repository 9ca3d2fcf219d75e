"""Configs of MMDetection 2.x and MMSegmentation 0.x: their labels are scanned as they were read there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict

import numpy as np
import pytest
from label_files import write
from put_file import put, put_config
from scans import run_scan
from this_stack import IS_ONEDL
from voc_cases import SIZE, obj, xml

from mmguard.cli import main
from mmguard.config.other_styles import add_loaders
from mmguard.config.read import ReadConfig, read_config
from mmguard.scanning.config_instances import find_det_datasets
from mmguard.scanning.config_maps import split_sets

pytest.importorskip('mmseg')

BOXES = [('crack', [10, 20, 100, 120]), ('rust', [20, 20, 60, 70])]
HEAD = dict(type='Shared2FCBBoxHead', num_classes=2, loss_cls=dict(type='CrossEntropyLoss'))
DETECTOR = dict(type='FasterRCNN', roi_head=dict(type='StandardRoIHead', bbox_head=HEAD))


def old_config(root: Path, model: Dict[str, Any], **splits: Any) -> str:
    data = dict(samples_per_gpu=2, workers_per_gpu=2, **splits)
    return str(put_config(root / 'old.py', model=model, data=data))


def voc(root: Path) -> Dict[str, Any]:
    """Names of their own in VOC's format: CLASSES was edited in what was installed, class_names.py was not."""
    for number in range(3):
        write(root / f'VOC2007/JPEGImages/{number}.jpg', np.zeros((240, 320, 3), np.uint8))
        text = xml(*(obj(*one) for one in BOXES), size=SIZE.format(320, 240))
        put(root / f'VOC2007/Annotations/{number}.xml', text)
    index = put(root / 'VOC2007/ImageSets/Main/train.txt', '0\n1\n2\n')
    return dict(
        type='VOCDataset',
        ann_file=[str(index)],
        img_prefix=[f'{root}/VOC2007/'],
        pipeline=[],
    )


@pytest.mark.skipif(IS_ONEDL, reason='needs mmdet')
def test_voc_of_mmdet_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    leaf = voc(tmp_path)
    path = old_config(tmp_path, DETECTOR, train=dict(type='RepeatDataset', times=3, dataset=leaf), val=leaf, test=leaf)
    assert main(['scan', path, '--json', '-']) == 1
    findings = [one for data in json.loads(capsys.readouterr().out)['datasets'] for one in data['findings']]
    assert 'MG227' in {finding['code'] for finding in findings}
    written = [edit['config'] for finding in findings for edit in finding['edits']]
    assert '["crack", "rust"]' in json.dumps(written)
    named = {**leaf, 'classes': ('crack', 'rust')}
    (result,) = run_scan(old_config(tmp_path, DETECTOR, train=dict(type='RepeatDataset', times=3, dataset=named)))
    assert (result.facts.histogram, result.facts.class_names) == ({0: 3, 1: 3}, ['crack', 'rust'])
    assert [finding.code for finding in result.findings] == ['MG227', 'MG100']
    assert result.facts.loader.files == 3  # mmdet's own class reads them alike


@pytest.mark.skipif(IS_ONEDL, reason='needs mmseg')
def test_label_maps_of_mmseg_0(tmp_path: Path) -> None:
    label = np.arange(64).reshape(8, 8).astype(np.uint8) % 4
    for number in range(3):
        write(tmp_path / f'img/{number}.jpg', np.zeros((8, 8, 3), np.uint8))
        write(tmp_path / f'ann/{number}.png', label)
    loads = [dict(type='LoadImageFromFile'), dict(type='LoadAnnotations')]
    leaf = dict(type='CustomDataset', data_root=str(tmp_path), img_dir='img', ann_dir='ann', classes=tuple('abc'))
    model = dict(type='EncoderDecoder', decode_head=dict(type='FCNHead', num_classes=3))
    train = dict(type='RepeatDataset', times=2, dataset=dict(leaf, pipeline=loads))
    (result,) = run_scan(old_config(tmp_path, model, train=train, val=leaf))
    assert (result.name, result.facts.values, result.facts.files) == ('train, val', {3: 48}, 3)
    first = result.findings[0]
    assert first.code == 'MG102'
    assert not any(
        'GuardSegLabels' in str(edit.config) for edit in first.edits
    )  # mmcv 1.x knows no transform of mmguard
    assert any(edit.files for edit in first.edits)
    reduced = dict(
        leaf, type='ADE20KDataset', classes=tuple('abc'), pipeline=[loads[0], dict(loads[1], reduce_zero_label=True)]
    )
    leaves = split_sets(add_loaders(read_config(old_config(tmp_path, model, train=[reduced, leaf]))).data)
    assert [one.config['type'] for one in leaves] == ['ADE20KDataset', 'BaseSegDataset']
    assert leaves[0].config['reduce_zero_label'] is True


@pytest.mark.skipif(IS_ONEDL, reason='needs mmseg')
@pytest.mark.parametrize(
    ('style', 'classes', 'ignored', 'written'), [('old', 4, 0, 255), ('old', 6, 2, 255), ('new', 5, 1, 255)]
)
def test_a_class_that_only_the_metric_ignores_is_no_all_clear(
    style: str, classes: int, ignored: int, written: int, tmp_path: Path
) -> None:
    for number in range(4):
        write(tmp_path / f'img/{number}.jpg', np.zeros((12, 12, 3), np.uint8))
        write(tmp_path / f'ann/{number}.png', np.arange(144).reshape(12, 12).astype(np.uint8) % classes)
    names, pipeline = tuple('abcdef'[:classes]), [dict(type='LoadImageFromFile'), dict(type='LoadAnnotations')]
    model = dict(type='EncoderDecoder', decode_head=dict(type='FCNHead', num_classes=classes))
    if style == 'old':
        leaf = dict(type='CustomDataset', data_root=str(tmp_path), img_dir='img', ann_dir='ann', classes=names)
        leaf.update(pipeline=pipeline, ignore_index=ignored)
        path, place = old_config(tmp_path, model, train=leaf, val=leaf), 'data.val.ignore_index'
    else:
        found = dict(type='BaseSegDataset', data_root=str(tmp_path), metainfo=dict(classes=names), pipeline=pipeline)
        found.update(data_prefix=dict(img_path='img', seg_map_path='ann'))
        loader, metric = dict(batch_size=1, dataset=found), dict(type='IoUMetric', ignore_index=ignored)
        said = dict(default_scope='mmseg', model=model, train_dataloader=loader, val_dataloader=loader)
        path = str(put_config(tmp_path / 'new.py', **said, val_evaluator=metric))
        place = 'val_evaluator.ignore_index'
    findings = {finding.code: finding for result in run_scan(path) for finding in result.findings}
    assert 'MG100' not in findings
    assert place in findings['MG208'].places
    assert [dict(edit.config)[place] for edit in findings['MG208'].edits] == [written]


@pytest.mark.skipif(IS_ONEDL, reason='needs mmdet')
def test_every_file_of_a_list_is_read() -> None:
    leaf = dict(
        type='CocoDataset', data_root='data', ann_file=['a.json', 'b.json'], img_prefix='images', seg_prefix='stuff'
    )
    balanced = dict(type='ClassBalancedDataset', oversample_thr=0.1, dataset=leaf)
    mine = dict(type='MyDataset', ann_file='c.json', filter_empty_gt=False)
    read = ReadConfig(
        dict(model=DETECTOR, data=dict(train_dataloader=dict(samples_per_gpu=1), train=[balanced, mine], val=mine))
    )
    today = add_loaders(read)
    found = find_det_datasets(today.data, 'train')
    assert [one.ann_file for one in found] == ['data/a.json', 'data/b.json', 'c.json']
    assert [one.images for one in found] == ['data/images', 'data/images', '']
    assert [one.filter_cfg['filter_empty_gt'] for one in found] == [True, True, False]
    assert [one.family for one in found] == ['coco'] * 3
    assert find_det_datasets(today.data, 'val')[0].test_mode
    (note,) = today.notes
    assert all(name in note for name in ('MyDataset', 'CocoDataset'))
    new = ReadConfig(dict(default_scope='mmdet', train_dataloader=dict(dataset=leaf)))
    assert add_loaders(new) is new
