"""Look at facts with rules, and put the surest finding first."""

from __future__ import annotations

from typing import List, Sequence, Set, Type

from mmguard.findings.finding import POSSIBLE, Finding
from mmguard.findings.order import sort_key
from mmguard.findings.rule import Facts, Rule, Verdict


def search(facts: Facts, rules: Sequence[Type[Rule]]) -> List[Finding]:
    """Return all findings that the facts support, the surest first.

    If no finding is about the labels, and all were read, the verdict that they are fine comes last (MG100).
    """
    chosen = [kind() for kind in rules if any(getattr(facts, name) not in (None, ()) for name in kind.looks_at)]
    found: List[Finding] = []
    blamed = False
    for rule in chosen:
        if not isinstance(rule, Verdict):
            findings = list(rule.find(facts))
            found += findings
            blamed = blamed or (rule.blames_labels and bool(findings))
    found = _drop_consequences(sorted(found, key=sort_key))
    if not blamed:
        found += [verdict for rule in chosen if isinstance(rule, Verdict) for verdict in rule.find(facts)]
    return found


def _drop_consequences(found: Sequence[Finding]) -> List[Finding]:
    """Leave out findings that follow from an earlier one: two pieces of advice for one fault contradict each other."""
    kept: List[Finding] = []
    follow: Set[str] = set()
    for finding in found:
        if finding.code not in follow:
            kept.append(finding)
            if finding.certainty != POSSIBLE:
                follow.update(finding.supersedes)
    return kept
