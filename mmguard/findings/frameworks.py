"""Findings for those who do not train with OpenMMLab."""

from __future__ import annotations

from dataclasses import replace
from typing import List, Sequence

from mmguard.findings.engine import diagnose
from mmguard.findings.facts import LabelFacts
from mmguard.findings.finding import Finding
from mmguard.findings.rule import DataRule, common_placeholders
from mmguard.findings.rules import RULES

#: Frameworks that may have written the record of a run.
OPENMMLAB, PYTORCH, NNUNET = FRAMEWORKS = ('openmmlab', 'pytorch', 'nnunet')


def diagnose_for(framework: str, facts: LabelFacts, roots: Sequence[str] = ()) -> List[Finding]:
    """Return all findings that the facts support, the surest first, with advice for a framework.

    Args:
        framework (str): One of :data:`FRAMEWORKS`; any other is taken for OpenMMLab.
        facts (LabelFacts): What is known of the labels.
        roots (sequence of str): Of the data set: nnU-Net's raw folder.
    """
    if framework == NNUNET:
        advice = ' '.join(advise_nnunet(roots[0] if roots else '$nnUNet_raw/DATASET'))
        return [replace(finding, advice=advice) for finding in diagnose(facts)]
    return diagnose_for_pytorch(facts) if framework == PYTORCH else diagnose(facts)


def diagnose_for_pytorch(facts: LabelFacts) -> List[Finding]:
    """Return the findings that have an advice for plain PyTorch, with it."""
    rules = {rule.code: rule() for rule in RULES if rule.pytorch}
    found = []
    for finding in diagnose(facts, rules=list(map(type, rules.values()))):
        rule = rules[finding.code]
        words = {**common_placeholders(facts), **(rule.describe(facts) if isinstance(rule, DataRule) else {})}
        found.append(replace(finding, advice=rule.pytorch.format(**words)))
    return found


def advise_nnunet(raw_folder: str) -> Sequence[str]:
    """Return what to do about any wrong label in nnU-Net, a sentence in two lines."""
    return (
        f'Which files and slices: `mmguard scan {raw_folder}`;',
        'then correct the label files (or dataset.json) and preprocess again.',
    )
