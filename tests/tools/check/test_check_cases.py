"""Real reports whose cause stands in the config, rebuilt from their situation: the first finding names it."""

from __future__ import annotations

from typing import Any

import pytest
from changed_configs import (
    FASTER_RCNN_CITYSCAPES,
    FASTER_RCNN_VOC,
    INSTANCES,
    PIDNET,
    PSPNET,
    changed,
    found,
)
from this_stack import IS_ONEDL

pytest.importorskip('mmseg')
pytest.importorskip('mmdet')


def names(count: int, first: str = 'class0') -> Any:
    return (first, *(f'class{i}' for i in range(1, count)))


def own_data(classes: Any, **arguments: Any) -> Any:
    """Changes that put data of one's own into every split."""
    return {
        f'{split}_dataloader.dataset': dict(
            type='BaseSegDataset',
            metainfo=dict(classes=classes),
            pipeline=[dict(type='LoadAnnotations'), dict(type='PackSegInputs')],
            **arguments,
        )
        for split in ('train', 'val', 'test')
    }


def heads(count: int) -> Any:
    return {'model.decode_head.num_classes': count, 'model.auxiliary_head.num_classes': count}


#: F1, which onedl's mmseg does not have.
CLASS_WEIGHT_CASES = {
    'mmsegmentation#3574': (
        PSPNET,
        {**own_data(names(8)), **heads(8), 'model.decode_head.loss_decode.class_weight': [1.0] * 8},
        'MG214',
        'labels are right',
    ),
    'mmsegmentation#3492': (PIDNET, {}, 'MG214', 'labels are right'),
}
CASES = {
    **({} if IS_ONEDL else CLASS_WEIGHT_CASES),
    'mmsegmentation#2146': (
        PSPNET,
        {**own_data(names(7, '_background_'), reduce_zero_label=True), **heads(7)},
        'MG211',
        "'class6' never occurs",
    ),
    'mmsegmentation#1282': (
        PSPNET,
        {**own_data(('background', 'road'), reduce_zero_label=True), **heads(2)},
        'MG211',
        'never trained',
    ),
    'mmdetection#6532': (
        FASTER_RCNN_CITYSCAPES,
        {
            'train_dataloader.dataset.metainfo': dict(classes=('person',)),
            'val_dataloader.dataset.metainfo': dict(classes=('person',)),
            'test_dataloader.dataset.metainfo': dict(classes=('person',)),
            'model.roi_head.bbox_head.num_classes': 1,
        },
        'MG203',
        'do not arrive',
    ),
    'mmdetection#2896': (
        FASTER_RCNN_VOC,
        {
            **{
                f'train_dataloader.dataset.dataset.datasets[{i}].metainfo': dict(classes=('cat', 'cow', 'dog'))
                for i in (0, 1)
            },
            'val_dataloader.dataset.metainfo': dict(classes=('cat', 'cow', 'dog')),
            'test_dataloader.dataset.metainfo': dict(classes=('cat', 'cow', 'dog')),
            'model.roi_head.bbox_head.num_classes': 4,
        },
        'MG202',
        'background is not counted',
    ),
    'mmdetection#8414': (
        INSTANCES,
        {f'{split}_dataloader.dataset.metainfo': dict(classes=names(10)) for split in ('train', 'val', 'test')},
        'MG201',
        'has 80 things, the data set 10',
    ),
    'pytorch/pytorch#63004': (
        PSPNET,
        {
            **own_data(names(3)),
            **heads(3),
            'model.decode_head.ignore_index': 0,
            'model.auxiliary_head.ignore_index': 0,
            'model.data_preprocessor.seg_pad_val': 0,
            'val_evaluator.ignore_index': 0,
            'test_evaluator.ignore_index': 0,
        },
        'MG209',
        'one of the 3 classes',
    ),
}


@pytest.mark.parametrize('report', CASES)
def test_the_first_finding_names_the_cause(report):
    base, changes, code, words = CASES[report]
    first = found(changed(base, changes))[0]
    assert first.code == code
    assert words in first.cause


@pytest.mark.parametrize(
    ('base', 'changes'),
    [
        (PSPNET, {**own_data(names(8)), **heads(8)}),
        (PSPNET, {**own_data(names(8), reduce_zero_label=True), **heads(8)}),
        (FASTER_RCNN_VOC, {}),
    ],
)
def test_nothing_is_said_about_what_is_right(base, changes):
    assert found(changed(base, changes)) == []
