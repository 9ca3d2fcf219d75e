"""Errors of torch and numpy, each made by the code that fails."""

from __future__ import annotations

from typing import Any, Callable, Dict, Tuple

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from explained_logs import catch_traceback, explain_log, format_traceback, import_source

SCORES = torch.rand(2, 3, 4, 4)
LABELS = torch.zeros(2, 4, 4, dtype=torch.long)
# Names as training code has them: they tell causes apart.
class_weight, ohem_losses, ohem_scores = torch.ones(3), torch.zeros(0), torch.rand(2, 1, 4, 4)
out_prob, tgt_ids, label_embed = torch.rand(5, 3), torch.tensor([1, 3]), torch.nn.Embedding(3, 4)
classes, cat2label, image = ['cat'], {1: 0}, None
BOX_OPS = 'def generalized_box_iou(boxes1):\n    assert (boxes1[:, 2:] >= boxes1[:, :2]).all()\n'


def unpack_three_numbers() -> None:
    _height, _width = np.zeros((4, 4, 3)).shape


def divide_gradient_by_zero() -> None:
    with torch.autograd.detect_anomaly():
        (torch.zeros(1, requires_grad=True).sqrt() * 0).sum().backward()


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
    'colours by value': ('MG417', 'MG120', lambda: np.zeros((182, 3), np.uint8)[np.full((2, 2), 255)]),
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
    'nothing to stack': ('MG472', '', lambda: torch.stack([])),
    'a sampler of nothing': ('MG472', '', lambda: torch.utils.data.DataLoader(ohem_losses, shuffle=True)),
    'a category without label': ('MG475', 'MG149', lambda: cat2label[9]),
    'a name without label': ('MG475', 'MG140', lambda: cat2label['person']),
    'a record without key': ('MG476', '', lambda: {'images': []}['annotations']),
    'an image that does not exist': ('MG478', 'MG150', lambda: np.fromfile('/nowhere/0001.jpg')),
    'an image that was not read': ('MG479', '', lambda: image.shape),
    'a package that is not installed': ('MG499', '', lambda: __import__('mmcv_of_nobody')),
}


@pytest.mark.parametrize('name', list(ERRORS))
def test_the_error_is_known(name: str) -> None:
    code, first, call = ERRORS[name]
    text = catch_traceback(call)
    found = explain_log(text)
    assert found.signature is not None, text
    assert found.signature.code == code, text
    assert not first or first in found.causes[0].cause.codes, found.causes[0].cause.key


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


@pytest.mark.parametrize(
    ('before', 'frame', 'first'),
    [
        ('', ('/w/pspnet/train.py', 'out = model(x)'), 'batch-of-one'),
        ('batch_size: 1\n', ('/w/deeplab.py', 'y = self.aspp(x)'), 'batch-of-one'),
        ('Epoch 1/9: 12/13 [00:31<00:02]\n', ('/w/unet/fit.py', 'out = net(batch)'), 'last-batch'),
        ('step 640 loss 0.31\n', ('/w/pointnet.py', 'x = self.bn(x)'), 'last-batch'),
        ('', ('/w/seg/demo.py', 'show_result(inference_segmentor(model, image))'), 'training-mode'),
    ],
)
def test_the_log_says_which_batch_had_one_image(before: str, frame: Tuple[str, str], first: str) -> None:
    error = 'ValueError: Expected more than 1 value per channel when training, got input size torch.Size([1, 96, 1, 1])'
    found = explain_log(before + format_traceback(error, frame))
    assert found.causes[0].cause.key == first
    assert not any(one.cause.codes for one in found.causes)
