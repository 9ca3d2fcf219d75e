"""guard_targets on CUDA tensors: the same decisions, on the device."""

from __future__ import annotations

from typing import Any, Dict, List

import pytest
import torch
from torch import Tensor

from mmguard.detection import guard_batch

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason='needs a CUDA device')


def batch_on(device: str) -> Any:
    corner = torch.tensor([[1.0, 2], [3, 4], [90, 90], [5, 5]])
    boxes = torch.cat([corner, corner + 9], 1)
    targets: List[Dict[str, Tensor]] = []
    for labels in ([1, 600, 2, 3], [600, 601, 602, -1], [0, 1, 0, 4]):
        one = {
            'boxes': boxes,
            'labels': torch.tensor(labels),
            'masks': torch.rand(4, 8, 8),
            'image_id': torch.tensor([7]),
        }
        targets.append({key: value.to(device) for key, value in one.items()})
    return [torch.zeros(3, 64, 64, device=device)] * 3, targets


def test_they_are_sanitized_as_on_the_host_and_stay_where_they_are() -> None:
    torch.manual_seed(0)
    on_host = guard_batch(*batch_on('cpu'), 5, box_format='xyxy', return_tally=True)
    torch.manual_seed(0)
    images, targets, tallies = guard_batch(*batch_on('cuda'), 5, box_format='xyxy', return_tally=True)
    assert len(images) == len(on_host[0]) == 2
    assert tallies == on_host[2]
    for there, here in zip(targets, on_host[1]):
        for key, value in there.items():
            assert value.device.type == 'cuda'
            assert torch.equal(value.cpu(), here[key])


def test_clean_ones_are_the_same_objects() -> None:
    images, targets = batch_on('cuda')
    clean = targets[2:]
    assert guard_batch(images[2:], clean, 5)[1] is clean
