"""mmdet's real heads, made small, stock and guarded, and what they are trained on."""

from __future__ import annotations

import copy
from typing import Any, Callable, Dict, List, Optional, Tuple

import torch
from mmdet.registry import MODELS
from mmdet.structures import DetDataSample
from mmdet.structures.mask import BitmapMasks
from mmdet.utils import register_all_modules
from mmengine.config import ConfigDict
from mmengine.structures import InstanceData
from torch import Tensor, nn

from mmguard.losses import CountsLabels

CLASSES = 3
SIZE = 64
INVALID = 7  # above the classes, and no background either
FOCAL = {'type': 'FocalLoss', 'use_sigmoid': True, 'gamma': 2.0, 'alpha': 0.25, 'loss_weight': 1.0}
QUALITY = {'type': 'QualityFocalLoss', 'use_sigmoid': True, 'beta': 2.0, 'loss_weight': 1.0}
L1 = {'type': 'L1Loss', 'loss_weight': 1.0}
#: CrossEntropyLoss is guarded by a class of its own, in its three modes.
OWN_CLASS = {'type': 'GuardedCrossEntropyLoss'}

register_all_modules(init_default_scope=False)


def wrapped(loss: Dict[str, Any]) -> Dict[str, Any]:
    """The edit of a user, as ``_base_`` inheritance merges it."""
    edit = OWN_CLASS if loss['type'] == 'CrossEntropyLoss' else {'type': 'GuardedLoss', 'loss': loss['type']}
    return {**loss, **edit}


def samples(labels: Tuple[Tuple[int, ...], ...] = ((0, 2), (1, 1, 0)), masks: bool = False) -> List[DetDataSample]:
    generator = torch.Generator().manual_seed(0)
    made = []
    for row in labels:
        corner = torch.randint(0, 28, (len(row), 2), generator=generator).float()
        extent = torch.randint(14, 32, (len(row), 2), generator=generator).float()
        instances = InstanceData(bboxes=torch.cat([corner, corner + extent], 1), labels=torch.tensor(row).long())
        if masks:
            instances.masks = BitmapMasks([torch.ones(SIZE, SIZE).byte().numpy() for _ in row], SIZE, SIZE)
        shape = {'img_shape': (SIZE, SIZE), 'pad_shape': (SIZE, SIZE), 'batch_input_shape': (SIZE, SIZE)}
        made.append(DetDataSample(gt_instances=instances, metainfo={**shape, 'scale_factor': (1.0, 1.0)}))
    return made


def data_for(name: str, unusual: Optional[int] = None) -> List[DetDataSample]:
    """Clean labels, or one box of an ``unusual`` one."""
    data = samples(((0, 2 if unusual is None else unusual), (1, 1, 0)), masks='Shared' in name)
    for sample in data if 'RPN' in name else []:  # the detectors give it objects of one class
        label = sample.gt_instances.labels
        sample.gt_instances.labels = label.masked_fill(label < CLASSES, 0).masked_fill(label == CLASSES, 1)
    return data


def features(strides: Tuple[int, ...] = (8, 16)) -> List[Tensor]:
    generator = torch.Generator().manual_seed(1)
    return [torch.randn(2, 8, SIZE // stride, SIZE // stride, generator=generator) for stride in strides]


ANCHORS = {
    'type': 'AnchorGenerator',
    'octave_base_scale': 4,
    'scales_per_octave': 1,
    'strides': [8, 16],
    'ratios': [1.0],
}
DENSE = {'num_classes': CLASSES, 'in_channels': 8, 'feat_channels': 8, 'stacked_convs': 1}
MAX_IOU = {'type': 'MaxIoUAssigner', 'pos_iou_thr': 0.4, 'neg_iou_thr': 0.3, 'min_pos_iou': 0.0, 'ignore_iof_thr': -1}


def retina(loss: Dict[str, Any]) -> nn.Module:
    assigner = {'assigner': MAX_IOU, 'sampler': {'type': 'PseudoSampler'}, 'allowed_border': -1, 'pos_weight': -1}
    config = {**DENSE, 'anchor_generator': ANCHORS, 'loss_cls': loss, 'loss_bbox': L1, 'train_cfg': assigner}
    return MODELS.build(ConfigDict(type='RetinaHead', **config))


def gfl(loss: Dict[str, Any]) -> nn.Module:
    anchors = {**ANCHORS, 'octave_base_scale': 4}
    assigner = {'assigner': {'type': 'ATSSAssigner', 'topk': 4}, 'allowed_border': -1, 'pos_weight': -1}
    norm = {'type': 'GN', 'num_groups': 2}
    bbox = {'type': 'GIoULoss', 'loss_weight': 2.0}
    config = {**DENSE, 'anchor_generator': anchors, 'loss_cls': loss, 'loss_bbox': bbox, 'train_cfg': assigner}
    return MODELS.build(ConfigDict(type='GFLHead', norm_cfg=norm, **config))


def fcos(loss: Dict[str, Any]) -> nn.Module:
    config = {**DENSE, 'strides': [8, 16], 'regress_ranges': ((-1, 32), (32, 1e8)), 'loss_cls': loss}
    return MODELS.build(ConfigDict(type='FCOSHead', norm_cfg={'type': 'GN', 'num_groups': 2}, **config))


def rpn(loss: Dict[str, Any]) -> nn.Module:
    sampler = {
        'type': 'RandomSampler',
        'num': 4096,
        'pos_fraction': 0.5,
        'neg_pos_ub': -1,
        'add_gt_as_proposals': False,
    }
    train = {'assigner': MAX_IOU, 'sampler': sampler, 'allowed_border': -1, 'pos_weight': -1}
    anchors = {'type': 'AnchorGenerator', 'scales': [4], 'ratios': [1.0], 'strides': [8, 16]}
    config = {'in_channels': 8, 'feat_channels': 8, 'anchor_generator': anchors, 'loss_cls': loss, 'loss_bbox': L1}
    return MODELS.build(ConfigDict(type='RPNHead', train_cfg=train, **config))


def dense_losses(head: nn.Module, data: List[DetDataSample]) -> Tuple[Dict[str, Any], List[Tensor]]:
    leaves = [feature.requires_grad_() for feature in features()]
    return head.loss(leaves, data), leaves


def roi(bbox: Dict[str, Any], mask: Dict[str, Any]) -> nn.Module:
    extractor = {
        'type': 'SingleRoIExtractor',
        'roi_layer': {'type': 'RoIAlign', 'output_size': 3, 'sampling_ratio': 0},
        'out_channels': 8,
        'featmap_strides': [8, 16],
    }
    assigner = {'type': 'MaxIoUAssigner', 'pos_iou_thr': 0.5, 'neg_iou_thr': 0.5, 'min_pos_iou': 0.5}
    sampler = {'type': 'RandomSampler', 'num': 512, 'pos_fraction': 0.5, 'neg_pos_ub': -1, 'add_gt_as_proposals': True}
    bbox_head = {
        'type': 'Shared2FCBBoxHead',
        'in_channels': 8,
        'fc_out_channels': 16,
        'roi_feat_size': 3,
        'num_classes': CLASSES,
        'loss_cls': bbox,
        'loss_bbox': L1,
    }
    mask_head = {
        'type': 'FCNMaskHead',
        'num_convs': 1,
        'in_channels': 8,
        'conv_out_channels': 8,
        'num_classes': CLASSES,
        'loss_mask': mask,
    }
    return MODELS.build(
        ConfigDict(
            type='StandardRoIHead',
            bbox_roi_extractor=extractor,
            bbox_head=bbox_head,
            mask_roi_extractor=extractor,
            mask_head=mask_head,
            train_cfg={'assigner': assigner, 'sampler': sampler, 'mask_size': 6, 'pos_weight': -1, 'debug': False},
        )
    )


def roi_losses(head: nn.Module, data: List[DetDataSample]) -> Tuple[Dict[str, Any], List[Tensor]]:
    leaves = [feature.requires_grad_() for feature in features()]
    proposals = []
    for sample in data:
        jitter = torch.tensor([[0.0, 0, 0, 0], [2, 1, -1, 2], [20, 20, 25, 25]])
        proposals.append(InstanceData(bboxes=(sample.gt_instances.bboxes[:, None] + jitter).reshape(-1, 4)))
        proposals[-1].scores = torch.ones(len(proposals[-1]))
    return head.loss(leaves, proposals, data), leaves


def detr(loss: Dict[str, Any]) -> nn.Module:
    costs = [{'type': 'FocalLossCost', 'weight': 2.0}, {'type': 'BBoxL1Cost', 'weight': 5.0, 'box_format': 'xywh'}]
    train = {'assigner': {'type': 'HungarianAssigner', 'match_costs': costs}}
    return MODELS.build(
        ConfigDict(type='DETRHead', num_classes=CLASSES, embed_dims=8, num_reg_fcs=2, loss_cls=loss, train_cfg=train)
    )


def detr_losses(head: nn.Module, data: List[DetDataSample]) -> Tuple[Dict[str, Any], List[Tensor]]:
    states = torch.randn(2, 2, 10, 8, generator=torch.Generator().manual_seed(2)).requires_grad_()
    return head.loss(states, data), [states]


MASK = {'type': 'CrossEntropyLoss', 'use_mask': True, 'loss_weight': 1.0}
Run = Callable[[nn.Module, List[DetDataSample]], Tuple[Dict[str, Any], List[Tensor]]]


def roi_with(loss: Dict[str, Any]) -> Callable[[Callable[[Dict[str, Any]], Dict[str, Any]]], nn.Module]:
    return lambda change: roi(change(loss), change(MASK))


#: name -> (builds the head with a change to its losses, runs it)
HEADS: Dict[str, Tuple[Callable[[Callable[[Dict[str, Any]], Dict[str, Any]]], nn.Module], Run]] = {
    'RetinaHead, FocalLoss': (lambda change: retina(change(FOCAL)), dense_losses),
    'RetinaHead, GHMC': (
        lambda change: retina(change({'type': 'GHMC', 'bins': 5, 'momentum': 0.75, 'use_sigmoid': True})),
        dense_losses,
    ),
    'GFLHead, QualityFocalLoss': (lambda change: gfl(change(QUALITY)), dense_losses),
    'FCOSHead, FocalLoss': (lambda change: fcos(change(FOCAL)), dense_losses),
    'FCOSHead, FocalCustomLoss': (
        lambda change: fcos(change({'type': 'FocalCustomLoss', 'use_sigmoid': True, 'num_classes': CLASSES})),
        dense_losses,
    ),
    'RPNHead, sigmoid': (
        lambda change: rpn(change({'type': 'CrossEntropyLoss', 'use_sigmoid': True, 'loss_weight': 1.0})),
        dense_losses,
    ),
    'Shared2FCBBoxHead, softmax': (roi_with({'type': 'CrossEntropyLoss', 'use_sigmoid': False}), roi_losses),
    'Shared2FCBBoxHead, SeesawLoss': (roi_with({'type': 'SeesawLoss', 'num_classes': CLASSES}), roi_losses),
    'Shared2FCBBoxHead, EQLV2Loss': (roi_with({'type': 'EQLV2Loss', 'num_classes': CLASSES}), roi_losses),
    'Shared2FCBBoxHead, CrossEntropyCustomLoss': (
        roi_with({'type': 'CrossEntropyCustomLoss', 'num_classes': CLASSES}),
        roi_losses,
    ),
    'DETRHead, QualityFocalLoss': (lambda change: detr(change(QUALITY)), detr_losses),
    'DETRHead, FocalLoss': (lambda change: detr(change(FOCAL)), detr_losses),
}


def pair_of(name: str) -> Tuple[nn.Module, nn.Module]:
    """The stock head and the guarded one, with the same weights."""
    build, _ = HEADS[name]
    torch.manual_seed(0)
    bare, guarded = build(lambda loss: dict(loss)), build(wrapped)
    with torch.no_grad():
        for parameter in bare.parameters():
            parameter.copy_(0.3 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(3)))
    guarded.load_state_dict(bare.state_dict(), strict=True)
    return bare, guarded


def flat(losses: Dict[str, Any]) -> Dict[str, Tensor]:
    """One entry per tensor; some heads give a list with one loss per level."""
    parts = {}
    for name, value in losses.items():
        for number, part in enumerate(value if isinstance(value, (list, tuple)) else [value]):
            parts[f'{name}.{number}'] = part
    return parts


def trained(head: nn.Module, name: str, data: List[DetDataSample]) -> Tuple[Dict[str, Tensor], List[Tensor]]:
    """Losses, and the gradients of features and weights."""
    torch.manual_seed(5)
    losses, leaves = HEADS[name][1](head, copy.deepcopy(data))
    parts = flat(losses)
    sum(part.sum() for what, part in parts.items() if 'loss' in what).backward()
    weights = [parameter.grad for parameter in head.parameters()]
    assert all(grad is not None for grad in weights), 'DDP would wait for a parameter without gradient'
    return parts, [leaf.grad for leaf in leaves] + weights


def counts_of(head: nn.Module) -> List[int]:
    taken = [module.take_counts() for module in head.modules() if isinstance(module, CountsLabels)]
    return sum(counts for counts in taken if counts is not None).tolist()


class Calls:
    """Records what a head hands to its classification loss."""

    def __init__(self, loss: nn.Module) -> None:
        self.seen: List[Tuple[Tuple[Any, ...], Dict[str, Any], Any]] = []
        loss.register_forward_hook(self._note, with_kwargs=True)

    def _note(self, module: nn.Module, args: Any, kwargs: Any, result: Any) -> None:
        self.seen.append((args, kwargs, result))
