"""Findings on the page, and what they come to."""

from __future__ import annotations

from mmguard.diagnosis import CAUSES, Finding, LabelFacts
from mmguard.diagnosis.finding import SEVERITIES, Verdict
from mmguard.report.html import Markup, element, join
from mmguard.report.page import Section

#: Codes that say: the labels are fine.
FINE = tuple(cause.code for cause in CAUSES if issubclass(cause, Verdict))


def verdict(section: Section) -> Markup:
    """One sentence: fine, or how much there is and what to begin with."""
    findings = section.findings
    beside = [finding for finding in findings if finding.code not in FINE]
    if len(beside) < len(findings) or not (findings or has_invalid(section.facts)):
        more = f' {_several(len(beside))} beside them.' if beside else ' Nothing invalid was found in them.'
        return element('div', element('strong', 'Your labels are fine.'), more, class_='card verdict fine')
    if not findings:
        words = join(element('strong', 'Something is invalid'), ', but nothing says why: see the values below.')
        return element('div', words, class_='card verdict error')
    begin = f' Begin with {findings[0].code}.' if len(findings) > 1 else ''
    tone = min((finding.severity for finding in findings), key=SEVERITIES.index)
    return element('div', element('strong', _several(len(findings)) + '.'), begin, class_=f'card verdict {tone}')


def has_invalid(facts: LabelFacts) -> bool:
    return any(facts.values.values()) or any(facts.reasons.values())


def _several(count: int) -> str:
    return f'{count} findings' if count > 1 else '1 finding'


def finding_card(finding: Finding, first: bool) -> Markup:
    """What is probably wrong, what it rests on, what to write."""
    rows = [('Seen', element('dd', finding.evidence))]
    if finding.files:
        names = [element('span', name, class_='mono file-name') for name in finding.files]
        rows.append(('First files', element('dd', *names)))
    rows.append(('What to do', element('dd', _with_code(finding.advice))))
    if finding.lines:
        written = [element('code', line, class_='write') for line in finding.lines]
        rows.append(('To write', element('dd', *written)))
    return element(
        'article',
        element(
            'header',
            element('span', finding.code, class_='badge mono'),
            element('span', finding.severity, class_='badge'),
            element('span', 'most likely', class_='small soft') if first and finding.code not in FINE else None,
        ),
        element('p', _with_code(finding.cause), class_='cause'),
        element('dl', *(join(element('dt', name), row) for name, row in rows)),
        class_=f'card finding {"fine" if finding.code in FINE else finding.severity}',
    )


def _with_code(words: str) -> Markup:
    """Text whose backticks hold config lines and commands."""
    pieces = words.split('`')
    if len(pieces) % 2 == 0:  # one without a partner
        return join(words)
    return join(*(element('code', piece) if place % 2 else piece for place, piece in enumerate(pieces)))
