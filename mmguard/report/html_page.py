"""The whole page, from its sections."""

from __future__ import annotations

import time
from typing import List, Optional, Sequence

from mmguard.report.crash import Crash
from mmguard.report.html import Markup, element, join
from mmguard.report.html_crash import crash_section
from mmguard.report.html_files import drawn_files, table_of_files
from mmguard.report.html_findings import finding_card, verdict
from mmguard.report.html_histogram import histogram
from mmguard.report.html_history import plot
from mmguard.report.html_style import STYLE
from mmguard.report.page import Section
from mmguard.version import __version__

#: Nothing may be loaded and no script may run, whatever were to slip into the page.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def page(title: str, sections: Sequence[Section], crash: Optional[Crash] = None) -> Markup:
    """The page as one HTML document."""
    many = len(sections) > 1 or crash is not None
    body: List[Markup] = [
        element('h1', title),
        element('p', f'mmguard {__version__}, {time.strftime("%Y-%m-%d %H:%M")}', class_='soft small'),
    ]
    if crash is not None:
        body.append(crash_section(crash))
    for number, section in enumerate(sections):
        body.append(_section(section, number, named=many))
    head = join(
        element('meta', charset='utf-8'),
        element('meta', name='viewport', content='width=device-width, initial-scale=1'),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'),
        element('title', f'mmguard: {title}'),
        Markup(f'<style>{STYLE}</style>'),
    )
    footer = element('footer', 'Written by mmguard. This page is one file: it can be sent as it is.')
    document = element('html', element('head', head), element('body', element('main', *body, footer)), lang='en')
    return Markup(f'<!DOCTYPE html>\n{document}\n')


def _section(section: Section, number: int, named: bool) -> Markup:
    return element(
        'section',
        element('h2', section.name) if named else None,
        verdict(section),
        *(element('p', note, class_='small soft') for note in section.notes),
        _tiles(section),
        *(finding_card(finding, first=place == 0) for place, finding in enumerate(section.findings)),
        plot(section.history),
        histogram(section.facts),
        table_of_files(section, number),
        drawn_files(section, number),
    )


def _tiles(section: Section) -> Markup:
    facts = section.facts
    what = facts.kind
    invalid = sum(facts.values.values()) + sum(n for why, n in facts.reasons.items() if why != 'label')
    tiles = []
    if facts.files:
        tiles.append((f'{facts.files:,}', 'files', False))
    if facts.files or facts.offending_files:
        tiles.append((f'{facts.offending_files:,}', 'files with something invalid', facts.offending_files > 0))
    if facts.total:
        tiles.append((_short(facts.total), what, False))
    tiles.append((_short(invalid), f'invalid {what}', invalid > 0))
    ignored = '' if facts.ignore_index is None else f', {facts.ignore_index} ignored'
    tiles.append((f'{facts.num_classes:,}', f'classes: 0 to {facts.num_classes - 1}{ignored}', False))
    return element(
        'div',
        *(
            element(
                'div', element('b', value), element('span', name, class_='small soft'), class_=f'tile{" loud" * loud}'
            )
            for value, name, loud in tiles
        ),
        class_='tiles',
    )


def _short(count: int) -> str:
    """``1,234,567`` in full, beyond it ``8.39 billion``."""
    for size, unit in ((10**12, 'trillion'), (10**9, 'billion'), (10**8, 'million')):
        if count >= size:
            return f'{count / (10**6 if unit == "million" else size):.3g} {unit}'
    return f'{count:,}'
