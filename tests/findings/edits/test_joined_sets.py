"""Data sets of one training whose class lists differ: after the edit, real data sets deliver the labels of one list."""

from __future__ import annotations

import contextlib
import shlex
from pathlib import Path
from typing import Any, Dict, List, Mapping, Sequence

import numpy as np
import pytest
from label_files import write
from mmengine.registry import DATASETS, DefaultScope
from situation import coco_data, coco_json, findings_of, retina, seg_data, seg_model, some_boxes, train_config, voc_xml

from mmguard.cli import main
from mmguard.config.changes import change_config
from mmguard.config.read import ReadConfig, read_config
from mmguard.findings.engine import diagnose
from mmguard.properties.builder import Builder
from mmguard.properties.program import Program
from mmguard.properties.validation import check_labels, check_marks

pytest.importorskip('mmseg')
pytest.importorskip('mmdet')

CITYSCAPES = ('road', 'sidewalk', 'building', 'wall', 'fence', 'pole', 'traffic light', 'traffic sign', 'vegetation',
              'terrain', 'sky', 'person', 'rider', 'car', 'truck', 'bus', 'train', 'motorcycle', 'bicycle')  # fmt: skip
SUFFIXES = dict(img_suffix='.jpg', seg_map_suffix='.png')


def built(config: ReadConfig, split: str = 'train') -> Any:
    """The data set of the training, as mmengine builds it."""
    data = config.written
    with DefaultScope.overwrite_default_scope(data['default_scope']):
        return DATASETS.build(data[f'{split}_dataloader']['dataset'])


def joined(config: Path) -> Any:
    """The finding in a config, and the config with its only edit."""
    read = read_config(str(config))
    found = [finding for finding in diagnose(config=read) if finding.code != 'MG230']
    assert {finding.code for finding in found} == {'MG590'}
    (edit,) = found[0].edits
    after = change_config(read, edit.config)
    assert diagnose(config=after) == []
    return read, edit, after


# ---- label maps


def striped(root: Path, name: str, stored: Sequence[int]) -> None:
    """Two label maps with a stripe of eight pixels for each value, and their images."""
    for number in range(2):
        label = np.repeat(np.array([stored], np.uint8), 8, axis=1).repeat(16, axis=0)
        write(root / name / f'masks/train/{number}.png', label)
        write(root / name / f'images/train/{number}.jpg', np.zeros((*label.shape, 3), np.uint8))


MAPS: Dict[str, Sequence[Mapping[str, Any]]] = {
    'own lists': [dict(classes=('bg', 'road')), dict(classes=('bg', 'car', 'road'))],
    'another order': [dict(classes=('bg', 'road', 'car')), dict(classes=('car', 'bg', 'road'))],
    'a type and an own list': [
        dict(type='CityscapesDataset', names=CITYSCAPES, **SUFFIXES),
        dict(classes=('pothole', 'road'), reduce_zero_label=True),
    ],
    'two parts of a type': [
        dict(type='CityscapesDataset', names=CITYSCAPES, classes=('road', 'car'), **SUFFIXES),
        dict(type='CityscapesDataset', names=CITYSCAPES, classes=('car', 'sky'), **SUFFIXES),
    ],
    'a part of a type and an own list': [
        dict(type='CityscapesDataset', names=CITYSCAPES, classes=('road', 'car'), **SUFFIXES),
        dict(classes=('car', 'pothole')),
    ],
}


@pytest.mark.parametrize('name', list(MAPS))
def test_label_maps_get_the_numbers_of_one_list(name: str, tmp_path: Path) -> None:
    sets: List[Any] = []
    meant: List[List[str]] = []
    for number, given in enumerate(MAPS[name]):
        settings = dict(given)
        names = list(settings.pop('names', settings.get('classes', ())))
        meant.append(names)
        stored = [value + bool(settings.get('reduce_zero_label')) for value in range(len(names))]
        striped(tmp_path, str(number), stored)
        sets.append(seg_data(tmp_path / str(number), settings.pop('classes', None), **settings))
    sets[0] = dict(type='RepeatDataset', times=2, dataset=sets[0])
    both = dict(type='ConcatDataset', datasets=sets)
    val = sets[1]
    path, _ = train_config(tmp_path, seg_model(2), both, val=val, val_evaluator=dict(type='IoUMetric'))
    before, edit, after = joined(path)
    with pytest.raises((TypeError, ValueError)):
        built(before)
    assert edit.question
    dataset = built(after)
    union = list(dataset.metainfo['classes'])
    assert after.written['model']['decode_head']['num_classes'] == len(union)
    assert len(dataset) == 6
    named = 0
    for number, sample in [*((n // 4, dataset[n]) for n in range(6)), (1, built(after, 'val')[0])]:
        label = sample['data_samples'].gt_sem_seg.data[0].numpy()
        for stripe, expected in enumerate(meant[number]):
            (value,) = np.unique(label[:, 8 * stripe : 8 * stripe + 8]).tolist()
            assert value == (union.index(expected) if expected in union else 255)
            named += value != 255
    assert named >= 6 * 2
    program = Program(after.written)  # as dry-run tests it
    assert {result.outcome for result in check_labels(program)} <= {'ran', 'note'}
    assert {result.outcome for result in check_marks(program)} == {'ran'}


def test_a_pipeline_that_loads_no_label_map_gets_no_edit(tmp_path: Path) -> None:
    sets = [seg_data(tmp_path, names, pipeline=[]) for names in (('bg', 'road'), ('road', 'bg'))]
    path, _ = train_config(tmp_path, seg_model(2), dict(type='ConcatDataset', datasets=sets))
    (finding,) = diagnose(config=read_config(str(path)))
    assert (finding.code, finding.edits) == ('MG590', ())


# ---- boxes


@pytest.mark.parametrize(
    ('first', 'second', 'heads'),
    [
        ({1: 'cat', 2: 'dog'}, {1: 'dog', 2: 'car'}, 2),
        ({1: 'cat', 2: 'dog'}, {3: 'car'}, 2),
        ({1: 'cat', 2: 'dog'}, {2: 'dog', 1: 'cat', 7: 'car'}, 3),
    ],
)
def test_coco_files_get_one_list_of_categories(first: Any, second: Any, heads: int, tmp_path: Path) -> None:
    """mmdet numbers the categories of each file, whatever the classes of the config."""
    parts = {'a': first, 'b': second}
    for name, categories in parts.items():
        drawn = [[(number, [8, 8, 40 + 10 * number, 40])] for number in categories]  # the width tells the category
        coco_json(tmp_path / name / 'ann.json', categories, drawn)
    sets = [coco_data(tmp_path, tuple(categories.values()), name) for name, categories in parts.items()]
    path, options = train_config(tmp_path, retina(heads), dict(type='ConcatDataset', datasets=sets), 'mmdet')
    _, asked, united = joined(path)
    assert asked.if_not
    with Builder(seconds=100) as builder:
        verdict = builder.compare(read_config(str(path)), united)
    assert verdict.state == 'not verified'
    assert 'label' in verdict.reason
    assert (
        check_labels(Program(dict(united.written, val_dataloader=united.written['train_dataloader'])))[0].outcome
        == 'broken'
    )
    found = findings_of(lambda root: (path, options), tmp_path)
    assert [finding.code for finding in found] == ['MG590']
    (edit,) = found[0].edits
    data = change_config(read_config(str(path)), edit.config).written
    for command, one in zip(edit.commands, data['train_dataloader']['dataset']['datasets']):
        words = shlex.split(command)[1:]
        words[words.index('--out') + 1] = str(tmp_path / words[words.index('--out') + 1])
        assert main(words) == 0
        one['ann_file'] = f'{words[words.index("--out") + 1]}/ann.json'
    dataset = built(ReadConfig(data))
    assert list(dataset.metainfo['classes']) == ['cat', 'dog', 'car']
    for leaf, categories in zip(dataset.datasets, parts.values()):
        for info in (leaf.get_data_info(number) for number in range(len(leaf))):
            for one in info['instances']:
                width = one['bbox'][2] - one['bbox'][0]
                assert leaf.metainfo['classes'][one['bbox_label']] == categories[round((width - 40) / 10)]
    results = check_labels(Program(dict(data, val_dataloader=data['train_dataloader'])))
    assert {result.outcome for result in results} == {'ran'}


def test_files_that_lack_categories_of_one_list(tmp_path: Path) -> None:
    """One class list in the config, and a part of it in each file: mmdet trains a label as two classes."""
    for name, categories in (('a', {1: 'cat', 2: 'dog'}), ('b', {3: 'dog', 4: 'car'})):
        coco_json(tmp_path / name / 'ann.json', categories, some_boxes(list(categories)))
    sets = [coco_data(tmp_path, ('cat', 'dog', 'car'), name) for name in 'ab']
    path, options = train_config(tmp_path, retina(3), dict(type='ConcatDataset', datasets=sets), 'mmdet')
    found = findings_of(lambda root: (path, options), tmp_path)
    assert [finding.code for finding in found] == ['MG141']
    assert [name for edit in found[0].edits for name in edit.files] == [
        str(tmp_path / name / 'ann.json') for name in 'ab'
    ]
    assert diagnose(config=read_config(str(path))) == []


def test_a_data_set_without_a_list_may_have_been_forgotten(tmp_path: Path) -> None:
    sets = [coco_data(tmp_path, ('cat', 'dog'), 'a'), coco_data(tmp_path, None, 'b')]
    path, _ = train_config(tmp_path, retina(2), dict(type='ConcatDataset', datasets=sets), 'mmdet')
    (finding,) = diagnose(config=read_config(str(path)))
    place = 'train_dataloader.dataset.datasets[1].metainfo'
    assert finding.edits[0].config == ((place, dict(classes=('cat', 'dog'))),)
    assert [len(dict(edit.config)[place]['classes']) for edit in finding.edits] == [2, 80]  # cat and dog are in COCO


def test_voc_and_coco(tmp_path: Path) -> None:
    """XMLDataset looks names up in its list; what the types do not share, ConcatDataset must ignore."""
    voc_xml(tmp_path / 'VOC2007', [[('dog', [9, 9, 90, 90])], [('car', [9, 9, 90, 90])]])
    coco_json(tmp_path / 'a/ann.json', {1: 'cat', 2: 'dog', 5: 'car'}, [[(2, [8, 8, 50, 50])]])
    voc = dict(
        type='VOCDataset',
        data_root=str(tmp_path),
        ann_file='VOC2007/ImageSets/Main/train.txt',
        data_prefix=dict(sub_data_root='VOC2007/'),
        metainfo=dict(classes=('dog', 'car')),
        pipeline=[],
    )
    sets = [coco_data(tmp_path, ('cat', 'dog', 'car'), 'a'), voc]
    path, _ = train_config(tmp_path, retina(2), dict(type='ConcatDataset', datasets=sets), 'mmdet')
    before, _, after = joined(path)
    with contextlib.suppress(KeyError):  # of dataset_type, depending on the order of a set
        assert isinstance(built(before).metainfo, list)
    dataset = built(after)
    assert list(dataset.metainfo['classes']) == ['cat', 'dog', 'car']  # a dict, which inference reads
    labels = [one['bbox_label'] for n in range(3) for one in dataset.get_data_info(n)['instances']]
    assert labels == [1, 1, 2]
