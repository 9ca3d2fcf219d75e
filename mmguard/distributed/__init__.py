"""Agreement of all distributed ranks on the same set of losses, for any training loop.

This package imports :mod:`mmguard.log` and lower packages, but no framework.
"""

from mmguard.distributed.agreement import Agreed, LossAgreement, RankLosses, align_losses
from mmguard.distributed.heartbeat import AbsentRankError

__all__ = ['AbsentRankError', 'Agreed', 'LossAgreement', 'RankLosses', 'align_losses']
