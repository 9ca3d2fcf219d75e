"""Faults of a user's own classes: each breaks one property."""

from __future__ import annotations

import os.path as osp
import time

import numpy as np
import torch
import torch.nn.functional as F
from mmcv.transforms import BaseTransform
from mmdet.models import DINOHead, FCNMaskHead, FCOSHead, RetinaHead, Shared2FCBBoxHead
from mmdet.registry import MODELS as DET_MODELS
from mmdet.registry import TRANSFORMS as DET_TRANSFORMS
from mmengine.dataset import BaseDataset
from mmengine.registry import DATASETS, TRANSFORMS
from mmseg.datasets.transforms import LoadAnnotations
from mmseg.evaluation import IoUMetric
from mmseg.models import FCNHead
from mmseg.registry import METRICS, MODELS
from torch import nn

# ---- image and label move together


@TRANSFORMS.register_module()
class FlipImageOnly(BaseTransform):
    def transform(self, results):
        results['img'] = np.ascontiguousarray(results['img'][:, ::-1])
        return results


@TRANSFORMS.register_module()
class ShiftImage(BaseTransform):
    def __init__(self, pixels=12):
        self.pixels = pixels

    def transform(self, results):
        results['img'] = np.roll(results['img'], self.pixels, axis=1)
        return results


@TRANSFORMS.register_module()
class RotateLabel(BaseTransform):
    def transform(self, results):
        results['gt_seg_map'] = np.ascontiguousarray(results['gt_seg_map'][::-1, ::-1])
        return results


@TRANSFORMS.register_module()
class BlurLabel(BaseTransform):
    """Halves the label map and brings it back with a bilinear interpolation."""

    def transform(self, results):
        import cv2

        label = results['gt_seg_map']
        small = cv2.resize(label, (label.shape[1] // 3, label.shape[0] // 3), interpolation=cv2.INTER_LINEAR)
        results['gt_seg_map'] = cv2.resize(small, label.shape[::-1], interpolation=cv2.INTER_LINEAR)
        return results


@TRANSFORMS.register_module()
class CropImageOnly(BaseTransform):
    """Crops the image to its middle and brings it back to its size; boxes stay."""

    def transform(self, results):
        import cv2

        height, width = results['img'].shape[:2]
        crop = results['img'][height // 8 : -(height // 8), width // 8 : -(width // 8)]
        results['img'] = cv2.resize(crop, (width, height))
        return results


@DATASETS.register_module()
class PersonSet(BaseDataset):
    """Persons with keypoints, as of COCO, without a pipeline of mmdet."""

    def load_data_list(self):
        points = [[[20.0 + 4 * number, 30.0 + number, 2.0] for number in range(17)]]
        instances = [dict(bbox=[10, 10, 90, 60], bbox_label=0, keypoints=points)]
        return [dict(img_path=osp.join(self.data_root, 'img', f'{n}.png'), instances=instances) for n in range(3)]


@TRANSFORMS.register_module()
class FlipPointsOnly(BaseTransform):
    def transform(self, results):
        results['gt_keypoints'][..., 0] = results['img'].shape[1] - results['gt_keypoints'][..., 0]
        return results


# ---- every sample survives


@TRANSFORMS.register_module()
class KeepLarge(BaseTransform):
    """Leaves no sample whose number is odd."""

    def transform(self, results):
        return results if results['sample_idx'] % 2 == 0 else None


@TRANSFORMS.register_module()
class FailsOnSome(BaseTransform):
    def transform(self, results):
        if results['sample_idx'] == 3:
            raise ZeroDivisionError('no area')
        return results


@TRANSFORMS.register_module()
class AlwaysTheFirst(BaseTransform):
    first = None

    def transform(self, results):
        if AlwaysTheFirst.first is None:
            AlwaysTheFirst.first = results['img_path'], results.get('img_id')
        results['img_path'], number = AlwaysTheFirst.first
        if number is not None:
            results['img_id'] = number
        return results


# ---- training and validation see the same labels


@TRANSFORMS.register_module()
class MapLabels(LoadAnnotations):
    """Joins classes when it loads them."""

    def _load_seg_map(self, results):
        super()._load_seg_map(results)
        results['gt_seg_map'] = np.where(results['gt_seg_map'] == 1, 0, results['gt_seg_map']).astype(np.uint8)


@TRANSFORMS.register_module()
class ShiftLabels(BaseTransform):
    def transform(self, results):
        label = results['gt_seg_map'].astype(np.int64)
        results['gt_seg_map'] = np.where(label == 255, 255, np.maximum(label - 1, 0)).astype(np.uint8)
        return results


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


# ---- metrics


@METRICS.register_module()
class MetricWithItsOwnShift(IoUMetric):
    def process(self, batch, samples):
        for sample in samples:
            data = sample['gt_sem_seg']['data']
            sample['gt_sem_seg']['data'] = torch.where(data == 255, data, (data + 1) % 19)
        super().process(batch, samples)


@METRICS.register_module()
class Sleeps(IoUMetric):
    """Takes its time, or the processor's."""

    def __init__(self, busy, **kwargs):
        super().__init__(**kwargs)
        self.busy = busy

    def process(self, batch, samples):
        while True:
            time.sleep(0 if self.busy else 1)


@METRICS.register_module()
class MetricWithoutIgnore(IoUMetric):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.ignore_index = 254


@DET_TRANSFORMS.register_module()
class FlipBoxesOnly(BaseTransform):
    def transform(self, results):
        results['gt_bboxes'].flip_(results['img'].shape[:2], 'horizontal')
        return results


# ---- class weights and averages


def weighted(weights, order):
    """Return class weights in another order."""
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


@MODELS.register_module()
class AverageOfAll(nn.Module):
    """Says that it leaves ignored pixels out of its average, and does not."""

    loss_name = 'loss_average'

    def __init__(self, avg_non_ignore=True):
        super().__init__()
        self.avg_non_ignore = avg_non_ignore

    def forward(self, scores, target, weight=None, ignore_index=255, **kwargs):
        return F.cross_entropy(scores, target, ignore_index=ignore_index, reduction='none').mean()


@MODELS.register_module()
class SumOverSize(AverageOfAll):
    def forward(self, scores, target, weight=None, ignore_index=255, **kwargs):
        return F.cross_entropy(scores, target, ignore_index=ignore_index, reduction='sum') / target.numel()


# ---- ignored boxes


@DET_MODELS.register_module()
class ForgetsIgnored(RetinaHead):
    def loss_by_feat(self, scores, boxes, instances, metas, ignored=None):
        return super().loss_by_feat(scores, boxes, instances, metas, None)


@DET_MODELS.register_module()
class IgnoredAsBackground(RetinaHead):
    """Gives anchors that were neither positive nor negative the weight of the background."""

    def get_targets(self, *args, **kwargs):
        labels, weights, *rest = super().get_targets(*args, **kwargs)
        return (labels, [torch.ones_like(one) for one in weights], *rest)


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


# ---- learning


@MODELS.register_module()
class DetachedHead(FCNHead):
    """Trains nothing but a bias that all classes share."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.shared = nn.Parameter(torch.zeros(()))

    def forward(self, inputs):
        return super().forward([one.detach() for one in inputs]).detach() + self.shared


@MODELS.register_module()
class RandomTargets(FCNHead):
    def _stack_batch_gt(self, samples):
        label = super()._stack_batch_gt(samples)
        return torch.randint_like(label, self.num_classes)


@MODELS.register_module()
class Climbs(nn.Module):
    """Has the sign of a score, not of a loss."""

    loss_name = 'loss_climbs'

    def forward(self, scores, target, weight=None, ignore_index=255, **kwargs):
        return F.log_softmax(scores, 1).gather(1, target[:, None]).mean()


# ---- metrics and steps of reports


@METRICS.register_module()
class MapsAgain(IoUMetric):
    """Applies a map that was applied when the label was loaded."""

    def __init__(self, label_map, **kwargs):
        super().__init__(**kwargs)
        self.label_map = label_map

    def process(self, batch, samples):
        for sample in samples:
            data = sample['gt_sem_seg']['data']
            sample['gt_sem_seg']['data'] = torch.as_tensor(np.vectorize(lambda v: self.label_map.get(v, v))(data))
        super().process(batch, samples)


@METRICS.register_module()
class NamesOfItsOwn(IoUMetric):
    def __init__(self, class_names, **kwargs):
        super().__init__(**kwargs)
        self.class_names = class_names


@TRANSFORMS.register_module()
class FlipsByKeymap(BaseTransform):
    """Flips what its key map names, as Albu does: what is missing in it stays as it was."""

    def __init__(self, keymap):
        self.keymap = keymap

    def transform(self, results):
        for key in set(self.keymap) & set(results):
            results[key] = np.ascontiguousarray(results[key][:, ::-1])
        return results
