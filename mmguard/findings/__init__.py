"""From facts to findings: mistakes and their corrections.

Imports :mod:`mmguard.config`, :mod:`mmguard.labels` and what is below them; no torch, no training code.
"""

from mmguard.facts.labels import LabelFacts
from mmguard.findings.engine import diagnose, select_rules
from mmguard.findings.finding import Finding
from mmguard.findings.rule import ConfigRule, DataRule, Example, Rule

__all__ = [
    'ConfigRule', 'DataRule', 'Example', 'Finding', 'LabelFacts', 'Rule', 'select_rules', 'diagnose',
]  # fmt: skip
