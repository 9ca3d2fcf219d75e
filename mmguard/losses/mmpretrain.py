"""The guarded losses of mmpretrain's scope."""

from __future__ import annotations

from mmguard.losses.guarded_loss import GuardedLossBase, build_guarded_losses


class GuardedLoss(GuardedLossBase):
    """:class:`~mmguard.losses.guarded_loss.GuardedLossBase` that builds the inner loss in mmpretrain's scope."""

    scope = 'mmpretrain'


#: Name -> class registered in mmpretrain's scope; each is an attribute of this module, too.
LOSSES = {'GuardedLoss': GuardedLoss, **build_guarded_losses('mmpretrain', GuardedLoss, __name__)}
globals().update(LOSSES)
