"""Diagnosis: rules find mistakes in facts, and offer edits that correct them.

This package imports :mod:`mmguard.config`, :mod:`mmguard.labels` and lower packages, but no training code or torch.
"""

from mmguard.facts.labels import LabelFacts
from mmguard.findings.engine import diagnose, select_rules
from mmguard.findings.finding import Finding
from mmguard.findings.rule import ConfigRule, DataRule, Example, Rule

__all__ = [
    'ConfigRule', 'DataRule', 'Example', 'Finding', 'LabelFacts', 'Rule', 'select_rules', 'diagnose',
]  # fmt: skip
