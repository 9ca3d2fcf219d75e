"""What GuardedLoss refuses, what it hands through, and how it is built."""

from __future__ import annotations

import copy
from typing import Any

import mmdet.models.losses
import mmdet.registry
import mmengine.registry
import mmseg.registry
import pytest
import torch
from loss_cases import assert_equal
from loss_checks import value_and_grad
from mmengine.registry import DefaultScope
from mmseg.models.losses import FocalLoss, OhemCrossEntropy
from mmseg.models.losses.kldiv_loss import KLDivLoss
from torch import Tensor, nn
from wrapped_cases import batch

from mmguard.losses.mmseg import GuardedLoss


class NoIgnore(nn.Module):
    def forward(self, pred: Tensor, label: Tensor) -> Tensor:
        return pred.sum()


class MeanOverNothing(nn.Module):
    """A loss as people write them: the mean over no pixel is NaN, and so is its gradient."""

    ignore_index = 255

    def forward(self, pred: Tensor, label: Tensor) -> Tensor:
        mask = (label != self.ignore_index).float()
        label = label.masked_fill(label == self.ignore_index, 0)
        loss = nn.functional.cross_entropy(pred, label, reduction='none')
        return (loss * mask).sum() / mask.sum()


class ByArgument(nn.Module):
    """Its ignore value comes with the call."""

    def forward(self, pred: Tensor, label: Tensor, ignore_index: int = 255) -> Tensor:
        return nn.functional.cross_entropy(pred, label, ignore_index=ignore_index)


REFUSED = {
    'mmseg.CrossEntropyLoss': {'type': 'CrossEntropyLoss'},
    'mmdet.CrossEntropyLoss': {'type': 'mmdet.CrossEntropyLoss'},
    'use_mask=True': {'type': 'mmdet.CrossEntropyCustomLoss', 'num_classes': 3, 'use_mask': True},
    'mmdet.L1Loss': {'type': 'mmdet.L1Loss'},
    'mmdet.L2Loss': {'type': 'mmdet.L2Loss'},
    'mmdet.TripletLoss': {'type': 'mmdet.TripletLoss'},
    'GuardSegLabels': {'type': 'HuasdorffDisstanceLoss'},
    'KLDivLoss': KLDivLoss(),
    'SiLogLoss': {'type': 'SiLogLoss'},
    'NoIgnore': NoIgnore(),
}


@pytest.mark.parametrize('named', REFUSED)
def test_refused_with_a_reason(named: str, refuses: Any) -> None:
    with refuses(TypeError, match=named):
        GuardedLoss(REFUSED[named])


def test_a_subclass_is_guarded_and_refused_like_its_parent() -> None:
    class MyOhem(OhemCrossEntropy):
        pass

    class MyCrossEntropy(mmseg.models.losses.CrossEntropyLoss):
        pass

    scores, label = batch('ohem')
    label[0] = 200
    assert_equal(
        value_and_grad(GuardedLoss(MyOhem()), scores, label),
        value_and_grad(GuardedLoss(OhemCrossEntropy()), scores, label),
    )
    with pytest.raises(TypeError, match='GuardedCrossEntropyLoss'):
        GuardedLoss(MyCrossEntropy())


@pytest.mark.parametrize('loss', [MeanOverNothing, ByArgument])
class TestLossThatMmguardDoesNotKnow:
    def test_valid_and_ignored_labels(self, loss: Any) -> None:
        scores, label = batch('dice, sigmoid')
        label[0, 0] = 255
        assert_equal(value_and_grad(GuardedLoss(loss()), scores, label), value_and_grad(loss(), scores, label))

    def test_invalid_labels_are_ignored(self, loss: Any) -> None:
        scores, label = batch('dice, sigmoid')
        expected = value_and_grad(loss(), scores, label.masked_fill(label == 1, 255))
        assert_equal(value_and_grad(GuardedLoss(loss()), scores, label.masked_fill(label == 1, -7)), expected)

    @pytest.mark.parametrize('value', [255, 7])
    def test_nothing_to_train_on(self, loss: Any, value: int) -> None:
        scores, label = batch('dice, sigmoid')
        assert value_and_grad(loss(), scores, torch.full_like(label, 255))[0].isnan()
        value_, grad = value_and_grad(GuardedLoss(loss()), scores, label.fill_(value))
        assert value_ == 0
        assert grad.eq(0).all()

    def test_no_image(self, loss: Any) -> None:
        scores, label = batch('dice, sigmoid', images=0)
        assert value_and_grad(GuardedLoss(loss()), scores, label)[0] == 0


def test_a_class_with_the_number_of_the_usual_void_label() -> None:
    """With 300 classes 255 is one of them, and no value to mark invalid labels with."""
    scores = torch.randn(4, 300, generator=torch.Generator().manual_seed(0))
    label = torch.tensor([255, 1, 299, 300])
    loss, grad = value_and_grad(GuardedLoss(ByArgument(), ignore_index=-1), scores, label)
    expected = value_and_grad(nn.functional.cross_entropy, scores[:3], label[:3])
    assert_equal((loss, grad[:3]), expected)


def test_attributes_are_those_of_the_wrapped_loss() -> None:
    guarded = GuardedLoss(FocalLoss(loss_weight=0.5, loss_name='loss_rare'))
    assert (guarded.loss_name, guarded.use_sigmoid, guarded.loss_weight, guarded.gamma) == ('loss_rare', True, 0.5, 2.0)
    ohem = GuardedLoss(OhemCrossEntropy(loss_name='loss_hard', loss_weight=0.4))
    assert (ohem.loss_name, ohem.loss_weight, ohem.ignore_label) == ('loss_hard', 0.4, 255)
    assert getattr(ohem, 'use_sigmoid', 'none') == 'none'
    ohem.loss_weight, ohem.ignore_index = 0.1, 3  # by a schedule; the loss has no ignore_index of its own
    assert (ohem.loss.loss_weight, ohem.ignore_index, ohem.loss.ignore_label) == (0.1, 3, 255)
    with pytest.raises(AttributeError, match='use_sigmoid'):
        ohem.use_sigmoid  # noqa: B018


def test_a_wrapped_loss_with_parameters_keeps_them() -> None:
    class Learned(MeanOverNothing):
        def __init__(self) -> None:
            super().__init__()
            self.scale = nn.Parameter(torch.ones(()))

        def forward(self, pred: Tensor, label: Tensor) -> Tensor:
            return self.scale * super().forward(pred, label)

    guarded = GuardedLoss(Learned())
    assert list(guarded.state_dict()) == list(Learned().state_dict()) == ['scale']
    scores, label = batch('dice, sigmoid')
    guarded(scores, label).backward()
    assert guarded.loss.scale.grad is not None
    twin = copy.deepcopy(guarded).double()
    assert twin.loss.scale.dtype == torch.float64
    assert guarded.loss.scale.dtype == torch.float32
    guarded.eval()
    assert not guarded.loss.training


@pytest.mark.parametrize(
    ('arguments', 'error'),
    [
        ({'num_classes': 0}, ValueError),
        ({'num_classes': 2.0}, TypeError),
        ({'ignore_index': '255'}, TypeError),
        ({'on_invalid': 'drop'}, ValueError),
    ],
)
def test_arguments_that_cannot_be_used(arguments: dict, error: Any) -> None:
    with pytest.raises(error, match=next(iter(arguments))):
        GuardedLoss(OhemCrossEntropy(), **arguments)


class TestBuiltByARegistry:
    OHEM = {'type': 'GuardedLoss', 'loss': {'type': 'OhemCrossEntropy', 'min_kept': 7}}  # noqa: RUF012

    def test_the_scoped_word_everywhere(self) -> None:
        config = {'type': 'mmseg.GuardedLoss', 'loss': {'type': 'OhemCrossEntropy'}}
        for registry in (mmseg.registry.MODELS, mmdet.registry.MODELS, mmengine.registry.MODELS):
            assert type(registry.build(dict(config)).loss) is OhemCrossEntropy

    def test_the_root_builds_the_loss_in_the_default_scope(self) -> None:
        with DefaultScope.overwrite_default_scope('mmseg'):
            built = mmengine.registry.MODELS.build(copy.deepcopy(self.OHEM))
        assert type(built.loss) is OhemCrossEntropy
        with DefaultScope.overwrite_default_scope('mmdet'):
            built = mmengine.registry.MODELS.build({'type': 'GuardedLoss', 'loss': {'type': 'FocalLoss'}})
        assert type(built.loss) is mmdet.models.losses.FocalLoss
