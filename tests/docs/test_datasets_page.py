"""docs/datasets.md: its data sets are built by the frameworks, and deliver the labels that the page says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, List

import numpy as np
import pytest
from coco_cases import ann, coco
from doc_pages import blocks
from label_files import write
from mmengine.registry import DATASETS, TRANSFORMS, DefaultScope
from pictures import picture
from put_file import put
from voc_cases import obj, xml

from mmguard.cli import main
from mmguard.labels.tally import get_tallies

PAGE = [block for block in blocks('python') if block.page == 'docs/datasets.md']


def executed(start: str) -> Dict[str, Any]:
    """The names that the block with this text sets."""
    (block,) = [block for block in PAGE if start in block.code]
    names: Dict[str, Any] = {}
    exec(compile(block.code, block.name, 'exec'), names)
    return names


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    pytest.importorskip('mmseg')
    pytest.importorskip('mmdet')
    monkeypatch.chdir(tmp_path)
    return tmp_path


def built(dataset: Dict[str, Any], scope: str) -> Any:
    with DefaultScope.overwrite_default_scope(scope):
        return DATASETS.build(dataset)


def stripes(root: Path, values: List[int]) -> None:
    label = np.array([values], np.uint8).repeat(4, 1).repeat(4, 0)
    write(root / 'masks/0.png', label)
    write(root / 'images/0.jpg', np.zeros((*label.shape, 3), np.uint8))


def test_label_maps_of_two_data_sets(folder: Path) -> None:
    stripes(folder / 'data/first', [0, 1])
    stripes(folder / 'data/second', [0, 1, 2])
    dataset = built(executed("data_root='data/first'")['train_dataloader']['dataset'], 'mmseg')
    labels = [sample['data_samples'].gt_sem_seg.data[0, 0, ::4].tolist() for sample in (dataset[0], dataset[1])]
    named = [[dataset.metainfo['classes'][label] for label in found] for found in labels]
    assert named == [['background', 'road'], ['background', 'car', 'road']]


def write_coco(path: Path, categories: Dict[int, str], ids: List[int]) -> None:
    put(path, json.dumps(coco([ann(n, 0, one, (20 * n, 5, 15, 30)) for n, one in enumerate(ids, 1)], 1, categories)))
    put(path.parent / '0.jpg', picture(100, 80))


def test_boxes_of_coco_and_voc(folder: Path) -> None:
    write_coco(folder / 'first/train.json', {1: 'dog', 2: 'car'}, [1, 2])
    for line in next(block.code for block in blocks('bash') if block.page == 'docs/datasets.md').splitlines():
        words = line.split()[1:]
        if 'first/train.json' in words:
            assert main(words) == 0
    put(folder / 'VOC2007/JPEGImages/0.jpg', picture(100, 80))
    put(folder / 'VOC2007/ImageSets/Main/train.txt', '0\n')
    put(folder / 'VOC2007/Annotations/0.xml', xml(obj('car', (5, 5, 50, 60))))
    dataset = built(executed("type='VOCDataset'")['train_dataloader']['dataset'], 'mmdet')
    names = dataset.metainfo['classes']  # a dict: nothing but the ignored keys differs
    found = [[names[n] for n in dataset[i]['data_samples'].gt_instances.labels.tolist()] for i in (0, 1)]
    assert found == [['dog', 'car'], ['car']]


def test_a_value_that_nobody_cares_about() -> None:
    names = executed('label_map={2: 255, 3: 2}')
    guard = TRANSFORMS.build(names['guard'])
    results = guard(dict(gt_seg_map=np.array([[0, 1, 2, 3]], np.uint8), seg_map_path='a.png'))
    assert results['gt_seg_map'].tolist() == [[0, 1, 255, names['classes'].index('car')]]
    counted = get_tallies(results)['pixels']
    assert (counted.mapped, counted.skipped) == (2, 0)
    assert 'GuardSegLabels' in [step['type'] for step in names['pipeline']]


def test_a_category_that_nobody_cares_about(folder: Path) -> None:
    """The region is ignored by the assigner, neither an object nor background, in a real data set and assigner."""
    import torch
    from mmdet.models.task_modules import MaxIoUAssigner
    from mmengine.structures import InstanceData

    write_coco(folder / 'train.json', {1: 'car', 2: 'unclear'}, [1, 2])
    executed("ids['unclear']")
    loading = [dict(type='LoadImageFromFile'), dict(type='LoadAnnotations', with_bbox=True), dict(type='PackDetInputs')]
    data = dict(type='CocoDataset', ann_file='train_ignored.json', data_prefix=dict(img=''), pipeline=loading)
    data['metainfo'] = dict(classes=('car',))
    sample = built(data, 'mmdet')[0]['data_samples']
    assert (sample.gt_instances.labels.tolist(), len(sample.ignored_instances)) == ([0], 1)
    (box,) = sample.ignored_instances.bboxes.tensor.tolist()
    priors = InstanceData(priors=torch.tensor([box, [60.0, 50.0, 90.0, 75.0]]))
    boxes = [
        InstanceData(bboxes=one.bboxes.tensor, labels=one.labels)
        for one in (sample.gt_instances, sample.ignored_instances)
    ]
    assigned = {
        threshold: MaxIoUAssigner(0.5, 0.4, min_pos_iou=0.4, ignore_iof_thr=threshold).assign(priors, *boxes)
        for threshold in (-1, 0.5)
    }
    assert {threshold: one.gt_inds.tolist() for threshold, one in assigned.items()} == {-1: [0, 0], 0.5: [-1, 0]}
