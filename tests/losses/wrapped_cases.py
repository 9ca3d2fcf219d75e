"""What the tests of GuardedLoss share: the stock losses that it wraps, and batches for them."""

from __future__ import annotations

from typing import Any, Dict, Tuple

import mmseg.models.losses as stock
import torch
from mmseg.models.losses.boundary_loss import BoundaryLoss
from mmseg.models.losses.tversky_loss import TverskyLoss
from torch import Tensor, nn

CLASSES = 3

#: name -> (class, arguments); each takes scores (N, 3, H, W) and labels (N, H, W)
MULTI_CLASS: Dict[str, Tuple[Any, Dict[str, Any]]] = {
    'ohem': (stock.OhemCrossEntropy, {'min_kept': 4, 'thres': 0.6}),
    'ohem, weighted': (stock.OhemCrossEntropy, {'min_kept': 1, 'thres': 0.2, 'class_weight': [0.5, 1.0, 2.0]}),
    'dice, sigmoid': (stock.DiceLoss, {}),
    'dice, softmax': (stock.DiceLoss, {'use_sigmoid': False, 'loss_weight': 2.0}),
    'dice, naive': (stock.DiceLoss, {'naive_dice': True, 'use_sigmoid': False}),
    'dice, none': (stock.DiceLoss, {'reduction': 'none'}),
    'dice, of probabilities': (stock.DiceLoss, {'activate': False}),
    'tversky': (TverskyLoss, {}),
    'tversky, weighted': (TverskyLoss, {'class_weight': [0.5, 1.0, 2.0], 'alpha': 0.5, 'beta': 0.5}),
    'lovasz': (stock.LovaszLoss, {'reduction': 'none'}),
    'lovasz, all': (stock.LovaszLoss, {'reduction': 'none', 'classes': 'all', 'class_weight': [0.5, 1.0, 2.0]}),
    'lovasz, per image': (stock.LovaszLoss, {'per_image': True, 'loss_weight': 0.5}),
    'lovasz, per image, sum': (stock.LovaszLoss, {'per_image': True, 'reduction': 'sum'}),
}
#: one score per pixel, (N, 1, H, W), and labels of 0 and 1
BINARY: Dict[str, Tuple[Any, Dict[str, Any]]] = {
    'boundary': (BoundaryLoss, {'loss_weight': 20.0}),
    'lovasz, binary': (stock.LovaszLoss, {'loss_type': 'binary', 'reduction': 'none'}),
    'lovasz, binary, per image': (stock.LovaszLoss, {'loss_type': 'binary', 'per_image': True}),
    'lovasz, binary, per image, none': (
        stock.LovaszLoss,
        {'loss_type': 'binary', 'per_image': True, 'reduction': 'none'},
    ),
}
FOCAL: Dict[str, Tuple[Any, Dict[str, Any]]] = {
    'focal': (stock.FocalLoss, {}),
    'focal, weighted': (stock.FocalLoss, {'class_weight': [0.5, 1.0, 2.0], 'alpha': [0.2, 0.5, 0.8]}),
    'focal, sum': (stock.FocalLoss, {'reduction': 'sum', 'gamma': 1.5}),
    'focal, none': (stock.FocalLoss, {'reduction': 'none', 'loss_weight': 3.0}),
}
ALL = {**MULTI_CLASS, **BINARY, **FOCAL}


def build(name: str) -> nn.Module:
    loss_class, arguments = ALL[name]
    return loss_class(**arguments)


def batch(name: str, images: int = 2, height: int = 4, width: int = 6, seed: int = 0) -> Tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    channels, classes = (1, 2) if name in BINARY else (CLASSES, CLASSES)
    scores = torch.randn(images, channels, height, width, generator=generator)
    if name == 'dice, of probabilities':
        scores = scores.sigmoid()
    return scores, torch.randint(0, classes, (images, height, width), generator=generator)


def one_hot(label: Tensor, classes: int = CLASSES) -> Tensor:
    rows = torch.arange(classes).view(1, -1, 1, 1)
    return (label.unsqueeze(1) == rows).float()
