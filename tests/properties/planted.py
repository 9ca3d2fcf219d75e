"""Data sets, steps and metrics of a user's own: each breaks one property; losses and heads are in planted_models."""

from __future__ import annotations

import time

import numpy as np
import planted_models  # noqa: F401  configs import this module only
import torch
from mmcv.transforms import BaseTransform
from mmdet.registry import TRANSFORMS as DET_TRANSFORMS
from mmengine.registry import TRANSFORMS
from mmseg.datasets.transforms import LoadAnnotations
from mmseg.evaluation import IoUMetric
from mmseg.registry import METRICS

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


@DET_TRANSFORMS.register_module()
class FlipBoxesOnly(BaseTransform):
    def transform(self, results):
        results['gt_bboxes'].flip_(results['img'].shape[:2], 'horizontal')
        return results


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
