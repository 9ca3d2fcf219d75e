"""Ranks in step, for any training loop.

Imports :mod:`mmguard.log` and what is below it, no framework; ``unused_parameters`` imports findings when a
run has failed.
"""

from mmguard.distributed.agreement import Agreed, LossAgreement, RankLosses, align_losses
from mmguard.distributed.heartbeat import AbsentRankError

__all__ = ['AbsentRankError', 'Agreed', 'LossAgreement', 'RankLosses', 'align_losses']
