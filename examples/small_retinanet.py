"""A stand-in for MLPerf's RetinaNet: its matching and its losses (mlcommons/training, single_stage_detector/ssd/model).

Focal loss over the foreground anchors of an image, averaged over images; a label is an index into the classes.
"""

import torch
import torch.nn.functional as F
from torch import nn

SIZE, STRIDE = 64, 8


class SmallRetinaNet(nn.Module):
    """One level, one square anchor of 16 pixels per place."""

    def __init__(self, num_classes):
        super().__init__()
        self.backbone = nn.Sequential(nn.Conv2d(3, 32, STRIDE, STRIDE), nn.ReLU())
        self.cls_logits, self.bbox_reg = nn.Conv2d(32, num_classes, 3, 1, 1), nn.Conv2d(32, 4, 3, 1, 1)
        nn.init.constant_(self.cls_logits.bias, -4.6)
        x = torch.arange(STRIDE // 2, SIZE, STRIDE).float()
        self.centres = torch.cartesian_prod(x, x).flip(1)
        self.anchors = torch.cat([self.centres - 8, self.centres + 8], 1)

    def forward(self, images, targets):
        if any((target['boxes'][:, 2:] <= target['boxes'][:, :2]).any() for target in targets):
            raise ValueError('all boxes must have a width and a height')
        features = self.backbone(torch.stack(list(images)))
        outputs = [head(features).flatten(2).transpose(1, 2) for head in (self.cls_logits, self.bbox_reg)]
        losses = [self.losses_of_image(*one) for one in zip(targets, *outputs)]
        cls, box = (sum(parts) / len(targets) for parts in zip(*losses))
        return {'classification': cls, 'bbox_regression': box}

    def losses_of_image(self, target, logits, offsets):
        matched = self.match(target['boxes'])
        foreground, wanted = matched >= 0, torch.zeros_like(logits)
        wanted[foreground, target['labels'][matched[foreground]]] = 1.0  # 264 dies here, -1 becomes the last class
        p, ce = logits.sigmoid(), F.binary_cross_entropy_with_logits(logits, wanted, reduction='none')
        focal = (0.75 - 0.5 * wanted) * (p - wanted).abs() ** 2 * ce  # alpha 0.25, gamma 2
        number = max(1, int(foreground.sum()))
        box = target['boxes'][matched[foreground]]
        centre, size = (box[:, 2:] + box[:, :2]) / 2, box[:, 2:] - box[:, :2]
        regression = torch.cat([(centre - self.centres[foreground]) / 16, (size / 16).log()], 1)
        l1 = F.l1_loss(offsets[foreground], regression, reduction='sum')
        return focal[matched != -2].sum() / number, l1 / number  # -2: between the thresholds

    def match(self, boxes):
        """For each anchor the place of its box, -1 (background) or -2; every box keeps its best anchor."""
        if not len(boxes):
            return torch.full((len(self.anchors),), -1)
        corners = torch.max(boxes[:, None, :2], self.anchors[:, :2]), torch.min(boxes[:, None, 2:], self.anchors[:, 2:])
        overlap = (corners[1] - corners[0]).clamp(min=0).prod(2)
        iou = overlap / ((boxes[:, 2:] - boxes[:, :2]).prod(1)[:, None] + 16 * 16 - overlap)
        best, place = iou.max(0)
        is_best = (iou == iou.max(1, keepdim=True).values).any(0)
        return torch.where(is_best | (best >= 0.5), place, torch.where(best < 0.4, -1, -2))
