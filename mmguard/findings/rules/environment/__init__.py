"""The rules about what is installed. A rule, or a few of a kind, a file; adding one touches only this list.

Imports what findings may; no rules but its own.
"""

from typing import List, Type

from mmguard.findings.rule import EnvironmentRule
from mmguard.findings.rules.environment.cannot_import import CannotImport
from mmguard.findings.rules.environment.files_missing import FilesMissing
from mmguard.findings.rules.environment.mixed_stacks import MixedStacks
from mmguard.findings.rules.environment.mmcv_installation import CompiledOps, MmcvNotAccepted
from mmguard.findings.rules.environment.not_installed import NotInstalled
from mmguard.findings.rules.environment.several_distributions import SeveralDistributions
from mmguard.findings.rules.environment.versions import NotTogether, OlderThanTried

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
