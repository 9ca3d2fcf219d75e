"""Models of transformers, made small: random weights of tiny configs, nothing is downloaded."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Tuple

import torch
from torch import Tensor, nn
from transformers import (
    DetrConfig,
    DetrForObjectDetection,
    Mask2FormerConfig,
    Mask2FormerForUniversalSegmentation,
    ResNetConfig,
    RTDetrConfig,
    RTDetrForObjectDetection,
    RTDetrResNetConfig,
    SegformerConfig,
    SegformerForSemanticSegmentation,
    SwinConfig,
)

NUM_CLASSES, SIZE = 5, 64

Targets = List[Dict[str, Tensor]]

_RESNET = dict(embedding_size=8, hidden_sizes=[8, 16, 16, 16], depths=[1, 1, 1, 1], layer_type='basic')
_ATTENTION = dict(
    d_model=16,
    num_queries=6,
    encoder_ffn_dim=32,
    decoder_ffn_dim=32,
    encoder_layers=1,
    decoder_layers=2,
    encoder_attention_heads=2,
    decoder_attention_heads=2,
)
_NO_TIMM = dict(backbone=None, use_timm_backbone=False, use_pretrained_backbone=False)


def rt_detr() -> nn.Module:
    config = RTDetrConfig(
        backbone_config=RTDetrResNetConfig(out_features=['stage2', 'stage3', 'stage4'], **_RESNET),
        encoder_hidden_dim=16,
        encoder_in_channels=[16, 16, 16],
        decoder_in_channels=[16, 16, 16],
        num_denoising=4,
        num_labels=NUM_CLASSES,
        **_ATTENTION,
        **_NO_TIMM,
    )
    return RTDetrForObjectDetection(config)


def detr() -> nn.Module:
    backbone = ResNetConfig(out_features=['stage4'], **_RESNET)
    config = DetrConfig(backbone_config=backbone, num_labels=NUM_CLASSES, auxiliary_loss=True, **_ATTENTION, **_NO_TIMM)
    return DetrForObjectDetection(config)


def mask2former() -> nn.Module:
    stages = ['stage1', 'stage2', 'stage3', 'stage4']
    backbone = SwinConfig(
        image_size=SIZE, embed_dim=8, depths=[1, 1, 1, 1], num_heads=[1, 1, 1, 1], window_size=2, out_features=stages
    )
    config = Mask2FormerConfig(
        backbone_config=backbone,
        num_labels=NUM_CLASSES,
        feature_size=32,
        mask_feature_size=32,
        hidden_dim=32,
        encoder_feedforward_dim=32,
        dim_feedforward=32,
        encoder_layers=1,
        decoder_layers=3,
        num_attention_heads=2,
        num_queries=6,
        train_num_points=64,
    )
    return Mask2FormerForUniversalSegmentation(config)


def segformer() -> nn.Module:
    config = SegformerConfig(
        num_labels=NUM_CLASSES,
        depths=[1, 1, 1, 1],
        hidden_sizes=[8, 8, 16, 16],
        num_attention_heads=[1, 1, 1, 1],
        decoder_hidden_size=16,
    )
    return SegformerForSemanticSegmentation(config)


#: What takes instances as targets.
DETECTORS: Dict[str, Callable[[], nn.Module]] = {'RT-DETR': rt_detr, 'DETR': detr, 'Mask2Former': mask2former}


def batch(*labels: List[int], seed: int = 0) -> Tuple[Tensor, Targets]:
    """One image per list, with one instance per label."""
    generator = torch.Generator().manual_seed(seed)
    pixels = torch.rand(len(labels), 3, SIZE, SIZE, generator=generator)
    targets = [
        {
            'class_labels': torch.tensor(one, dtype=torch.int64),
            'boxes': torch.rand(len(one), 4, generator=generator) * 0.4 + 0.3,
            'masks': (torch.rand(len(one), SIZE, SIZE, generator=generator) < 0.5).float(),
        }
        for one in labels
    ]
    return pixels, targets


def outputs_of(model: nn.Module, pixels: Tensor, targets: Targets) -> Any:
    """The model's own losses. Mask2Former takes masks and labels apart, the others take the dicts."""
    if 'Mask2Former' in type(getattr(model, 'module', model)).__name__:
        masks, labels = ([target[key] for target in targets] for key in ('masks', 'class_labels'))
        return model(pixel_values=pixels, mask_labels=masks, class_labels=labels)
    return model(pixel_values=pixels, labels=targets)
