"""The guarded losses of mmseg's scope (and of mmengine's root)."""

from __future__ import annotations

from mmguard.compat.stack import weighs_ignored_labels
from mmguard.losses.cross_entropy import CrossEntropyBase
from mmguard.losses.guarded_loss import GuardedLossBase, build_guarded_losses


class GuardedCrossEntropyLoss(CrossEntropyBase):
    """Guarded version of mmseg's CrossEntropyLoss.

    With valid labels, value and gradient are those of ``mmseg.CrossEntropyLoss``. Class weights with ignored pixels,
    which crash mmseg, give the result of ``torch.nn.functional.cross_entropy``. Invalid labels are excluded. See
    :class:`~mmguard.losses.cross_entropy.CrossEntropyBase` for the arguments.
    """

    average_by_class_weight = True
    ignored_labels_weigh = weighs_ignored_labels()
    background = False
    squeeze_one_channel = True
    sigmoid_takes_any_keyword = True


class GuardedLoss(GuardedLossBase):
    """:class:`~mmguard.losses.guarded_loss.GuardedLossBase` that builds the inner loss in mmseg's scope."""

    scope = 'mmseg'


#: Name -> class registered in mmseg's scope; each is an attribute of this module, too.
LOSSES = {
    'GuardedCrossEntropyLoss': GuardedCrossEntropyLoss,
    'GuardedLoss': GuardedLoss,
    **build_guarded_losses('mmseg', GuardedLoss, __name__),
}
globals().update(LOSSES)
