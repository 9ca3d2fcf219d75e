"""The guarded losses of mmdet's scope."""

from __future__ import annotations

from mmguard.losses.cross_entropy import CrossEntropyBase
from mmguard.losses.guarded_loss import GuardedLossBase, build_guarded_losses


class GuardedCrossEntropyLoss(CrossEntropyBase):
    """Guarded version of mmdet's CrossEntropyLoss.

    With valid labels, value and gradient are those of ``mmdet.CrossEntropyLoss``: the mean is taken over the number of
    elements, and in sigmoid mode the label ``num_classes`` is the background. Invalid labels are excluded. See
    :class:`~mmguard.losses.cross_entropy.CrossEntropyBase` for the arguments.
    """

    average_by_class_weight = False
    background = True
    squeeze_one_channel = False
    sigmoid_takes_any_keyword = False


class GuardedLoss(GuardedLossBase):
    """:class:`~mmguard.losses.guarded_loss.GuardedLossBase` that builds the inner loss in mmdet's scope."""

    scope = 'mmdet'
    heads_read_config = True


#: Name -> class registered in mmdet's scope; each is an attribute of this module, too.
LOSSES = {
    'GuardedCrossEntropyLoss': GuardedCrossEntropyLoss,
    'GuardedLoss': GuardedLoss,
    **build_guarded_losses('mmdet', GuardedLoss, __name__),
}
globals().update(LOSSES)
