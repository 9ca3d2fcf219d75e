"""All rules. Each module defines the rules of one subject; a new rule also needs its place in order.py.

The modules may import what :mod:`mmguard.findings` may import.
"""

import importlib
import pkgutil
from typing import Iterator, List, Type

from mmguard.findings.rule import Rule


def find_rules() -> Iterator[Type[Rule]]:
    """Yield the rules defined in this package."""
    for found in pkgutil.walk_packages(__path__, f'{__name__}.'):
        module = importlib.import_module(found.name)
        for kind in vars(module).values():
            is_own = isinstance(kind, type) and issubclass(kind, Rule) and kind.__module__ == found.name
            if is_own and 'code' in vars(kind):
                yield kind


RULES: List[Type[Rule]] = sorted(find_rules(), key=lambda rule: rule.code)
