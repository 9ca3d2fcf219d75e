"""The rules. One kind of mistake, one file; adding one touches the list of its folder alone.

Imports what findings may.
"""

from typing import List, Type

from mmguard.findings.rule import Rule
from mmguard.findings.rules.config import CONFIG_RULES
from mmguard.findings.rules.environment import ENVIRONMENT_RULES
from mmguard.findings.rules.labels import DATA_RULES
from mmguard.findings.rules.run import RUN_RULES

#: Causes before what follows from them: a class list that does not arrive also makes every head wrong.
RULES: List[Type[Rule]] = [*CONFIG_RULES, *DATA_RULES, *RUN_RULES, *ENVIRONMENT_RULES]
