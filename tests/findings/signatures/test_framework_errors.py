"""Errors of torch, numpy, MMSegmentation, MMDetection and what they build on, each made by the code that fails."""

from __future__ import annotations

import json
import tempfile
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Callable, Dict, Tuple

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from coco_cases import ann, coco
from explained_logs import catch_traceback, check_known, explain_log, import_source
from put_file import put

SCORES = torch.rand(2, 3, 4, 4)
LABELS = torch.zeros(2, 4, 4, dtype=torch.long)
# Names as training code has them: they tell causes apart.
class_weight, ohem_losses, ohem_scores = torch.ones(3), torch.zeros(0), torch.rand(2, 1, 4, 4)
out_prob, tgt_ids, label_embed = torch.rand(5, 3), torch.tensor([1, 3]), torch.nn.Embedding(3, 4)
classes, cat2label, image = ['cat'], {1: 0}, None
BOX_OPS = 'def generalized_box_iou(boxes1):\n    assert (boxes1[:, 2:] >= boxes1[:, :2]).all()\n'
OF_TWO, SEVEN = torch.rand(1, 2, 4, 4), torch.full((1, 4, 4), 7)
COCO = coco([ann(1, 1, 1, (1, 1, 20, 20))], 1, ['cat', 'dog'], size=(64, 64), first_image=1)
NO_AREA = [{'id': 1, 'image_id': 1, 'category_id': 1, 'bbox': [1, 1, 20, 20], 'iscrowd': 0}]
IMAGES = {'metainfo': {}, 'data_list': [{'img_path': 'a.jpg'}]}
NO_SCORES = dict(match_costs=[dict(type='BBoxL1Cost')])


def unpack_three_numbers() -> None:
    _height, _width = np.zeros((4, 4, 3)).shape


def divide_gradient_by_zero() -> None:
    with torch.autograd.detect_anomaly():
        (torch.zeros(1, requires_grad=True).sqrt() * 0).sum().backward()


def take(module: str, name: str) -> Any:
    """Import what fails; the test is skipped where its package is not installed."""
    pytest.importorskip(module.partition('.')[0])
    return getattr(import_module(module), name)


def write_file(name: str, content: Any) -> str:
    return str(put(Path(tempfile.mkdtemp(), name), content if isinstance(content, str) else json.dumps(content)))


def build_registered(registry: str, **config: Any) -> Any:
    take('mmengine.runner', 'Runner')  # registers its hooks
    return take('mmengine.registry', registry).build(config)


def load_coco(content: Any, *classes: str, **settings: Any) -> Any:
    data = dict(ann_file=write_file('coco.json', content), metainfo=dict(classes=classes), data_prefix=dict(img=''))
    return take('mmdet.datasets', 'CocoDataset')(**data, **settings)


def filter_all_images() -> None:
    class AllFiltered(take('mmengine.dataset', 'BaseDataset')):
        def filter_data(self) -> list:
            return []

    AllFiltered(write_file('ann.json', IMAGES))


def sample_one_channel() -> None:
    from mmengine.config import ConfigDict

    head = take('mmseg.models.decode_heads', 'FCNHead')(
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
    head.sampler.sample(torch.rand(1, 1, 4, 4), torch.ones(1, 1, 4, 4, dtype=torch.long))


def check_classes(names: Any) -> None:
    """Ask mmdet's hook as its runner does, with a head of three classes."""

    class Head(torch.nn.Module):
        num_classes = 3

    class Loop:
        class dataloader:
            dataset = SimpleNamespace(metainfo=dict(classes=names))

    class Runner:
        model = torch.nn.ModuleDict({'head': Head()})
        train_dataloader = Loop.dataloader
        train_loop = Loop
        logger = None

    take('mmdet.models.losses', 'accuracy')  # mmdet is complete
    take('mmdet.engine.hooks', 'NumClassCheckHook')().before_train_epoch(Runner())


def match_nan() -> None:
    InstanceData = take('mmengine.structures', 'InstanceData')
    predicted = InstanceData(bboxes=torch.full((3, 4), float('nan')), scores=torch.rand(3, 2))
    wanted = InstanceData(bboxes=torch.rand(2, 4), labels=torch.tensor([0, 1]))
    take('mmdet.models.task_modules', 'HungarianAssigner')(**NO_SCORES).assign(
        predicted, wanted, dict(img_shape=(8, 8))
    )


def match_category_ids() -> None:
    InstanceData = take('mmengine.structures', 'InstanceData')
    cost = take('mmdet.models.task_modules', 'ClassificationCost')()
    cost(InstanceData(scores=torch.rand(3, 2)), InstanceData(labels=torch.tensor([2])))


def read_missing_picture() -> None:
    cv2 = pytest.importorskip('cv2')
    cv2.cvtColor(cv2.imread('/nowhere/a.png'), cv2.COLOR_BGR2RGB)


def of_seg(name: str, **settings: Any) -> Any:
    return take('mmseg.models.losses', name)(**settings)


def of_det(name: str, **settings: Any) -> Any:
    return take('mmdet.models.losses', name)(**settings)


def of_coco(content: Any) -> Any:
    return take('pycocotools.coco', 'COCO')(write_file('coco.json', content))


#: Code of the signature, a code of its first cause (empty: any), and code that raises.
ERRORS: Dict[str, Tuple[str, str, Callable[[], Any]]] = {
    '255 is not ignored': ('MG413', 'MG103', lambda: F.cross_entropy(SCORES, LABELS + 255)),
    'a negative label': ('MG413', 'MG105', lambda: F.cross_entropy(SCORES, LABELS - 1)),
    'a gray level': ('MG413', 'MG106', lambda: F.cross_entropy(SCORES, LABELS + 128)),
    'nll_loss': ('MG413', '', lambda: F.nll_loss(torch.rand(4, 3), torch.tensor([0, 1, 2, 3]))),
    'multi_margin_loss': ('MG413', '', lambda: F.multi_margin_loss(torch.rand(2, 3), torch.tensor([0, 9]))),
    'weights by label': ('MG414', 'MG214', lambda: [class_weight[label] for label in (LABELS + 255).flatten()]),
    'OHEM of nothing': ('MG415', '', lambda: ohem_losses.sort()[0][min(100, ohem_losses.numel() - 1)]),
    'OHEM of one channel': ('MG416', 'MG215', lambda: ohem_scores.softmax(1).gather(1, (LABELS + 1).unsqueeze(1))),
    'cost_class of a matcher': ('MG416', 'MG138', lambda: -out_prob[:, tgt_ids]),
    'colors by value': ('MG417', 'MG120', lambda: np.zeros((182, 3), np.uint8)[np.full((2, 2), 255)]),
    'a tensor by index': ('MG418', '', lambda: torch.zeros(3)[torch.tensor([7])]),
    'an embedding of labels': ('MG406', 'MG138', lambda: label_embed(torch.tensor([5]))),
    'one-hot of 255, which is to be ignored': ('MG407', 'MG104', lambda: F.one_hot(LABELS + 255, 3)),
    'one-hot of -1': ('MG407', 'MG105', lambda: F.one_hot(torch.tensor([-1]), 3)),
    'a sample of nan': ('MG409', '', lambda: torch.multinomial(torch.full((3,), float('nan')), 1)),
    'the name of a label': ('MG420', 'MG201', lambda: classes[2]),
    'scores without sigmoid': ('MG405', '', lambda: F.binary_cross_entropy(torch.tensor([3.0]), torch.ones(1))),
    'confusion of -1': ('MG423', 'MG208', lambda: torch.bincount(torch.tensor([-1, 0]))),
    'confusion of -1, numpy': ('MG423', 'MG208', lambda: np.bincount(np.array([-1, 0]))),
    'confusion of 9': ('MG423', '', lambda: np.bincount(np.array([0, 9]), minlength=4).reshape(2, 2)),
    'too few weights': ('MG424', 'MG207', lambda: F.cross_entropy(SCORES, LABELS, weight=torch.ones(2))),
    'a target of three channels': (
        'MG425',
        'MG120',
        lambda: F.cross_entropy(SCORES, LABELS[..., None].expand(2, 4, 4, 3)),
    ),
    'a target of two columns': ('MG425', '', lambda: F.nll_loss(torch.rand(4, 3), LABELS[0, :, :3])),
    'resized to three numbers': ('MG425', 'MG120', lambda: F.interpolate(SCORES, size=(4, 4, 3), mode='bilinear')),
    'a target of another size': ('MG426', 'MG130', lambda: F.cross_entropy(SCORES, LABELS[:, :2])),
    'a binary target without channel': (
        'MG426',
        '',
        lambda: F.binary_cross_entropy_with_logits(torch.rand(2, 1, 4, 4), torch.zeros(2, 4, 4)),
    ),
    'another batch size': ('MG426', '', lambda: F.cross_entropy(torch.rand(4, 3), LABELS[0, 0, :3])),
    'a target of bytes': ('MG428', '', lambda: F.cross_entropy(SCORES, LABELS.int())),
    'a target of floats': ('MG428', 'MG123', lambda: F.nll_loss(SCORES.log_softmax(1), LABELS.float())),
    'a binary target of integers': (
        'MG428',
        '',
        lambda: F.binary_cross_entropy_with_logits(torch.rand(4, requires_grad=True), LABELS[0, 0]).backward(),
    ),
    'one image after a global pooling': ('MG359', '', lambda: torch.nn.BatchNorm2d(8)(torch.rand(1, 8, 1, 1))),
    'one sample of features': ('MG359', '', lambda: torch.nn.BatchNorm1d(64)(torch.rand(1, 64))),
    'one volume after a global pooling': ('MG359', '', lambda: torch.nn.BatchNorm3d(4)(torch.rand(1, 4, 1, 1, 1))),
    'other sizes': ('MG432', '', lambda: torch.rand(2, 3) + torch.rand(2, 4)),
    'three numbers of a shape': ('MG433', 'MG120', unpack_three_numbers),
    'a batch of other sizes': ('MG434', '', lambda: torch.stack([torch.rand(3, 4, 4), torch.rand(3, 5, 5)])),
    'a batch of other sizes, numpy': ('MG434', '', lambda: np.stack([np.zeros((4, 4)), np.zeros((5, 5))])),
    'a mask of another size': ('MG437', '', lambda: np.zeros((4, 4))[np.zeros((5, 5), bool)]),
    'arrays of other sizes': ('MG437', '', lambda: np.zeros((4, 4)) + np.zeros((5, 5))),
    'a constant loss': ('MG441', 'MG128', lambda: torch.zeros(()).backward()),
    'a loss of many numbers': ('MG441', '', lambda: torch.rand(3, requires_grad=True).exp().backward()),
    'a box that ends before it begins': (
        'MG445',
        '',
        lambda: import_source('box_ops.py', BOX_OPS).generalized_box_iou(torch.tensor([[0.5, 0.5, 0.1, 0.9]])),
    ),
    'a gradient that is nan': ('MG448', '', divide_gradient_by_zero),
    'a mean over no valid pixel': ('MG447', 'MG128', lambda: 1.0 / int(LABELS.sum())),
    'an integer of nan': ('MG448', '', lambda: int(float('nan'))),
    'a distribution of nan': (
        'MG448',
        '',
        lambda: torch.distributions.Categorical(logits=torch.full((3,), float('nan')), validate_args=True),
    ),
    'nothing to concatenate': ('MG472', '', lambda: np.concatenate([])),
    'nothing to stack': ('MG583', '', lambda: torch.stack([])),
    'a sampler of nothing': ('MG472', '', lambda: torch.utils.data.DataLoader(ohem_losses, shuffle=True)),
    'a category without label': ('MG475', 'MG149', lambda: cat2label[9]),
    'a name without label': ('MG475', 'MG140', lambda: cat2label['person']),
    'a record without key': ('MG476', '', lambda: {'images': []}['annotations']),
    'an image that does not exist': ('MG478', 'MG150', lambda: np.fromfile('/nowhere/0001.jpg')),
    'an image that was not read': ('MG479', '', lambda: image.shape),
    'a package that is not installed': ('MG499', '', lambda: __import__('mmcv_of_nobody')),
    'a type of nobody': ('MG491', '', lambda: build_registered('MODELS', type='NetworkOfNobody')),
    'a guard without import': ('MG491', '', lambda: build_registered('HOOKS', type='GuardHookOfNobody')),
    'an argument of nobody': ('MG492', '', lambda: build_registered('HOOKS', type='LoggerHook', img_norm_cfg=1)),
    'no valid image': (
        'MG472',
        'MG174',
        lambda: take('mmengine.dataset', 'BaseDataset')(
            write_file('ann.json', IMAGES), pipeline=[lambda results: None], max_refetch=3
        )[0],
    ),
    'annotations of another kind': (
        'MG476',
        '',
        lambda: take('mmengine.dataset', 'BaseDataset')(write_file('ann.json', {'images': []})),
    ),
    'an empty data set': ('MG472', 'MG140', filter_all_images),
    'mmseg: class_weight and 255': (
        'MG414',
        'MG214',
        lambda: of_seg('CrossEntropyLoss', class_weight=[1.0, 2.0])(OF_TWO, SEVEN + 248, ignore_index=255),
    ),
    'mmseg: a label beyond the head': ('MG413', 'MG106', lambda: of_seg('CrossEntropyLoss')(OF_TWO, SEVEN)),
    'mmseg: a label beyond OHEM': ('MG413', '', lambda: of_seg('OhemCrossEntropy')(OF_TWO, SEVEN - 5)),
    'mmseg: OHEM of one channel': ('MG416', 'MG215', sample_one_channel),
    'mmseg: focal loss of 7': ('MG407', '', lambda: of_seg('FocalLoss')(OF_TWO, SEVEN, ignore_index=255)),
    'mmseg: labels with channels': (
        'MG425',
        'MG120',
        lambda: take('mmseg.models.utils', 'resize')(OF_TWO, size=torch.Size([8, 8, 3]), mode='bilinear'),
    ),
    'mmseg: no label map was loaded': (
        'MG476',
        '',
        lambda: take('mmseg.datasets.transforms', 'RandomCrop')((4, 4), 0.5).transform(dict(img=np.zeros((8, 8, 3)))),
    ),
    'mmdet: the names of COCO': ('MG474', 'MG203', lambda: check_classes(tuple(map(str, range(80))))),
    'mmdet: one name without a comma': ('MG584', 'MG205', lambda: check_classes('cat')),
    'mmdet: a category without name': ('MG475', 'MG149', lambda: load_coco(COCO, 'cat').cat2label[9]),
    'mmdet: an annotation without area': (
        'MG476',
        'MG153',
        lambda: load_coco({**COCO, 'annotations': NO_AREA}, 'cat'),
    ),
    'mmdet: names that the file lacks': (
        'MG472',
        'MG140',
        lambda: load_coco(COCO, 'Cat', filter_cfg=dict(filter_empty_gt=True)),
    ),
    'mmdet: a matcher of nan': ('MG444', '', match_nan),
    'mmdet: a matcher of category ids': ('MG416', 'MG138', match_category_ids),
    'mmdet: a label beyond the classes': (
        'MG407',
        '',
        lambda: of_det('FocalLoss')(torch.rand(3, 2), torch.tensor([0, 1, 7])),
    ),
    'mmdet: weights of other classes': (
        'MG424',
        'MG207',
        lambda: of_det('CrossEntropyLoss', class_weight=[1.0] * 81)(torch.rand(3, 2), torch.tensor([0, 1, 1])),
    ),
    'results of other images': (
        'MG429',
        'MG229',
        lambda: of_coco(COCO).loadRes([dict(image_id=77, category_id=1, bbox=[0, 0, 1, 1], score=0.5)]),
    ),
    'COCO without categories': (
        'MG476',
        '',
        lambda: of_coco({'images': [], 'annotations': []}).dataset['categories'],
    ),
    'a file that is not an image': (
        'MG479',
        'MG132',
        lambda: take('PIL.Image', 'open')(write_file('a.png', 'not an image')).load(),
    ),
    'a picture of nothing': ('MG479', 'MG150', read_missing_picture),
    'costs of nan': ('MG444', '', lambda: take('scipy.optimize', 'linear_sum_assignment')(np.full((2, 2), np.nan))),
    'a loss of nan in a message': (
        'MG442',
        '',
        lambda: import_source('train.py', 'def train():\n    raise RuntimeError("loss_bbox: nan")\n').train(),
    ),
}


@pytest.mark.parametrize('name', list(ERRORS))
def test_the_error_is_known(name: str) -> None:
    check_known(*ERRORS[name])


@pytest.mark.parametrize(
    'call',
    [
        lambda: F.binary_cross_entropy_with_logits(SCORES, torch.zeros(2, 3, 4, 4), pos_weight=torch.ones(3)),
        lambda: torch.nn.BCEWithLogitsLoss(pos_weight=torch.ones(7))(torch.rand(1, 7, 8, 5), torch.zeros(1, 7, 8, 5)),
        lambda: F.binary_cross_entropy_with_logits(torch.rand(2, 5, 6), torch.zeros(2, 5, 6), weight=torch.ones(5)),
    ],
)
def test_weights_over_the_width_leave_no_other_cause(call: Callable[[], Any]) -> None:
    found = explain_log(catch_traceback(call))
    assert (found.causes[0].cause.key, found.causes[0].standing) == ('pos-weight', 'supported')
    assert {'part-classes', 'label-size', 'three-channels', 'extra-dimension'} <= {one.key for one in found.refuted}


@pytest.mark.parametrize(
    'call',
    [
        lambda: torch.rand(2, 3) + torch.rand(2, 4),
        lambda: torch.rand(9, 1, 5) * torch.rand(9, 7, 4),
        lambda: torch.where(torch.rand(3) > 0, torch.rand(4), torch.rand(3)),
    ],
)
def test_weights_are_no_cause_in_another_function(call: Callable[[], Any]) -> None:
    assert 'pos-weight' in {one.key for one in explain_log(catch_traceback(call)).refuted}
