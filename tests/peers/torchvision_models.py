"""torchvision's detectors, made small: its own classes and losses on a backbone of one layer."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Tuple

import torch
from torch import Tensor, nn
from torchvision.models.detection import (
    FCOS,
    FasterRCNN,
    KeypointRCNN,
    MaskRCNN,
    RetinaNet,
    ssdlite320_mobilenet_v3_large,
)
from torchvision.models.detection.anchor_utils import AnchorGenerator
from torchvision.models.detection.keypoint_rcnn import KeypointRCNNHeads, KeypointRCNNPredictor
from torchvision.ops import MultiScaleRoIAlign

NUM_CLASSES, SIZE, CHANNELS, KEYPOINTS = 5, 64, 32, 3

Batch = Tuple[List[Tensor], List[Dict[str, Tensor]]]


def retinanet() -> nn.Module:
    return RetinaNet(_backbone(), NUM_CLASSES, anchor_generator=_anchors(16, 24), **_SIZES)


def fcos() -> nn.Module:
    return FCOS(_backbone(), NUM_CLASSES, anchor_generator=_anchors(8), center_sampling_radius=1.5, **_SIZES)


def faster_rcnn() -> nn.Module:
    return FasterRCNN(_backbone(), NUM_CLASSES, **_two_stages())


def mask_rcnn() -> nn.Module:
    return MaskRCNN(_backbone(), NUM_CLASSES, mask_roi_pool=_pool(14), **_two_stages())


def keypoint_rcnn() -> nn.Module:
    heads = dict(
        keypoint_head=KeypointRCNNHeads(CHANNELS, (CHANNELS,)),
        keypoint_predictor=KeypointRCNNPredictor(CHANNELS, KEYPOINTS),
    )
    return KeypointRCNN(_backbone(), NUM_CLASSES, keypoint_roi_pool=_pool(14), **heads, **_two_stages())


def ssdlite() -> nn.Module:
    return ssdlite320_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=NUM_CLASSES)


#: As docs/recipes.md names them.
DETECTORS: Dict[str, Callable[[], nn.Module]] = {
    'RetinaNet': retinanet,
    'FCOS': fcos,
    'Faster R-CNN': faster_rcnn,
    'Mask R-CNN': mask_rcnn,
    'Keypoint R-CNN': keypoint_rcnn,
    'SSD': ssdlite,
}

_SIZES = dict(min_size=SIZE, max_size=SIZE)


def _backbone() -> nn.Module:
    layers = nn.Sequential(nn.Conv2d(3, CHANNELS, 8, 8), nn.ReLU())
    layers.out_channels = CHANNELS
    return layers


def _anchors(*sizes: int) -> AnchorGenerator:
    return AnchorGenerator(sizes=(sizes,), aspect_ratios=((1.0,),))


def _pool(size: int) -> MultiScaleRoIAlign:
    return MultiScaleRoIAlign(featmap_names=['0'], output_size=size, sampling_ratio=2)


def _two_stages() -> Dict[str, Any]:
    few = dict(rpn_post_nms_top_n_train=50, box_batch_size_per_image=16)
    return dict(rpn_anchor_generator=_anchors(16, 24), box_roi_pool=_pool(7), **few, **_SIZES)


def batch(*labels: List[int]) -> Batch:
    """One image per list, with one instance per label: box, mask, keypoints, and what evaluation reads."""
    generator = torch.Generator().manual_seed(0)
    images, targets = [], []
    for number, one in enumerate(labels):
        corner = torch.randint(0, 40, (len(one), 2), generator=generator)
        masks = torch.zeros(len(one), SIZE, SIZE, dtype=torch.uint8)
        for mask, (x, y) in zip(masks, corner.tolist()):
            mask[y : y + 20, x : x + 20] = 1
        points = corner[:, None] + torch.tensor([[4, 4], [10, 10], [16, 8]])
        images.append(torch.rand(3, SIZE, SIZE, generator=generator))
        targets.append(
            {
                'boxes': torch.cat([corner, corner + 20], 1).float(),
                'labels': torch.tensor(one, dtype=torch.int64),
                'masks': masks,
                'keypoints': torch.cat([points, torch.ones(len(one), KEYPOINTS, 1)], 2),
                'area': torch.full((len(one),), 400.0),
                'iscrowd': torch.zeros(len(one), dtype=torch.int64),
                'image_id': torch.tensor([number]),
            }
        )
    return images, targets


def step(detector: str, images: List[Tensor], targets: List[Dict[str, Tensor]]) -> Dict[str, Tensor]:
    """Losses and gradients of a fresh model, always the same one; it samples anchors by torch's generator."""
    torch.manual_seed(0)
    model = DETECTORS[detector]().train()
    losses = model(images, targets)
    sum(losses.values()).backward()
    gradients = {name: parameter.grad for name, parameter in model.named_parameters() if parameter.grad is not None}
    return {**{name: loss.detach() for name, loss in losses.items()}, **gradients}
