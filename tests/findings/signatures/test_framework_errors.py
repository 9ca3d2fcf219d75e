"""Errors of MMSegmentation, MMDetection and what they stand on, each made by the code that fails."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from failing import Failing, Table, from_file, holds

MM = Table('mmengine')
SEG = Table('mmseg')
DET = Table('mmdet')
REST = Table()


def temporary(name: str, content: Any) -> str:
    path = Path(tempfile.mkdtemp(), name)
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding='utf-8')
    return str(path)


COCO = {
    'images': [{'id': 1, 'file_name': 'a.jpg', 'width': 64, 'height': 64}],
    'categories': [{'id': 1, 'name': 'cat'}, {'id': 2, 'name': 'dog'}],
    'annotations': [
        {'id': 1, 'image_id': 1, 'category_id': 1, 'bbox': [1, 1, 20, 20], 'area': 400, 'iscrowd': 0},
    ],
}


# ---- mmengine


@MM.says('MG491')
def type_of_nobody() -> object:
    from mmengine.registry import MODELS

    return MODELS.build(dict(type='NetworkOfNobody'))


@MM.says('MG491')
def guard_without_import() -> object:
    from mmengine.registry import HOOKS

    return HOOKS.build(dict(type='GuardHookOfNobody'))


@MM.says('MG492')
def argument_of_nobody() -> object:
    import mmengine.hooks  # noqa: F401  registers it
    from mmengine.registry import HOOKS

    return HOOKS.build(dict(type='LoggerHook', img_norm_cfg=1))


@MM.says('MG472', 'MG174')
def no_valid_image() -> object:
    from mmengine.dataset import BaseDataset

    data = temporary('ann.json', {'metainfo': {}, 'data_list': [{'img_path': 'a.jpg'}]})
    return BaseDataset(data, pipeline=[lambda results: None], max_refetch=3)[0]


@MM.says('MG476')
def annotations_of_another_kind() -> object:
    from mmengine.dataset import BaseDataset

    return BaseDataset(temporary('ann.json', {'images': []}))


@MM.says('MG472', 'MG140')
def empty_data_set() -> object:
    from mmengine.dataset import BaseDataset

    class AllFiltered(BaseDataset):
        def filter_data(self) -> list:
            return []

    return AllFiltered(temporary('ann.json', {'metainfo': {}, 'data_list': [{'img_path': 'a.jpg'}]}))


# ---- MMSegmentation


@SEG.says('MG414', 'MG214')
def class_weight_and_255() -> object:
    from mmseg.models.losses import CrossEntropyLoss

    loss = CrossEntropyLoss(class_weight=[1.0, 2.0], avg_non_ignore=False)
    return loss(torch.rand(1, 2, 4, 4), torch.full((1, 4, 4), 255), ignore_index=255)


@SEG.says('MG413', 'MG106')
def label_beyond_the_head() -> object:
    from mmseg.models.losses import CrossEntropyLoss

    return CrossEntropyLoss()(torch.rand(1, 2, 4, 4), torch.full((1, 4, 4), 7), ignore_index=255)


@SEG.says('MG413')
def label_beyond_ohem() -> object:
    from mmseg.models.losses import OhemCrossEntropy

    return OhemCrossEntropy(ignore_label=255)(torch.rand(1, 2, 4, 4), torch.full((1, 4, 4), 2))


@SEG.says('MG416', 'MG215')
def ohem_sampler_of_one_channel() -> object:
    from mmengine.config import ConfigDict
    from mmseg.models.decode_heads import FCNHead

    head = FCNHead(
        in_channels=4,
        channels=4,
        num_classes=2,
        out_channels=1,
        threshold=0.3,
        num_convs=0,
        concat_input=False,
        loss_decode=ConfigDict(type='CrossEntropyLoss', use_sigmoid=True),
        sampler=ConfigDict(type='OHEMPixelSampler', thresh=0.7, min_kept=10),
    )
    return head.sampler.sample(torch.rand(1, 1, 4, 4), torch.ones(1, 1, 4, 4, dtype=torch.long))


@SEG.says('MG407')
def focal_of_7() -> object:
    from mmseg.models.losses import FocalLoss

    return FocalLoss()(torch.rand(1, 2, 4, 4), torch.full((1, 4, 4), 7), ignore_index=255)


@SEG.says('MG425', 'MG120')
def label_with_channels() -> object:
    from mmseg.models.utils import resize

    return resize(torch.rand(1, 2, 4, 4), size=torch.zeros(1, 8, 8, 3).shape[1:], mode='bilinear')


@SEG.says('MG476')
def seg_map_was_not_loaded() -> object:
    from mmseg.datasets.transforms import RandomCrop

    return RandomCrop(crop_size=(4, 4), cat_max_ratio=0.5).transform(dict(img=np.zeros((8, 8, 3), np.uint8)))


# ---- MMDetection


@DET.says('MG474', 'MG203')
def eighty_names_of_coco() -> object:
    from mmdet.engine.hooks import NumClassCheckHook
    from mmdet.models.losses import accuracy  # noqa: F401  mmdet is complete

    return checked_classes(NumClassCheckHook(), num_classes=3, classes=tuple(map(str, range(80))))


@DET.says('MG474', 'MG205')
def one_name_without_a_comma() -> object:
    from mmdet.engine.hooks import NumClassCheckHook

    return checked_classes(NumClassCheckHook(), num_classes=3, classes='cat')


def checked_classes(hook: Any, num_classes: int, classes: Any) -> object:
    """Asks mmdet's hook as its runner does."""

    class Head(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.num_classes = num_classes

    class Dataset:
        @property
        def metainfo(self) -> dict:
            return dict(classes=classes)

    class Loop:
        class dataloader:
            dataset = Dataset()

    class Runner:
        model = torch.nn.ModuleDict({'head': Head()})
        train_dataloader = Loop.dataloader
        train_loop = Loop
        logger = None

    return hook.before_train_epoch(Runner())


@DET.says('MG475', 'MG149')
def category_without_name() -> object:
    from mmdet.datasets import CocoDataset

    content = json.loads(json.dumps(COCO))
    dataset = CocoDataset(
        ann_file=temporary('coco.json', content),
        metainfo=dict(classes=('cat',)),
        data_prefix=dict(img=''),
        lazy_init=True,
    )
    dataset.full_init()
    return dataset.cat2label[9]


@DET.says('MG476', 'MG153')
def annotation_without_area() -> object:
    from mmdet.datasets import CocoDataset

    content = json.loads(json.dumps(COCO))
    del content['annotations'][0]['area']
    return CocoDataset(
        ann_file=temporary('coco.json', content), metainfo=dict(classes=('cat', 'dog')), data_prefix=dict(img='')
    )


@DET.says('MG472', 'MG140')
def names_that_the_file_lacks() -> object:
    from mmdet.datasets import CocoDataset

    return CocoDataset(
        ann_file=temporary('coco.json', COCO),
        metainfo=dict(classes=('Cat',)),
        data_prefix=dict(img=''),
        filter_cfg=dict(filter_empty_gt=True),
    )


@DET.says('MG444')
def matcher_of_nan() -> object:
    from mmdet.models.task_modules import HungarianAssigner
    from mmengine.structures import InstanceData

    assigner = HungarianAssigner(match_costs=[dict(type='BBoxL1Cost')])
    predicted = InstanceData(bboxes=torch.full((3, 4), float('nan')), scores=torch.rand(3, 2))
    wanted = InstanceData(bboxes=torch.rand(2, 4), labels=torch.tensor([0, 1]))
    return assigner.assign(predicted, wanted, img_meta=dict(img_shape=(8, 8)))


@DET.says('MG416', 'MG138')
def matcher_of_category_ids() -> object:
    from mmdet.models.task_modules import ClassificationCost
    from mmengine.structures import InstanceData

    predicted = InstanceData(scores=torch.rand(3, 2))
    return ClassificationCost()(predicted, InstanceData(labels=torch.tensor([2])))


@DET.says('MG407')
def focal_label_beyond_classes() -> object:
    from mmdet.models.losses import FocalLoss

    return FocalLoss()(torch.rand(3, 2), torch.tensor([0, 1, 7]))


@DET.says('MG424', 'MG207')
def weights_of_other_classes() -> object:
    from mmdet.models.losses import CrossEntropyLoss

    return CrossEntropyLoss(class_weight=[1.0] * 81)(torch.rand(3, 2), torch.tensor([0, 1, 1]))


# ---- others


@REST.says('MG429', 'MG229', 'pycocotools')
def results_of_other_images() -> object:
    from pycocotools.coco import COCO as Coco

    coco = Coco(temporary('coco.json', COCO))
    return coco.loadRes([{'image_id': 77, 'category_id': 1, 'bbox': [0, 0, 1, 1], 'score': 0.5}])


@REST.says('MG476', '', 'pycocotools')
def coco_without_categories() -> object:
    from pycocotools.coco import COCO as Coco

    coco = Coco(temporary('coco.json', {'images': [], 'annotations': []}))
    return coco.loadCats(coco.getCatIds()) or coco.dataset['categories']


@REST.says('MG479', 'MG132', 'PIL')
def image_that_is_none() -> object:
    from PIL import Image

    return Image.open(temporary('a.png', 'not an image')).load()


@REST.says('MG479', 'MG150', 'cv2')
def picture_of_nothing() -> object:
    import cv2

    return cv2.cvtColor(cv2.imread('/nowhere/a.png'), cv2.COLOR_BGR2RGB)


@REST.says('MG444', '', 'scipy')
def costs_of_nan() -> object:
    from scipy.optimize import linear_sum_assignment

    return linear_sum_assignment(np.full((2, 2), np.nan))


@REST.says('MG480', 'MG109', 'torchvision')
def box_without_height() -> object:
    from torchvision.models.detection import fasterrcnn_mobilenet_v3_large_320_fpn as build

    model = build(weights=None, weights_backbone=None, num_classes=2)
    target = dict(boxes=torch.tensor([[1.0, 1.0, 1.0, 5.0]]), labels=torch.tensor([1]))
    return model.train()([torch.rand(3, 32, 32)], [target])


@REST.says('MG480', 'MG146', 'torchvision')
def boxes_without_columns() -> object:
    from torchvision.models.detection import fasterrcnn_mobilenet_v3_large_320_fpn as build

    model = build(weights=None, weights_backbone=None, num_classes=2)
    target = dict(boxes=torch.zeros(0), labels=torch.zeros(0, dtype=torch.long))
    return model.train()([torch.rand(3, 32, 32)], [target])


@REST.says('MG445', '', 'transformers')
def corners_of_nan() -> object:
    from transformers.loss.loss_for_object_detection import generalized_box_iou

    return generalized_box_iou(torch.full((2, 4), float('nan')), torch.rand(2, 4))


@REST.says('MG416', 'MG138', 'transformers')
def transformers_matcher() -> object:
    from transformers.loss.loss_for_object_detection import HungarianMatcher

    outputs = dict(logits=torch.rand(1, 3, 3), pred_boxes=torch.rand(1, 3, 4))
    return HungarianMatcher()(outputs, [dict(class_labels=torch.tensor([5]), boxes=torch.rand(1, 4))])


@REST.says('MG413', '', 'transformers')
def segformer_label() -> object:
    from transformers import SegformerConfig, SegformerForSemanticSegmentation

    config = SegformerConfig(
        num_labels=3, depths=[1] * 4, hidden_sizes=[8] * 4, num_attention_heads=[1] * 4, decoder_hidden_size=8
    )
    model = SegformerForSemanticSegmentation(config)
    return model(torch.rand(1, 3, 64, 64), labels=torch.full((1, 64, 64), 77))


@REST.says('MG480', 'MG109', 'albumentations')
def box_of_albumentations() -> object:
    import albumentations

    compose = albumentations.Compose(
        [albumentations.HorizontalFlip()], bbox_params=albumentations.BboxParams('pascal_voc')
    )
    return compose(image=np.zeros((8, 8, 3), np.uint8), bboxes=[[5, 5, 5, 7, 0]])


@REST.says('MG422', 'MG208', 'torchmetrics')
def metric_without_ignore() -> object:
    from torchmetrics.functional.classification import multiclass_jaccard_index

    return multiclass_jaccard_index(torch.rand(1, 2, 4), torch.full((1, 4), 255), num_classes=2)


@REST.says('MG442')
def loss_of_nan_in_a_log() -> object:
    source = 'def train():\n    raise RuntimeError("loss_bbox: nan")\n'
    return from_file('train.py', source).train()


@pytest.mark.parametrize('row', [*MM.cases, *SEG.cases, *DET.cases, *REST.cases])
def test_the_error_is_known(row: Failing) -> None:
    holds(row)
