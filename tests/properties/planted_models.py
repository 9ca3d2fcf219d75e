"""Losses and heads of a user's own: each breaks one property."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from mmdet.models import DINOHead, FCNMaskHead, FCOSHead, RetinaHead, Shared2FCBBoxHead
from mmdet.registry import MODELS as DET_MODELS
from mmseg.models import FCNHead
from mmseg.registry import MODELS
from torch import nn

# ---- losses


@MODELS.register_module()
class OneHotLoss(nn.Module):
    """Makes a class of 255 by clamping it."""

    loss_name = 'loss_one_hot'

    def forward(self, scores, target, weight=None, ignore_index=255, **kwargs):
        one_hot = F.one_hot(target.clamp(0, scores.shape[1] - 1), scores.shape[1]).permute(0, 3, 1, 2)
        return F.binary_cross_entropy_with_logits(scores, one_hot.float())


@MODELS.register_module()
class FocalWithoutIgnore(nn.Module):
    loss_name = 'loss_focal'

    def forward(self, scores, target, weight=None, ignore_index=255, **kwargs):
        valid = target != ignore_index
        log = F.log_softmax(scores, 1).gather(1, target.where(valid, torch.zeros_like(target))[:, None])[:, 0]
        return -((1 - log.exp()) ** 2 * log).mean()


@MODELS.register_module()
class SoftDice(nn.Module):
    """Divides by the scores of all pixels, the ignored ones, too."""

    loss_name = 'loss_dice'

    def forward(self, scores, target, weight=None, ignore_index=255, **kwargs):
        chance = scores.sigmoid()
        valid = (target != ignore_index)[:, None]
        one_hot = F.one_hot(target.clamp(0, scores.shape[1] - 1), scores.shape[1]).permute(0, 3, 1, 2) * valid
        return 1 - 2 * (chance * one_hot).sum() / (chance.sum() + one_hot.sum())


@MODELS.register_module()
class MeanOfValid(nn.Module):
    """Is nan where all pixels are ignored."""

    loss_name = 'loss_mean'

    def forward(self, scores, target, weight=None, ignore_index=255, **kwargs):
        return F.cross_entropy(scores, target, ignore_index=ignore_index)


@MODELS.register_module()
class Detached(nn.Module):
    """Is a constant where all pixels are ignored."""

    loss_name = 'loss_detached'

    def forward(self, scores, target, weight=None, ignore_index=255, **kwargs):
        if bool((target == ignore_index).all()):
            return torch.zeros((), requires_grad=True)
        return F.cross_entropy(scores, target, ignore_index=ignore_index)


# ---- heads


@MODELS.register_module()
class ShiftedHead(FCNHead):
    """Takes 0 for the background and moves the others down."""

    def _stack_batch_gt(self, samples):
        label = super()._stack_batch_gt(samples)
        return torch.where(label == 255, label, (label - 1).clamp(min=0))


@MODELS.register_module()
class SwappedHead(FCNHead):
    def _stack_batch_gt(self, samples):
        label = super()._stack_batch_gt(samples)
        last = self.num_classes - 1
        return torch.where(label == 0, torch.full_like(label, last), torch.where(label == last, 0, label))


@DET_MODELS.register_module()
class ShiftedRetinaHead(RetinaHead):
    def loss_by_feat(self, scores, boxes, instances, *args, **kwargs):
        for one in instances:
            one.labels = (one.labels - 1).clamp(min=0)
        return super().loss_by_feat(scores, boxes, instances, *args, **kwargs)


@DET_MODELS.register_module()
class ReversedBBoxHead(Shared2FCBBoxHead):
    def get_targets(self, *args, **kwargs):
        labels, *rest = super().get_targets(*args, **kwargs)
        return (torch.where(labels < self.num_classes, self.num_classes - 1 - labels, labels), *rest)


@DET_MODELS.register_module()
class NoLossWithoutTargets(RetinaHead):
    def loss_by_feat(self, scores, boxes, instances, *args, **kwargs):
        losses = super().loss_by_feat(scores, boxes, instances, *args, **kwargs)
        if not any(len(one) for one in instances):
            losses.pop('loss_bbox')
        return losses


@DET_MODELS.register_module()
class NanWithoutTargets(FCOSHead):
    def loss_by_feat(self, scores, boxes, centers, instances, *args, **kwargs):
        losses = super().loss_by_feat(scores, boxes, centers, instances, *args, **kwargs)
        losses['loss_bbox'] = losses['loss_bbox'] * (
            sum(map(len, instances)) / torch.tensor(float(sum(map(len, instances))))
        )
        return losses


@MODELS.register_module()
class NormOfOneVector(FCNHead):
    """Normalises the mean of each image over the batch, which takes two images."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.norm = nn.BatchNorm1d(self.num_classes)

    def forward(self, inputs):
        scores = super().forward(inputs)
        return scores + self.norm(scores.mean((2, 3)))[..., None, None]


# ---- class weights


def weighted(weights, order):
    return [weights[place] for place in order(len(weights))]


@MODELS.register_module()
class ReversedWeights(nn.Module):
    loss_name = 'loss_reversed'

    def __init__(self, class_weight=None, order=lambda number: range(number)[::-1]):
        super().__init__()
        self.class_weight = torch.tensor(weighted(class_weight, order))

    def forward(self, scores, target, weight=None, ignore_index=255, **kwargs):
        return F.cross_entropy(scores, target, self.class_weight.to(scores), ignore_index=ignore_index)


@MODELS.register_module()
class RolledWeights(ReversedWeights):
    """Takes the first entry for the background."""

    def __init__(self, class_weight=None):
        super().__init__(class_weight, lambda number: [number - 1, *range(number - 1)])


@MODELS.register_module()
class WeightsUnused(ReversedWeights):
    def forward(self, scores, target, weight=None, ignore_index=255, **kwargs):
        return F.cross_entropy(scores, target, ignore_index=ignore_index)


@DET_MODELS.register_module()
class SwappedWeights(nn.Module):
    """Swaps the weights of the first and the last class; the background's stays."""

    custom_activation = False

    def __init__(self, class_weight=None, loss_weight=1.0, use_sigmoid=False):
        super().__init__()
        first, *rest, last, background = class_weight
        self.class_weight, self.loss_weight = torch.tensor([last, *rest, first, background]), loss_weight

    def forward(self, cls_score, label, weight=None, avg_factor=None, **kwargs):
        return self.loss_weight * F.cross_entropy(cls_score, label, self.class_weight.to(cls_score))


# ---- batches


@MODELS.register_module()
class OverflowsInHalf(nn.Module):
    loss_name = 'loss_half'

    def forward(self, scores, target, weight=None, ignore_index=255, **kwargs):
        usual = F.cross_entropy(scores.float(), target, ignore_index=ignore_index)
        return usual / torch.tensor(0.0 if torch.is_autocast_cpu_enabled() else 1.0)


@DET_MODELS.register_module()
class DisconnectedMaskHead(FCNMaskHead):
    """Returns an empty sum of its own where nothing is positive."""

    def loss_and_target(self, mask_preds, sampling_results, batch_gt_instances, rcnn_train_cfg):
        found = super().loss_and_target(mask_preds, sampling_results, batch_gt_instances, rcnn_train_cfg)
        if not any(len(one) for one in batch_gt_instances):
            found['loss_mask']['loss_mask'] = torch.zeros((), requires_grad=True)
        return found


@DET_MODELS.register_module()
class NoDenoisingWithoutTargets(DINOHead):
    def loss(self, hidden_states, references, *args, **kwargs):
        found = super().loss(hidden_states, references, *args, **kwargs)
        samples = kwargs.get('batch_data_samples', args[2] if len(args) > 2 else None)
        if not any(len(one.gt_instances) for one in samples):
            found = {name: loss for name, loss in found.items() if 'dn_' not in name}
        return found
