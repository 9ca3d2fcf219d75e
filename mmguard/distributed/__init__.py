"""Ranks in step, for any training loop.

Imports :mod:`mmguard.log` and what is below it, no framework; ``unused`` imports findings when a run has failed.
"""

from mmguard.distributed.absent import AbsentRankError
from mmguard.distributed.agreement import Agreed, LossAgreement, RankLosses, align_losses

__all__ = ['AbsentRankError', 'Agreed', 'LossAgreement', 'RankLosses', 'align_losses']
