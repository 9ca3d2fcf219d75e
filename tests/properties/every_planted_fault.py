"""Each planted fault, and each rebuilt report, is found by the property that is meant, step or module named."""

from __future__ import annotations

from typing import Any, Callable, Dict, NamedTuple

import pytest
from programs import coco_file, maps_root, tree_of

from mmguard.properties.suite import run_property
from mmguard.properties.worker import Worker

pytestmark = pytest.mark.slow

FCN = 'mmseg::fcn/fcn_r50-d8_4xb2-40k_cityscapes-512x1024.py'
SEGFORMER = 'mmseg::segformer/segformer_mit-b0_8xb2-160k_ade20k-512x512.py'
RETINANET = 'mmdet::retinanet/retinanet_r50_fpn_1x_coco.py'
FASTER_RCNN = 'mmdet::faster_rcnn/faster-rcnn_r50_fpn_1x_coco.py'
MASK_RCNN = 'mmdet::mask_rcnn/mask-rcnn_r50_fpn_1x_coco.py'
DINO = 'mmdet::dino/dino-4scale_r50_8xb2-12e_coco.py'
MASK2FORMER = 'mmseg::mask2former/mask2former_r50_8xb2-160k_ade20k-512x512.py'
PIDNET = 'mmseg::pidnet/pidnet-s_2xb6-120k_1024x1024-cityscapes.py'
FCOS = 'mmdet::fcos/fcos_r50-caffe_fpn_gn-head_1x_coco.py'


class Fault(NamedTuple):
    """A planted fault.

    Attributes:
        config (str): Where it is planted.
        plant (callable): Changes the tree.
        where (str): Part of the subject of the result.
        outcome (str): Of this part.
    """

    config: str
    plant: Callable[[Dict[str, Any]], None]
    where: str
    outcome: str = 'broken'


def step(name: str, place: int = 2, **arguments: Any) -> Callable[[Dict[str, Any]], None]:
    """Put a step into the pipeline of the training."""

    def plant(tree: Dict[str, Any]) -> None:
        tree['train_dataloader']['dataset']['pipeline'].insert(place, dict(type=name, **arguments))

    return plant


def at(path: str, value: Any) -> Callable[[Dict[str, Any]], None]:
    def plant(tree: Dict[str, Any]) -> None:
        *way, last = path.split('.')
        node: Any = tree
        for key in way:
            node = node[int(key) if key.isdigit() else key]
        node[int(last) if last.isdigit() else last] = value

    return plant


def both(*plants: Callable[[Dict[str, Any]], None]) -> Callable[[Dict[str, Any]], None]:
    def plant(tree: Dict[str, Any]) -> None:
        for one in plants:
            one(tree)

    return plant


def loss(name: str, **arguments: Any) -> Callable[[Dict[str, Any]], None]:
    return at('model.decode_head.loss_decode', dict(type=name, **arguments))


def resized_first(pack: str, *steps: Dict[str, Any], **loaded: bool) -> Callable[[Dict[str, Any]], None]:
    """Let the pipeline resize the image before it loads the labels."""
    resize = dict(type='RandomResize', scale=(200, 150), ratio_range=(0.5, 0.7), keep_ratio=True)
    load = dict(type='LoadAnnotations', **loaded)
    pipeline = [dict(type='LoadImageFromFile'), resize, load, *steps, dict(type=pack)]
    return at('train_dataloader.dataset.pipeline', pipeline)


ONE_HEAD = at('model.auxiliary_head', None)
EMPTY = both(
    at('train_dataloader.dataset.filter_cfg', dict(filter_empty_gt=False)),
    at('train_dataloader.dataset.ann_file', coco_file('train', empty=(2, 5))),
)
WEIGHTS = [1.0 + label / 10 for label in range(19)]
NAMES = [f'class {label}' for label in range(19)]

FAULTS = {
    'move-together': [
        Fault(FCN, step('FlipImageOnly'), 'FlipImageOnly'),
        Fault(SEGFORMER, step('ShiftImage', pixels=12), 'ShiftImage'),
        Fault(FCN, step('RotateLabel', 4), 'RotateLabel'),
        Fault(SEGFORMER, step('BlurLabel'), 'BlurLabel'),
        Fault(RETINANET, step('FlipImageOnly', 3), 'FlipImageOnly'),
        Fault(FASTER_RCNN, step('FlipBoxesOnly'), 'FlipBoxesOnly'),
        Fault(RETINANET, step('ShiftImage', 3, pixels=40), 'ShiftImage'),
        Fault(FCN, resized_first('PackSegInputs', dict(type='RandomCrop', crop_size=(64, 64))), 'LoadAnnotations'),
        Fault(SEGFORMER, resized_first('PackSegInputs', dict(type='RandomFlip', prob=0.5)), 'LoadAnnotations'),
        Fault(RETINANET, resized_first('PackDetInputs', with_bbox=True), 'LoadAnnotations'),
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
        Fault(SEGFORMER, loss('FocalWithoutIgnore'), 'decode_head'),
        Fault(FCN, loss('SoftDice'), 'decode_head'),
        Fault(SEGFORMER, loss('DiceLoss'), 'decode_head'),
        Fault(FASTER_RCNN, EMPTY, 'crowds', 'note'),
    ],
    'class-weights': [
        Fault(SEGFORMER, loss('RolledWeights', class_weight=[1.0] * 150), 'decode_head.loss_decode'),
        Fault(
            FASTER_RCNN,
            at('model.roi_head.bbox_head.loss_cls', dict(type='SwappedWeights', class_weight=[1.0] * 81)),
            'roi_head.bbox_head.loss_cls',
        ),
        Fault(FASTER_RCNN, at('model.roi_head.bbox_head.loss_cls.class_weight', [2.0] * 80), 'bbox_head.loss_cls'),
        Fault(FCN, loss('CrossEntropyLoss', class_weight=[1.0] * 18), 'decode_head.loss_decode'),
    ],
    'labels-reach-outputs': [
        Fault(FCN, at('model.decode_head.type', 'ShiftedHead'), 'decode_head'),
        Fault(FCN, at('model.auxiliary_head.type', 'SwappedHead'), 'auxiliary_head'),
        Fault(RETINANET, at('model.bbox_head.type', 'ShiftedRetinaHead'), 'bbox_head'),
        Fault(FASTER_RCNN, at('model.roi_head.bbox_head.type', 'ReversedBBoxHead'), 'roi_head.bbox_head'),
    ],
    'batch-variants': [
        Fault(FCN, loss('MeanOfValid'), 'no image', 'note'),  # no image of the data is without targets
        Fault(SEGFORMER, loss('Detached'), 'no image', 'note'),
        Fault(
            RETINANET,
            both(at('model.bbox_head.type', 'NoLossWithoutTargets'), EMPTY),
            'no image',
        ),
        Fault(
            FCOS,
            both(at('model.bbox_head.type', 'NanWithoutTargets'), EMPTY),
            'no image',
        ),
    ],
    'first-batches': [
        Fault(
            FCN,
            both(
                loss('OverflowsInHalf'), at('optim_wrapper', dict(type='AmpOptimWrapper', optimizer=dict(type='SGD')))
            ),
            'batch 1 ',
        ),
        Fault(
            FCN, both(at('train_dataloader.batch_size', 1), at('model.decode_head.type', 'NormOfOneVector')), 'batch 1 '
        ),
        Fault(
            'mmseg::pspnet/pspnet_r50-d8_4xb4-80k_ade20k-512x512.py', at('train_dataloader.batch_size', 1), 'batch 1 '
        ),
        Fault(
            'mmseg::pspnet/pspnet_r50-d8_4xb4-80k_ade20k-512x512.py',
            both(
                at('train_dataloader.batch_size', 5),
                at('train_dataloader.sampler', dict(type='DefaultSampler', shuffle=True)),
            ),
            'batch 2 ',
        ),
    ],
    'full-marks': [
        Fault(FCN, at('val_evaluator', dict(type='NamesOfItsOwn', class_names=NAMES[::-1])), 'class names'),
        Fault(FCN, at('val_evaluator.type', 'MetricWithItsOwnShift'), 'MetricWithItsOwnShift'),
        Fault(
            RETINANET,
            both(at('val_dataloader.dataset.metainfo', dict(classes=('car', 'person', 'dog')))),
            'class names',
        ),
    ],
}

#: Report -> the property that finds it, rebuilt with today's frameworks.
REPORTS = {
    'mmsegmentation#3179': (
        'move-together',
        Fault(FCN, step('FlipsByKeymap', keymap={'img': 'image', 'gt_masks': 'masks'}), 'FlipsByKeymap'),
    ),
    'mmsegmentation#453': (
        'same-labels',
        Fault(
            FCN,
            both(
                at('train_dataloader.dataset.reduce_zero_label', True),
                at('val_dataloader.dataset.reduce_zero_label', True),
                *(at(f'{split}_dataloader.dataset.data_root', maps_root(2, False)) for split in ('train', 'val')),
                *(
                    at(f'{split}_dataloader.dataset.metainfo', dict(classes=['background', 'person']))
                    for split in ('train', 'val')
                ),
            ),
            'BaseSegDataset',
            'note',
        ),
    ),
    'mmsegmentation#1415': (
        'full-marks',
        Fault(FCN, at('val_evaluator', dict(type='MapsAgain', label_map={4: 3, 6: 3, 5: 4})), 'MapsAgain'),
    ),
    'mmdetection#4608': (
        'samples-survive',
        Fault(
            RETINANET,
            both(
                step('RandomCrop', 3, crop_size=(700, 700)),
                EMPTY,
            ),
            'RandomCrop',
        ),
    ),
    'mmyolo#969': (
        'full-marks',
        Fault(RETINANET, at('val_evaluator.ann_file', coco_file('val', shift=1000)), 'CocoMetric'),
    ),
    'libreyolo#323': (
        'batch-variants',
        Fault(MASK_RCNN, both(at('model.roi_head.mask_head.type', 'DisconnectedMaskHead'), EMPTY), 'no image'),
    ),
    'mmsegmentation#3724': (
        'ignored-weigh-nothing',
        Fault(PIDNET, at('model.decode_head.loss_decode.0.class_weight', WEIGHTS), 'losses'),
    ),
    'mmsegmentation#3811': (
        'class-weights',
        Fault(MASK2FORMER, at('model.decode_head.loss_cls.class_weight', [0.1] + [1.0] * 149), 'decode_head.loss_cls'),
    ),
    'RT-DETR#672': (
        'batch-variants',
        Fault(DINO, both(at('model.bbox_head.type', 'NoDenoisingWithoutTargets'), EMPTY), 'no image'),
    ),
    'PIDNet#65': ('batch-variants', Fault(FCN, loss('MeanOfValid'), 'no image', 'note')),
}
ALL = [pytest.param(name, fault, id=f'{name}-{n}') for name, faults in FAULTS.items() for n, fault in enumerate(faults)]
ALL += [pytest.param(name, fault, id=report) for report, (name, fault) in REPORTS.items()]


@pytest.mark.timeout(900)
@pytest.mark.parametrize(('name', 'fault'), ALL)
def test_a_planted_fault_is_found(name, fault):
    tree = tree_of(fault.config)
    fault.plant(tree)
    tree['custom_imports'] = dict(imports=['planted'], allow_failed_imports=False)
    with Worker(forks=True) as worker:
        tested = run_property(worker, tree, name, 600)
    assert tested.outcome in (fault.outcome, 'ran' if fault.outcome == 'note' else fault.outcome), tested.results
    named = [result.subject for result in tested.results if result.outcome == fault.outcome]
    assert any(fault.where in subject for subject in named), tested.results
