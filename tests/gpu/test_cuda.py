"""What only a GPU can show. The suite passes without one."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List

import pytest
import torch
from mmseg.registry import MODELS
from torch import Tensor

import mmguard
from mmguard.detection import guard_batch
from mmguard.losses import mmdet as det_losses

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason='needs a CUDA device')
MODES: Dict[str, Dict[str, Any]] = {
    'softmax': dict(class_weight=[1.0, 2.0, 3.0]),
    'softmax over all': dict(avg_non_ignore=False),
    'sigmoid': dict(use_sigmoid=True, avg_non_ignore=True),
    'clip': dict(on_invalid='clip'),
}


@pytest.fixture
def no_synchronisation() -> Iterator[None]:
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode('error')
    yield
    torch.cuda.set_sync_debug_mode('default')


def scores_and_labels() -> Any:
    torch.manual_seed(0)
    scores = torch.randn(2, 3, 8, 8, device='cuda', requires_grad=True)
    label = torch.randint(0, 3, (2, 8, 8), device='cuda')
    label[0, :2] = 255
    label[1, 3] = 10**6
    label[1, 4] = -7
    return scores, label


@pytest.mark.parametrize('scope', [mmguard, det_losses], ids=['mmseg', 'mmdet'])
@pytest.mark.parametrize('mode', MODES)
def test_forward_and_backward_wait_for_nothing_and_equal_the_cpu(
    scope: Any, mode: str, request: pytest.FixtureRequest
) -> None:
    loss = scope.GuardedCrossEntropyLoss(**MODES[mode]).cuda()
    scores, label = scores_and_labels()
    request.getfixturevalue('no_synchronisation')
    for avg_factor in (None, torch.full((), 50.0, device='cuda')):
        loss(scores, label, avg_factor=avg_factor, ignore_index=255).backward()
    torch.cuda.set_sync_debug_mode('default')
    torch.cuda.synchronize()  # a device-side assert would surface here
    assert loss.take_counts().tolist() == ([256, 0, 32] if mode == 'clip' else [256, 32, 0])
    on_cpu = scores.detach().cpu().requires_grad_()
    reference = scope.GuardedCrossEntropyLoss(**MODES[mode])
    for number in (None, 50.0):
        reference(on_cpu, label.cpu(), avg_factor=number, ignore_index=255).backward()
    assert torch.allclose(scores.grad.cpu(), on_cpu.grad, atol=1e-6)


def test_mask_mode_waits_for_nothing(no_synchronisation: None) -> None:
    loss = mmguard.GuardedCrossEntropyLoss(use_mask=True).cuda()
    scores = torch.zeros(3, 2, 4, 4, device='cuda', requires_grad=True)
    label = torch.arange(3, device='cuda') * 40  # 0, 40, 80
    loss(scores, torch.ones(3, 4, 4, device='cuda'), label).sum().backward()
    torch.cuda.set_sync_debug_mode('default')
    assert loss.take_counts().tolist() == [3, 2, 0]
    assert scores.grad[1:].abs().sum() == 0


def test_focal_loss_takes_class_indices_on_cuda_and_one_hot_rows_off_it() -> None:
    scores, label = scores_and_labels()
    guarded = MODELS.build(dict(type='GuardedLoss', loss=dict(type='mmseg.FocalLoss')))
    on_cuda = guarded(scores, label)
    off_cuda = guarded(scores.detach().cpu(), label.cpu())
    assert on_cuda.item() == pytest.approx(off_cuda.item(), rel=1e-5)


def test_the_focal_loss_of_mmcv_stops_above_the_background_and_is_known() -> None:
    """Its kernel looks for the largest label only: -1 trains as background."""
    from mmcv.ops import sigmoid_focal_loss

    scores = torch.zeros(2, 3, device='cuda')
    assert sigmoid_focal_loss(scores, torch.tensor([3, -1], device='cuda'), 2.0, 0.25, None, 'none').isfinite().all()
    with pytest.raises(RuntimeError, match='num_classes') as raised:
        sigmoid_focal_loss(scores, torch.tensor([3, 4], device='cuda'))
    assert mmguard.explain(f'RuntimeError: {raised.value}').findings[0].code == 'MG407'
    guarded = MODELS.build(dict(type='mmdet.GuardedFocalLoss', use_sigmoid=True))
    assert guarded(scores, torch.tensor([3, 4], device='cuda')).isfinite()


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
