"""Public reports, rebuilt: the first finding names the true cause.

Each report is made of real files and, where it needs one, a real config, and goes through the scan that users run.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Callable, Dict, NamedTuple, Optional, Tuple

import numpy as np
import pytest
from report_files import (
    SIZE,
    blocks,
    coco_dataset,
    scanned,
    write_coco,
    write_config,
    write_det_config,
    write_labels,
    write_seg_config,
)
from this_stack import IS_ONEDL, is_here

from mmguard.findings import Finding, diagnose

Target = Tuple[Path, Dict[str, Any]]
CE = dict(type='CrossEntropyLoss', use_sigmoid=False)
CITYSCAPES = ['person', 'rider', 'car', 'truck', 'bus', 'train', 'motorcycle', 'bicycle']
VOID = 255


class Report(NamedTuple):
    """A report.

    Attributes:
        codes (tuple[str]): Codes that name its true cause.
        rebuild (callable): Makes it in a folder and returns the target of the scan and its options.
        says (tuple[str]): What the first finding must tell, of what would have helped its writer.
    """

    codes: Tuple[str, ...]
    rebuild: Callable[[Path], Target]
    says: Tuple[str, ...] = ()


def target(path: Path, **options: Any) -> Target:
    return path, options


def folder(*labels: np.ndarray, num_classes: int, **options: Any) -> Callable[[Path], Target]:
    """A folder of label maps."""
    files = {key: options.pop(key) for key in ('mode', 'ending', 'stem') if key in options}

    def rebuild(root: Path) -> Target:
        return target(write_labels(root / 'labels', *labels, **files), num_classes=num_classes, **options)

    return rebuild


def segmentation(*labels: np.ndarray, classes: int, head: Optional[Dict[str, Any]] = None, **more: Any) -> Any:
    """A segmentation config and its data."""
    names = more.pop('names', [f'class {i}' for i in range(classes)])

    def rebuild(root: Path) -> Target:
        return target(write_seg_config(root, labels, names, head or {}, **more), splits=('train',))

    return rebuild


def json_alone(categories: Dict[int, str], num_classes: int, **more: Any) -> Callable[[Path], Target]:
    """A COCO JSON without a config, its ids the labels, as in the projects of these reports."""

    def rebuild(root: Path) -> Target:
        return target(write_coco(root / 'train.json', categories, **more), num_classes=num_classes, labels='ids')

    return rebuild


def detection(
    categories: Dict[int, str],
    model: Dict[str, Any],
    classes: Any,
    settings: Optional[Dict[str, Any]] = None,
    **more: Any,
) -> Callable[[Path], Target]:
    """A detection config and its JSON."""

    def rebuild(root: Path) -> Target:
        data = coco_dataset(root, write_coco(root / 'train.json', categories, **more), classes, **(settings or {}))
        return target(write_det_config(root, model, data), splits=('train',))

    return rebuild


def numbered(*names: str) -> Dict[int, str]:
    return dict(enumerate(names, 1))


def two_stage(num_classes: int) -> Dict[str, Any]:
    head = dict(type='Shared2FCBBoxHead', num_classes=num_classes, loss_cls=CE)
    return dict(type='FasterRCNN', roi_head=dict(type='StandardRoIHead', bbox_head=head))


def retinanet(num_classes: int) -> Dict[str, Any]:
    head = dict(type='RetinaHead', num_classes=num_classes, loss_cls=dict(type='FocalLoss', use_sigmoid=True))
    return dict(type='RetinaNet', bbox_head=head)


def mask2former(root: Path) -> Target:
    names = [f'thing {i}' for i in range(10)]
    data = coco_dataset(root, write_coco(root / 'train.json', numbered(*names)), names)
    weights = [1.0] * 80 + [0.1]
    model = dict(
        type='Mask2Former',
        panoptic_head=dict(
            type='Mask2FormerHead',
            num_things_classes=80,
            num_stuff_classes=0,
            loss_cls=dict(type='CrossEntropyLoss', class_weight=weights),
        ),
        panoptic_fusion_head=dict(type='MaskFormerFusionHead', num_things_classes=80, num_stuff_classes=0),
    )
    return target(write_det_config(root, model, data), splits=('train',))


def classes_at_the_wrapper(root: Path) -> Target:
    file = write_coco(root / 'train.json', dict(zip(range(24, 34), CITYSCAPES)))
    inner = {**coco_dataset(root, file, None), 'type': 'CityscapesDataset'}
    wrapper = dict(type='RepeatDataset', times=8, dataset=inner, metainfo=dict(classes=('person',)))
    return target(write_det_config(root, two_stage(1), wrapper), splits=('train',))


def other_names_in_the_evaluation(root: Path) -> Target:
    names = ['bolt', 'nut', 'crack']
    file = write_coco(root / 'train.json', numbered(*names))
    train = coco_dataset(root, file, names)
    val = coco_dataset(root, file, ['aeroplane', 'bicycle', 'bird'], test_mode=True)
    val_loader = dict(batch_size=1, dataset=val)
    config = write_det_config(root, two_stage(3), train, val_dataloader=val_loader)
    return target(config, splits=('train',))


def cityscapes_ids(root: Path) -> Target:
    labels = write_labels(root / 'gtFine', *[blocks(*range(34))] * 3, stem='x_{:06}_gtFine_labelIds')
    return target(labels, num_classes=19)


def cityscapes_colours(root: Path) -> Target:
    colours = np.zeros((SIZE, SIZE, 4), np.uint8)
    colours[..., :3], colours[..., 3] = (128, 64, 128), 255
    colours[:20, :, :3] = (70, 70, 70)
    labels = write_labels(root / 'gtFine', colours, colours, stem='x_{:06}_gtFine_color')
    return target(labels, num_classes=19)


def ohem_without_a_pixel(root: Path) -> Target:
    labels = [blocks(0, 1), blocks(0, 1, VOID), np.full((SIZE, SIZE), VOID, np.uint8)]
    head = dict(loss_decode=dict(type='OhemCrossEntropy', thres=0.9, min_kept=131072))
    return target(write_seg_config(root, labels, ['ground', 'crack'], head), splits=('train',))


def opencv_loader(root: Path) -> Target:
    labels = [blocks(0, 1, 2, 3)] * 3
    names = [f'class {i}' for i in range(12)]
    config = write_seg_config(root, labels, names, {}, loader=dict(imdecode_backend='cv2'), mode='P')
    return target(config, splits=('train',))


def noise() -> np.ndarray:
    return np.random.default_rng(7).integers(0, 256, (SIZE, SIZE)).astype(np.uint8)


def rgb(label: np.ndarray) -> np.ndarray:
    return np.stack([label] * 3, -1)


def disc() -> np.ndarray:
    y, x = np.mgrid[:SIZE, :SIZE]
    return (((y - 24) ** 2 + (x - 20) ** 2 < 200) * 255).astype(np.uint8)


def weighted(classes: int) -> Dict[str, Any]:
    return dict(loss_decode={**CE, 'class_weight': [1.0 + 0.1 * i for i in range(classes)]})


EIGHT = [blocks(*range(8), VOID)] * 3
NINETEEN = [blocks(*range(19), VOID)] * 3
SEVEN = [blocks(*range(7))] * 3
REDUCED = dict(reduce_zero_label=True)
NAMED = ['_background_', 'road', 'car', 'tree', 'house', 'lake', 'sky']

REPORTS: Dict[str, Report] = {
    'mmsegmentation#3574': Report(
        ('MG214',), segmentation(*EIGHT, classes=8, head=weighted(8)), ('class_weight[255]', 'GuardedCrossEntropyLoss')
    ),
    'mmsegmentation#3492': Report(
        ('MG214',), segmentation(*NINETEEN, classes=19, head=weighted(19)), ('The labels need no change',)
    ),
    'mmsegmentation#2111': Report(('MG103',), folder(disc(), disc(), num_classes=2), ('label_map={255: 1}',)),
    'mmsegmentation#3609': Report(
        ('MG107', 'MG127'), folder(blocks(0, 1), blocks(0, 1), blocks(0, 1, 7), num_classes=2), ('7', '0..1')
    ),
    'mmsegmentation#1048': Report(('MG120', 'MG103'), folder(rgb(disc()), rgb(disc()), num_classes=2)),
    'mmsegmentation#2146': Report(
        ('MG124',), segmentation(*SEVEN, classes=7, names=NAMED, dataset=REDUCED), ('reduce_zero_label=False',)
    ),
    'mmsegmentation#1282': Report(
        ('MG124',), segmentation(blocks(0, 1, 2), classes=3, dataset=REDUCED), ('reduce_zero_label=False',)
    ),
    'mmsegmentation#1714': Report(
        ('MG124',),
        segmentation(blocks(0, 0, 0, 1, 0, 0, 2, 0, 0), classes=2, dataset=REDUCED),
        ('reduce_zero_label=False', 'num_classes=3'),
    ),
    'ViTAE-Transformer/ViTAE-Transformer-Remote-Sensing#9': Report(
        ('MG115',), folder(blocks(1, 2, 3, 4, 5, 6), num_classes=6, ignore_index=5), ('reduce_zero_label=True',)
    ),
    'mmdetection#6532': Report(('MG203', 'MG201', 'MG108'), classes_at_the_wrapper, ('metainfo=dict(classes=',)),
    'mmdetection#3628': Report(
        ('MG145',),
        detection(numbered('cat'), two_stage(1), ['cat'], images=100, size=10, boxes=[[1, 1, 5, 5]]),
        ('min_size',),
    ),
    'mmdetection#2896': Report(
        ('MG202',), detection(numbered('a', 'b', 'c'), two_stage(4), ['a', 'b', 'c']), ('num_classes=3',)
    ),
    'mmdetection#2903': Report(
        ('MG108', 'MG201'), detection(numbered('a', 'b', 'c'), retinanet(2), ['a', 'b', 'c']), ('num_classes=3',)
    ),
    'mmdetection#8414': Report(('MG201', 'MG207'), mask2former, ('num_things_classes=10',)),
    'mmdetection#2972': Report(
        ('MG109',),
        json_alone({0: 'a', 1: 'b'}, 2, boxes=[[10, 10, 20, 20], [140, 20, 10, 10], [20, -40, 10, 20]]),
        ('outside',),
    ),
    'mmdetection#2193': Report(
        ('MG146',),
        detection(numbered('a'), two_stage(1), ['a'], dict(filter_cfg=dict(filter_empty_gt=False)), images=20, empty=4),
        ('filter_empty_gt=True',),
    ),
    'mmdetection#5000': Report(('MG204',), other_names_in_the_evaluation, ('voc_classes',)),
    'lyuwenyu/RT-DETR#529': Report(('MG146',), json_alone({0: 'a', 1: 'b'}, 2, images=30, empty=9), ('denoising',)),
    'lightly-ai/lightly-train#446': Report(('MG146',), json_alone({0: 'a'}, 1, images=40, empty=3), ('zero losses',)),
    'facebookresearch/detr#28': Report(
        ('MG137', 'MG138'),
        json_alone({2905442 + i: f'part {i}' for i in range(6)}, 6),
        ('leave the boxes as they are', 'CUDA_LAUNCH_BLOCKING=1'),
    ),
    'facebookresearch/detr#190': Report(('MG138', 'MG115'), json_alone(numbered('a', 'b', 'c'), 2), ('num_classes=4',)),
    'zylo117/Yet-Another-EfficientDet-Pytorch#373': Report(
        ('MG138', 'MG102', 'MG107'), json_alone({0: 'a', 1: 'b', 2: 'typo'}, 2), ('2',)
    ),
    'nnUNet#2404': Report(('MG106', 'MG136'), folder(noise(), noise(), num_classes=2), ('threshold',)),
    'nnUNet#274': Report(('MG116',), folder(blocks(0, 1, 2, 3, 5), num_classes=5), ('label_map={5: 4}',)),
    'nnUNet#37': Report(('MG116',), folder(blocks(0, 1, 3), blocks(0, 1), num_classes=3), ('label_map={3: 2}',)),
    'hszhao/semseg#29': Report(('MG120',), cityscapes_colours, ('labelTrainIds',)),
    'chenxi116/DeepLabv3.pytorch#17': Report(('MG101',), cityscapes_ids, ('labelTrainIds',)),
    'XuJiacong/PIDNet#65': Report(('MG128',), ohem_without_a_pixel, ('attached 0',)),
    'pytorch/pytorch#63004': Report(
        ('MG209',), folder(blocks(1, 2), blocks(1, 2), num_classes=3, ignore_index=0), ('outside the classes',)
    ),
    'pytorch/pytorch#53959': Report(
        ('MG123',),
        folder((blocks(0, 1, 2, 3) / np.float32(255)).astype(np.float32), num_classes=4, ending='.tiff'),
        ('torch.as_tensor(np.array(mask)).long()',),
    ),
    'pytorch/vision#8376': Report(
        ('MG109',), json_alone({0: 'a', 1: 'b'}, 2, boxes=[[10, 10, 20, 20], [30, 30, 20, 0]]), ('height 0',)
    ),
    'alexgkendall/SegNet-Tutorial#161': Report(
        ('MG122',), folder(blocks(0, 1, dtype=np.uint16), num_classes=2), ('8 bits',)
    ),
    'mantasu/glasses-detector#23': Report(('MG136',), folder(disc(), disc(), num_classes=2, ending='.jpg'), ('PNG',)),
    'divamgupta/image-segmentation-keras#117': Report(('MG121',), opencv_loader, ('Pillow',)),
}

#: Of the 34 reports, how many first findings must be right.


@lru_cache(maxsize=None)
def findings_of(report: str) -> Tuple[Finding, ...]:
    with TemporaryDirectory() as root:
        path, options = REPORTS[report].rebuild(Path(root))
        return tuple(scanned(path, **options))


@pytest.mark.parametrize('report', [name for name in sorted(REPORTS) if is_here(REPORTS[name].codes)])
def test_the_first_finding_names_the_true_cause(report: str) -> None:
    first = findings_of(report)[0]
    assert first.code in REPORTS[report].codes, first
    for words in REPORTS[report].says:
        assert words in f'{first.cause} {first.evidence} {first.advice}', first


@pytest.mark.parametrize('report', ['mmsegmentation#3574', 'mmsegmentation#3492', 'mmdetection#3628'])
def test_where_the_labels_are_right_it_is_said(report: str) -> None:
    assert findings_of(report)[-1].cause == 'Your labels are fine.'


@pytest.mark.skipif(IS_ONEDL, reason="onedl's mmseg looks up no class weight of an ignored label")
def test_a_config_alone_tells_what_needs_no_files(tmp_path: Path) -> None:
    from mmguard.config.read import read_config

    head = dict(type='FCNHead', num_classes=8, **weighted(8))
    path = write_config(tmp_path, default_scope='mmseg', model=dict(type='EncoderDecoder', decode_head=head))
    assert diagnose(config=read_config(str(path)))[0].code == 'MG214'
