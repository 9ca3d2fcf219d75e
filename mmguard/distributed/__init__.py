"""Ranks in step, for any training loop: pure torch, no mmengine."""

from mmguard.distributed.absent import AbsentRankError
from mmguard.distributed.agreement import Agreed, LossAgreement, RankLosses, align_losses

__all__ = ['AbsentRankError', 'Agreed', 'LossAgreement', 'RankLosses', 'align_losses']
