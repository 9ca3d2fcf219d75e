"""Findings on the page."""

from __future__ import annotations

from mmguard.diagnosis import Finding
from mmguard.report.html import Markup, element

_SEVERITIES = ('error', 'warning', 'info')


def severity_of(finding: Finding) -> str:
    """``'error'``, ``'warning'`` or ``'info'``."""
    severity = getattr(finding, 'severity', 'error')
    return severity if severity in _SEVERITIES else 'warning'


def finding_card(finding: Finding, first: bool) -> Markup:
    """What is probably wrong, what it rests on, what to write."""
    severity = severity_of(finding)
    return element(
        'article',
        element(
            'header',
            element('span', finding.code, class_='badge mono'),
            element('span', severity, class_='badge'),
            element('span', 'most likely', class_='small soft') if first else None,
        ),
        element('p', finding.cause, class_='cause'),
        element(
            'dl',
            element('dt', 'Seen'),
            element('dd', finding.evidence),
            element('dt', 'What to write'),
            element('dd', element('div', finding.advice, class_='write')),
        ),
        class_=f'card finding {severity}',
    )
