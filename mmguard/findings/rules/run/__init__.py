"""The rules about a run and its ranks. One rule, one file; adding one touches this list alone.

Imports what findings may; no rules but its own.
"""

from typing import List, Type

from mmguard.findings.rule import RunRule
from mmguard.findings.rules.run.losses_filled import LossesFilled
from mmguard.findings.rules.run.rank_absent import RankAbsent
from mmguard.findings.rules.run.rank_killed import RankKilled
from mmguard.findings.rules.run.rank_stood_still import RankStoodStill
from mmguard.findings.rules.run.skipped_collective import SkippedCollective
from mmguard.findings.rules.run.unused_parameters_seen import UnusedParametersSeen

#: Causes before what follows from them.
RUN_RULES: List[Type[RunRule]] = [
    RankKilled,
    RankStoodStill,
    SkippedCollective,
    RankAbsent,
    UnusedParametersSeen,
    LossesFilled,
]
