"""The rules about what is installed. Adding one touches this list.

Imports what findings may; no rules but its own.
"""

from typing import List, Type

from mmguard.findings.rule import EnvironmentRule
from mmguard.findings.rules.environment.packages import (
    CannotImport,
    FilesMissing,
    MixedStacks,
    NotInstalled,
    SeveralDistributions,
)
from mmguard.findings.rules.environment.versions import CompiledOps, MmcvNotAccepted, NotTogether, OlderThanTried

#: Causes before what follows from them.
ENVIRONMENT_RULES: List[Type[EnvironmentRule]] = [
    MixedStacks,
    SeveralDistributions,
    FilesMissing,
    NotInstalled,
    NotTogether,
    MmcvNotAccepted,
    CannotImport,
    CompiledOps,
    OlderThanTried,
]
