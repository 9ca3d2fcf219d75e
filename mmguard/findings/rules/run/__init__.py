"""The rules about a run and its ranks. Adding one touches this list.

Imports what findings may; no rules but its own.
"""

from typing import List, Type

from mmguard.findings.rule import RunRule
from mmguard.findings.rules.run.gradients import LossesFilled, UnusedParametersSeen
from mmguard.findings.rules.run.ranks import RankAbsent, RankKilled, RankStoodStill, SkippedCollective

#: Causes before what follows from them.
RUN_RULES: List[Type[RunRule]] = [
    RankKilled,
    RankStoodStill,
    SkippedCollective,
    RankAbsent,
    UnusedParametersSeen,
    LossesFilled,
]
