"""The rules about what is installed. Adding one touches this list.

Imports what findings may; no rules but its own.
"""

from typing import List, Type

from mmguard.findings.rule import EnvironmentRule
from mmguard.findings.rules.environment.packages import (
    CannotImport,
    MixedStacks,
    PackageMissing,
    SeveralDistributions,
)
from mmguard.findings.rules.environment.versions import UnfitMmcv, UnfitVersions

#: Causes before what follows from them.
ENVIRONMENT_RULES: List[Type[EnvironmentRule]] = [
    MixedStacks,
    SeveralDistributions,
    PackageMissing,
    UnfitVersions,
    UnfitMmcv,
    CannotImport,
]
