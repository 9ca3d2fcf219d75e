"""The rules about what is installed. One rule, one file; adding one touches this list alone.

Imports what findings may; no rules but its own.
"""

from typing import List, Type

from mmguard.findings.rule import EnvironmentRule
from mmguard.findings.rules.environment.cannot_import import CannotImport
from mmguard.findings.rules.environment.compiled_ops import CompiledOps
from mmguard.findings.rules.environment.files_missing import FilesMissing
from mmguard.findings.rules.environment.mixed_stacks import MixedStacks
from mmguard.findings.rules.environment.mmcv_not_accepted import MmcvNotAccepted
from mmguard.findings.rules.environment.not_installed import NotInstalled
from mmguard.findings.rules.environment.not_together import NotTogether
from mmguard.findings.rules.environment.older_than_tried import OlderThanTried
from mmguard.findings.rules.environment.several_distributions import SeveralDistributions

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
