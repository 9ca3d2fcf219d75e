"""Ranks in step, for any training loop: pure torch, no mmengine."""

from mmguard.distributed.absent import AbsentRankError
from mmguard.distributed.agreement import Agreed, Filled, LossAgreement, align_losses

__all__ = ['AbsentRankError', 'Agreed', 'Filled', 'LossAgreement', 'align_losses']
