"""The questions of edits: each answer leads to an edit or to a next step."""

from __future__ import annotations

from typing import Sequence

from mmguard.findings import Finding
from mmguard.findings.messages import format_finding, unpack


def assert_answers_lead_on(found: Sequence[Finding]) -> None:
    """Assert that a "no" to the last edit of a finding leads on, on screen and in JSON."""
    for finding in found:
        if not finding.edits or not finding.edits[-1].question:
            continue  # the last way asks nothing: it is for every other answer
        last = finding.edits[-1]
        assert last.if_not not in ('', last.question, last.title), finding
        assert unpack(finding)['edits'][-1]['if_not'] == last.if_not
        assert ' '.join(last.if_not.split()) in ' '.join(format_finding(finding).split())
