"""Each planted fault is found by the property that is meant, with the step or module in its result."""

from __future__ import annotations

from typing import Any, Callable, Dict, NamedTuple

import pytest
from programs import tree_of

from mmguard.properties.suite import run_property
from mmguard.properties.worker import Worker

pytestmark = pytest.mark.slow

FCN = 'mmseg::fcn/fcn_r50-d8_4xb2-40k_cityscapes-512x1024.py'
SEGFORMER = 'mmseg::segformer/segformer_mit-b0_8xb2-160k_ade20k-512x512.py'
RETINANET = 'mmdet::retinanet/retinanet_r50_fpn_1x_coco.py'
FASTER_RCNN = 'mmdet::faster_rcnn/faster-rcnn_r50_fpn_1x_coco.py'
FCOS = 'mmdet::fcos/fcos_r50-caffe_fpn_gn-head_1x_coco.py'


class Fault(NamedTuple):
    """A planted fault.

    Attributes:
        config (str): Where it is planted.
        plant (callable): Changes the tree.
        where (str): Part of the subject of the result.
    """

    config: str
    plant: Callable[[Dict[str, Any]], None]
    where: str


def step(name: str, place: int = 2, **arguments: Any) -> Callable[[Dict[str, Any]], None]:
    """Put a step into the pipeline of the training."""

    def plant(tree: Dict[str, Any]) -> None:
        tree['train_dataloader']['dataset']['pipeline'].insert(place, dict(type=name, **arguments))

    return plant


def at(path: str, value: Any) -> Callable[[Dict[str, Any]], None]:
    """Set a value."""

    def plant(tree: Dict[str, Any]) -> None:
        *way, last = path.split('.')
        node: Any = tree
        for key in way:
            node = node[int(key) if key.isdigit() else key]
        node[int(last) if last.isdigit() else last] = value

    return plant


def both(*plants: Callable[[Dict[str, Any]], None]) -> Callable[[Dict[str, Any]], None]:
    """Plant several."""

    def plant(tree: Dict[str, Any]) -> None:
        for one in plants:
            one(tree)

    return plant


def loss(name: str, **arguments: Any) -> Callable[[Dict[str, Any]], None]:
    """Give the decode head another loss."""
    return at('model.decode_head.loss_decode', dict(type=name, **arguments))


FAULTS = {
    'move-together': [
        Fault(FCN, step('FlipImageOnly'), 'FlipImageOnly'),
        Fault(SEGFORMER, step('ShiftImage', pixels=12), 'ShiftImage'),
        Fault(FCN, step('RotateLabel', 4), 'RotateLabel'),
        Fault(SEGFORMER, step('BlurLabel'), 'BlurLabel'),
        Fault(RETINANET, step('FlipImageOnly', 3), 'FlipImageOnly'),
        Fault(FASTER_RCNN, step('FlipBoxesOnly'), 'FlipBoxesOnly'),
        Fault(RETINANET, step('ShiftImage', 3, pixels=40), 'ShiftImage'),
    ],
    'samples-survive': [
        Fault(FCN, step('KeepLarge'), 'KeepLarge'),
        Fault(SEGFORMER, step('FailsOnSome', 4), 'FailsOnSome'),
        Fault(RETINANET, step('KeepLarge', 3), 'KeepLarge'),
        Fault(FASTER_RCNN, step('AlwaysTheFirst'), 'train'),
    ],
    'same-labels': [
        Fault(FCN, at('train_dataloader.dataset.pipeline.1.type', 'MapLabels'), 'BaseSegDataset'),
        Fault(SEGFORMER, step('ShiftLabels'), 'BaseSegDataset'),
        Fault(FCN, at('val_dataloader.dataset.metainfo', dict(classes=[f'class {n}' for n in range(1, 20)])), 'names'),
        Fault(FCN, at('val_dataloader.dataset.reduce_zero_label', True), 'BaseSegDataset'),
        Fault(RETINANET, at('val_dataloader.dataset.metainfo', dict(classes=('person', 'car'))), 'names'),
    ],
    'ignored-weigh-nothing': [
        Fault(FCN, loss('OneHotLoss'), 'decode_head'),
        Fault(SEGFORMER, loss('FocalWithoutIgnore'), 'decode_head'),
        Fault(FCN, loss('SoftDice'), 'decode_head'),
        Fault(SEGFORMER, loss('DiceLoss'), 'decode_head'),
        Fault(FCN, loss('CrossEntropyLoss', class_weight=[1.0] * 19), 'losses'),
    ],
    'labels-reach-outputs': [
        Fault(FCN, at('model.decode_head.type', 'ShiftedHead'), 'decode_head'),
        Fault(FCN, at('model.auxiliary_head.type', 'SwappedHead'), 'auxiliary_head'),
        Fault(RETINANET, at('model.bbox_head.type', 'ShiftedRetinaHead'), 'bbox_head'),
        Fault(FASTER_RCNN, at('model.roi_head.bbox_head.type', 'ReversedBBoxHead'), 'roi_head.bbox_head'),
        Fault(FASTER_RCNN, at('model.roi_head.bbox_head.num_classes', 60), 'class names'),
    ],
    'empty-batch': [
        Fault(FCN, loss('MeanOfValid'), 'no image'),
        Fault(SEGFORMER, loss('Detached'), 'no image'),
        Fault(
            RETINANET,
            both(
                at('model.bbox_head.type', 'NoLossWithoutTargets'),
                at('train_dataloader.dataset.filter_cfg', dict(filter_empty_gt=False)),
            ),
            'no image',
        ),
        Fault(
            FCOS,
            both(
                at('model.bbox_head.type', 'NanWithoutTargets'),
                at('train_dataloader.dataset.filter_cfg', dict(filter_empty_gt=False)),
            ),
            'no image',
        ),
    ],
    'loader-batches': [
        Fault(FCN, both(at('train_dataloader.batch_size', 1), at('model.decode_head.type', 'NormOfOneVector')), '1'),
        Fault(
            'mmseg::pspnet/pspnet_r50-d8_4xb4-80k_ade20k-512x512.py', at('train_dataloader.batch_size', 1), 'batch of 1'
        ),
        Fault(
            'mmseg::pspnet/pspnet_r50-d8_4xb4-80k_ade20k-512x512.py',
            both(
                at('train_dataloader.batch_size', 5),
                at('train_dataloader.sampler', dict(type='DefaultSampler', shuffle=True)),
            ),
            'batch of 1',
        ),
    ],
    'full-marks': [
        Fault(FCN, at('val_evaluator.type', 'MetricWithItsOwnShift'), 'MetricWithItsOwnShift'),
        Fault(FCN, at('train_dataloader.dataset.pipeline.1.type', 'MapLabels'), 'IoUMetric'),
        Fault(FCN, at('val_dataloader.dataset.reduce_zero_label', True), 'IoUMetric'),
        Fault(
            RETINANET,
            both(at('val_dataloader.dataset.metainfo', dict(classes=('car', 'person', 'dog')))),
            'class names',
        ),
    ],
}
ALL = [pytest.param(name, fault, id=f'{name}-{n}') for name, faults in FAULTS.items() for n, fault in enumerate(faults)]


@pytest.mark.parametrize(('name', 'fault'), ALL)
def test_a_planted_fault_is_found(name, fault):
    tree = tree_of(fault.config)
    fault.plant(tree)
    tree['custom_imports'] = dict(imports=['planted'], allow_failed_imports=False)
    with Worker() as worker:
        tested = run_property(worker, tree, name, 250)
    assert tested.outcome == 'broken', tested.results
    assert any(fault.where in result.subject for result in tested.results if result.outcome == 'broken'), tested.results
