"""Looks at facts with rules, and puts the likeliest finding first."""

from __future__ import annotations

from dataclasses import replace
from typing import List, Sequence, Set, Type

from mmguard.findings.finding import Finding
from mmguard.findings.rule import Facts, Rule, Verdict

#: From here on a finding explains those that follow from it.
CERTAIN = 0.5


def search(facts: Facts, rules: Sequence[Type[Rule]]) -> List[Finding]:
    """All findings that the facts support, the most likely first.

    Where nothing speaks against labels that were all read, the verdict that they are fine comes last (MG100).
    """
    chosen = [kind() for kind in rules if any(getattr(facts, name) not in (None, ()) for name in kind.looks_at)]
    found: List[Finding] = []
    blamed = False
    for rule in chosen:
        if not isinstance(rule, Verdict):
            findings = list(rule.find(facts))
            found += findings
            blamed = blamed or (rule.blames_labels and bool(findings))
    # Among equals in the order of the rules: causes before what follows from them.
    found.sort(key=lambda finding: -finding.likelihood)
    found = _without_consequences(found)
    if not blamed:
        # Behind what was found beside the labels.
        limit = found[-1].likelihood / 2 if found else 1.0
        for rule in chosen:
            if isinstance(rule, Verdict):
                found += [replace(verdict, likelihood=min(verdict.likelihood, limit)) for verdict in rule.find(facts)]
    return found


def _without_consequences(found: Sequence[Finding]) -> List[Finding]:
    """Leaves out findings that follow from a likelier one: two advices for one fault contradict each other."""
    kept: List[Finding] = []
    follow: Set[str] = set()
    for finding in found:
        if finding.code not in follow:
            kept.append(finding)
            if finding.likelihood >= CERTAIN:
                follow.update(finding.explains)
    return kept
