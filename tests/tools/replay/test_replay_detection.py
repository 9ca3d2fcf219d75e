"""``mmguard replay`` of detection trainings that really died."""

from __future__ import annotations

import json
import os.path as osp
from pathlib import Path
from typing import Any, Dict

import pytest
from crashes import crash, replayed
from small_det_data import EMPTY, PLACES, SIZE, make_openimages, voc_classes, write_image, write_text
from small_det_runs import LAYOUTS, leaf_datasets, small_config

pytestmark = pytest.mark.slow


def by_name(report: Dict[str, Any]) -> Dict[str, Any]:
    return {osp.basename(sample['path']): sample for sample in report['samples']}


def test_stock_retinanet_with_labels_above_its_classes(tmp_path: Path, capsys: Any) -> None:
    layout = LAYOUTS['retinanet']
    root = make_openimages(str(tmp_path / 'data'), faults=('labels',))
    config = small_config('retinanet', root, str(tmp_path / 'work'), stock=True)
    config_file, record = crash(config, str(tmp_path / 'work'))
    code, report, shown = replayed(capsys, config_file, record, '--last', '9')
    assert code == 1
    samples = by_name(report)
    # In order: image 1 has the label that stock mmdet quietly trains as background, image 3 one that it dies of.
    statuses = ['passes', 'invalid labels', 'passes', 'dies']
    assert {name: sample['status'] for name, sample in samples.items()} == {
        f'train{number:03d}.jpg': status for number, status in enumerate(statuses)
    }
    dying = samples['train003.jpg']
    values = {str(layout.num_classes): 1, str(layout.data_classes - 1): 1}
    assert dying['loaded']['instances']['values'] == dying['trained']['instances']['values'] == values
    assert dying['trained']['instances']['num_classes'] == layout.num_classes
    assert dying['exception']['place'].startswith('mmdet/models/losses/focal_loss.py:')
    assert dying['causes']
    assert dying['causes'][0]['code'] in shown
    # Alone, it is found without looking at older batches.
    code, report, _ = replayed(capsys, config_file, record)
    assert [osp.basename(path) for path in report['failing']] == ['train003.jpg']
    assert report['older_batches'] == 1


def test_a_box_without_area_in_stock_faster_rcnn(tmp_path: Path, capsys: Any) -> None:
    root = str(tmp_path / 'data')
    images = []
    for number in range(4):
        write_image(osp.join(root, 'images', f'{number}.jpg'), seed=number)
        boxes = [PLACES[0], PLACES[1], *([EMPTY] if number == 2 else [])]
        instances = [dict(bbox=list(box), bbox_label=place, ignore_flag=0) for place, box in enumerate(boxes)]
        images.append(dict(img_path=f'{number}.jpg', img_id=number, height=SIZE, width=SIZE, instances=instances))
    write_text(osp.join(root, 'train.json'), json.dumps(dict(metainfo={}, data_list=images)))
    config = small_config('faster_rcnn', root, str(tmp_path / 'work'), stock=True)
    # Data sets of COCO and VOC leave such boxes out; one of a user's own does not.
    config.train_dataloader.dataset = dict(
        type='BaseDetDataset',
        data_root=root,
        ann_file='train.json',
        data_prefix=dict(img_path='images'),
        metainfo=dict(classes=voc_classes(20)),
        pipeline=next(leaf_datasets(config.train_dataloader.dataset)).pipeline,
    )
    stop = dict(type='mmdet.CheckInvalidLossHook', interval=1)
    config_file, record = crash(config, str(tmp_path / 'work'), stop)
    code, report, _ = replayed(capsys, config_file, record)
    assert code == 1
    assert report['failing'] == [osp.join(root, 'images', '2.jpg')]
    failing = by_name(report)['2.jpg']
    assert failing['status'] == 'not finite'
    assert failing['trained']['instances']['reasons'] == {'box_no_area': 1}
    assert failing['nonfinite_losses'] == ['loss_bbox']
    assert failing['causes'][0]['code'] == 'MG109'
    assert 'nan' in str(failing['losses']['loss_bbox']) or 'inf' in str(failing['losses']['loss_bbox'])
