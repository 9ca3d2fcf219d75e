"""Errors of torchvision and transformers, each made by the code that fails."""

from __future__ import annotations

from typing import Any, Callable

import pytest
import torch
from explained_logs import check_known
from torchvision.models.detection import fasterrcnn_mobilenet_v3_large_320_fpn
from transformers import SegformerConfig, SegformerForSemanticSegmentation
from transformers.loss.loss_for_object_detection import HungarianMatcher, generalized_box_iou


def train_torchvision(boxes: torch.Tensor, *labels: int) -> None:
    model = fasterrcnn_mobilenet_v3_large_320_fpn(weights=None, weights_backbone=None, num_classes=2)
    model.train()([torch.rand(3, 32, 32)], [dict(boxes=boxes, labels=torch.tensor(labels, dtype=torch.long))])


def match_category_ids() -> None:
    outputs = dict(logits=torch.rand(1, 3, 3), pred_boxes=torch.rand(1, 3, 4))
    HungarianMatcher()(outputs, [dict(class_labels=torch.tensor([5]), boxes=torch.rand(1, 4))])


def train_segformer() -> None:
    small = dict(depths=[1] * 4, hidden_sizes=[8] * 4, num_attention_heads=[1] * 4, decoder_hidden_size=8)
    model = SegformerForSemanticSegmentation(SegformerConfig(num_labels=3, **small))
    model(torch.rand(1, 3, 64, 64), labels=torch.full((1, 64, 64), 77))


@pytest.mark.parametrize(
    ('code', 'first', 'call'),
    [
        ('MG480', 'MG109', lambda: train_torchvision(torch.tensor([[1.0, 1.0, 1.0, 5.0]]), 1)),  # without height
        ('MG480', 'empty-shape', lambda: train_torchvision(torch.zeros(0))),
        ('MG445', '', lambda: generalized_box_iou(torch.full((2, 4), float('nan')), torch.rand(2, 4))),
        ('MG416', 'MG138', match_category_ids),
        ('MG413', '', train_segformer),
    ],
)
def test_the_error_is_known(code: str, first: str, call: Callable[[], Any]) -> None:
    check_known(code, first, call)
