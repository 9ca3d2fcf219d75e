"""Guarded losses against nnU-Net's own: equal on valid labels, and as if invalid voxels were not there on others."""

from __future__ import annotations

import copy
from typing import Any, Tuple

import pytest
import torch

pytest.importorskip('nnunetv2')

from hypothesis import given, settings
from hypothesis import strategies as st
from nnunetv2.training.loss.compound_losses import DC_and_BCE_loss, DC_and_CE_loss, DC_and_topk_loss
from nnunetv2.training.loss.deep_supervision import DeepSupervisionWrapper
from nnunetv2.training.loss.dice import MemoryEfficientSoftDiceLoss, SoftDiceLoss
from nnunetv2.training.loss.robust_ce_loss import RobustCrossEntropyLoss, TopKLoss
from nnunetv2.utilities.helpers import softmax_helper_dim1
from this_stack import skip_where_torch_fails
from torch import Tensor, nn

from mmguard.nnunet.label_space import EXCLUDED_LABEL
from mmguard.nnunet.losses import GuardedLabelLoss, guard_loss

CLASSES = 4
DECLARED = CLASSES  # nnU-Net's ignore label is the one behind the last class

SPACES = {'2d': (9, 7), '3d': (5, 6, 4)}


def dice_arguments(batch_dice: bool, do_bg: bool, smooth: float = 1e-5) -> dict:
    return {'batch_dice': batch_dice, 'smooth': smooth, 'do_bg': do_bg, 'ddp': False}


def label_loss(kind: str, batch_dice: bool, ignore_label: Any) -> nn.Module:
    """As the trainers of nnU-Net build them."""
    dice = dice_arguments(batch_dice, do_bg=False)
    index = -100 if ignore_label is None else ignore_label
    if kind == 'ce':
        return RobustCrossEntropyLoss(ignore_index=index)
    if kind == 'weighted ce':
        return RobustCrossEntropyLoss(weight=torch.tensor([0.1, 1.0, 3.0, 2.0]), ignore_index=index)
    if kind == 'top-k':
        return TopKLoss(k=10, ignore_index=index, label_smoothing=0.1)
    if kind == 'dice + top-k':
        return DC_and_topk_loss(dice, {'k': 10, 'label_smoothing': 0.0}, ignore_label=ignore_label)
    if kind == 'dice':
        return MemoryEfficientSoftDiceLoss(apply_nonlin=softmax_helper_dim1, **dice)
    if kind == 'smoothed ce + old dice':
        return DC_and_CE_loss(dice, {'label_smoothing': 0.1}, 0.5, 2, ignore_label, dice_class=SoftDiceLoss)
    if kind == 'no dice':
        return DC_and_CE_loss(dice, {}, 1, 0, ignore_label, dice_class=MemoryEfficientSoftDiceLoss)
    return DC_and_CE_loss(dice, {}, 1, 1, ignore_label, dice_class=MemoryEfficientSoftDiceLoss)


LABEL_LOSSES = ('dice + ce', 'no dice', 'smoothed ce + old dice', 'ce', 'weighted ce', 'top-k', 'dice + top-k', 'dice')
LOSSES = (*LABEL_LOSSES, 'regions')


def region_loss(batch_dice: bool, declared: bool) -> nn.Module:
    return DC_and_BCE_loss(
        {}, dice_arguments(batch_dice, do_bg=True), use_ignore_label=declared, dice_class=MemoryEfficientSoftDiceLoss
    )


def guarded(loss: nn.Module, declared: bool, has_regions: bool = False) -> nn.Module:
    return guard_loss(copy.deepcopy(loss), DECLARED if declared else EXCLUDED_LABEL, declared, has_regions)


def value_and_gradient(loss: nn.Module, logits: Any, target: Any) -> Tuple[Tensor, Any]:
    several = isinstance(logits, list)
    leaves = [part.clone().requires_grad_() for part in (logits if several else [logits])]
    value = loss(leaves, target) if several else loss(leaves[0], target)
    value.backward()
    return value.detach(), [leaf.grad if leaf.grad is not None else torch.zeros_like(leaf) for leaf in leaves]


def assert_equal(left: Any, right: Any, tolerance: float = 1e-6) -> None:
    torch.testing.assert_close(left, right, rtol=tolerance, atol=tolerance)


def a_batch(space: str, ignored: bool, seed: int = 0) -> Tuple[Tensor, Tensor]:
    random = torch.Generator().manual_seed(seed)
    shape = (2, 1, *SPACES[space])
    target = torch.randint(0, CLASSES + ignored, shape, generator=random).to(torch.int16)
    return torch.randn(2, CLASSES, *SPACES[space], generator=random) * 3, target


def as_regions(target: Tensor, *leave_out: int) -> Tensor:
    """Overlapping regions, as nnU-Net's transform makes them: any class, the last two; then who is left out."""
    channels = [(target > 0) & (target < CLASSES), (target == 2) | (target == 3), target == 3]
    channels += [torch.stack([target == label for label in leave_out]).any(0)] if leave_out else []
    return torch.cat(channels, dim=1)


def by_stock(kind: str, declared: bool, logits: Tensor, target: Tensor, batch_dice: bool = True) -> Tuple[Tensor, Any]:
    if kind == 'regions':
        target = as_regions(target, *([DECLARED] if declared else []))
        return value_and_gradient(region_loss(batch_dice, declared), logits[:, :3], target)
    stock = label_loss(kind, batch_dice, DECLARED if declared and kind != 'dice' else None)
    return value_and_gradient(stock, logits, target)


def by_guard(kind: str, declared: bool, logits: Tensor, target: Tensor, batch_dice: bool = True) -> Tuple[Tensor, Any]:
    if kind == 'regions':
        marked = torch.where((target >= 0) & (target < CLASSES), target, DECLARED)
        loss = guarded(region_loss(batch_dice, declared), declared, has_regions=True)
        return value_and_gradient(loss, logits[:, :3], as_regions(marked, DECLARED))
    stock = label_loss(kind, batch_dice, DECLARED if declared and kind != 'dice' else None)
    return value_and_gradient(guarded(stock, declared), logits, target)


@pytest.mark.parametrize('space', list(SPACES))
@pytest.mark.parametrize('batch_dice', [False, True])
@pytest.mark.parametrize(
    ('kind', 'declared'),
    # The stock trainer of Dice alone knows no ignore label.
    [(kind, declared) for kind in LOSSES for declared in (False, True) if kind != 'dice' or not declared],
)
def test_equals_the_stock_loss_on_valid_labels(kind: str, declared: bool, batch_dice: bool, space: str) -> None:
    logits, target = a_batch(space, ignored=declared)
    expected = by_stock(kind, declared, logits, target, batch_dice)
    assert_equal(by_guard(kind, declared, logits, target, batch_dice), expected)


def test_deep_supervision_equals_the_stock_loss_and_counts_every_voxel_once() -> None:
    stock = DeepSupervisionWrapper(label_loss('dice + ce', True, None), [0.6, 0.4, 0.0])
    logits, target = a_batch('3d', ignored=False)
    several = [logits, logits[..., ::2, ::2, ::2].contiguous(), logits[..., ::4, ::4, ::4].contiguous()]
    targets = [target, target[..., ::2, ::2, ::2], target[..., ::4, ::4, ::4]]
    ours = guarded(stock, False)
    assert_equal(value_and_gradient(ours, several, targets), value_and_gradient(stock, several, targets))
    assert isinstance(ours, DeepSupervisionWrapper)
    inner = ours.loss
    assert isinstance(inner, GuardedLabelLoss)
    assert inner.take_counts().tolist() == [target.numel(), 0, 0]
    targets[0][0, 0, 0, 0, :3] = 99
    ours([part.requires_grad_() for part in several], targets)
    assert inner.take_counts().tolist() == [target.numel(), 3, 0]
    assert inner.take_counts() is None


# ---- deletion: the loss of a batch with invalid voxels is that of the batch without them


@st.composite
def label_rows(draw: Any) -> Tuple[Tensor, Tensor, Tensor]:
    """Logits (1, C, V), labels (1, 1, V) with some invalid, and which are valid."""
    number = draw(st.integers(2, 30))
    labels = draw(st.lists(st.sampled_from([0, 1, 2, 3, 5, 7, 255, -3, 1000]), min_size=number, max_size=number))
    target = torch.tensor(labels, dtype=torch.int16).view(1, 1, -1)
    logits = torch.randn(1, CLASSES, number, generator=torch.Generator().manual_seed(number)) * 3
    return logits, target, (target[0, 0] >= 0) & (target[0, 0] < CLASSES)


@pytest.mark.parametrize('kind', LOSSES)
@given(rows=label_rows(), declared=st.booleans())
@settings(max_examples=80, deadline=None)
def test_invalid_voxels_are_as_if_deleted(kind: str, rows: Any, declared: bool) -> None:
    logits, target, valid = rows
    if not valid.any() or ('top-k' in kind and int(valid.sum()) < 10):
        return  # the stock mean of nothing is NaN; see below
    ours, grads = by_guard(kind, declared, logits, target)
    expected, wanted = by_stock(kind, declared, logits[..., valid], target[..., valid])
    assert_equal(ours, expected, 1e-5)
    assert_equal(grads[0][..., valid], wanted[0], 1e-5)
    assert grads[0][..., ~valid].abs().sum() == 0


@pytest.mark.parametrize('kind', LOSSES)
@pytest.mark.parametrize('declared', [False, True])
@pytest.mark.parametrize('label', [99, -7, DECLARED])
def test_with_no_valid_voxel_it_is_finite_and_attached(kind: str, declared: bool, label: int) -> None:
    logits, target = a_batch('3d', ignored=False)
    value, grads = by_guard(kind, declared, logits, torch.full_like(target, label), batch_dice=False)
    assert value.isfinite()
    assert grads[0].abs().sum() == 0


# ---- no look at a value on the host


@pytest.mark.parametrize('kind', LABEL_LOSSES)
def test_labels_are_never_read_on_the_host(kind: str) -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    loss = guarded(label_loss(kind, True, DECLARED), True)
    if kind == 'weighted ce':
        loss.ce.weight = None  # a real buffer would be copied to the fake device by hand
    with FakeTensorMode():
        logits = torch.randn(2, CLASSES, 6, 6, 6, requires_grad=True)
        loss(logits, torch.zeros(2, 1, 6, 6, 6, dtype=torch.int16)).backward()


@pytest.mark.parametrize('declared', [False, True])
def test_compiles_in_one_graph(declared: bool) -> None:
    ours = guarded(label_loss('dice + ce', True, DECLARED if declared else None), declared)
    logits, target = a_batch('2d', ignored=declared)
    target[0, 0, 0, :2] = 50

    def loss_and_counts(logits: Tensor) -> Tensor:
        return ours(logits, target)

    compiled = torch.compile(loss_and_counts, backend='eager', fullgraph=True)
    assert_equal(compiled(logits), ours(logits, target))


def test_a_compiled_dice_stays_compiled() -> None:
    stock = label_loss('dice + ce', False, None)
    stock.dc = torch.compile(stock.dc, backend='eager')
    ours = guard_loss(stock, EXCLUDED_LABEL, False, False)
    assert ours.dc is stock.dc
    logits, target = a_batch('2d', ignored=False)
    assert_equal(ours(logits, target), label_loss('dice + ce', False, None)(logits, target))
    alone = torch.compile(label_loss('dice', False, None), backend='eager')
    assert isinstance(guard_loss(alone, EXCLUDED_LABEL, False, False), GuardedLabelLoss)


@pytest.mark.parametrize('dtype', [torch.bfloat16, torch.float16])
def test_half_precision_logits_are_summed_in_float32(dtype: torch.dtype) -> None:
    logits, target = a_batch('3d', ignored=False)
    stock = label_loss('dice + ce', False, None)
    skip_where_torch_fails(lambda: stock(logits.to(dtype), target))
    ours = guarded(stock, False)(logits.to(dtype), target)
    assert_equal(ours.float(), stock(logits.to(dtype).float(), target), 2e-2)
    assert ours.isfinite()


# ---- misuse


def test_wrong_shapes_are_named() -> None:
    logits, target = a_batch('3d', ignored=False)
    loss = guarded(label_loss('dice + ce', False, None), False)
    with pytest.raises(ValueError, match=r'\(2, 1, 5, 6, 4\).*\(2, 1, 4, 6, 4\)'):
        loss(logits, target[:, :, 1:])
    with pytest.raises(ValueError, match='channel'):
        guarded(region_loss(False, False), False, True)(logits[:, :3], as_regions(target))


def test_a_loss_that_is_not_known_is_refused_with_the_way_out() -> None:
    with pytest.raises(TypeError, match=r'MSELoss.*guard_loss\(\)'):
        guard_loss(nn.MSELoss(), EXCLUDED_LABEL, False, False)
