"""README is short and says the same code in both languages; every link of every page leads to a file or a heading."""

from __future__ import annotations

import re
from typing import List

import pytest
from doc_pages import GENERATED, ROOT, blocks_of, pages, text_of

ENGLISH, CHINESE = 'README.md', 'README_zh-CN.md'
SWITCH = {ENGLISH: f'English | [简体中文]({CHINESE})', CHINESE: f'[English]({ENGLISH}) | 简体中文'}
LINK = re.compile(r'\[[^\]]*\]\(([^)\s]+)\)')
#: Of a block that is no program, the first words of its lines, which are prose.
BEFORE_AND_AFTER = {'之前': 'before', '之后': 'after'}


def headings(text: str) -> List[str]:
    return re.findall(r'^(#+) ', re.sub(r'^```.*?^```$', '', text, flags=re.MULTILINE | re.DOTALL), re.MULTILINE)


def code_of(page: str) -> List[str]:
    """The code of a page without its comments, and of what is shown the words that both languages have."""
    found = []
    for block in blocks_of(page):
        lines = [re.sub(r'\s*# .*', '', line).rstrip() for line in block.code.splitlines()]
        for chinese, english in BEFORE_AND_AFTER.items():
            lines = [re.sub(rf'^{chinese}\s+', f'{english} ', line) for line in lines]
        lines = [re.sub(r'^(before|after)\s+', r'\1 ', line) for line in lines if not line.lstrip().startswith('(')]
        found.append('\n'.join([block.language, *lines]))
    return found


def anchors(text: str) -> List[str]:
    """The headings of a page as a forge links to them."""
    titles = re.findall(r'^#+ (.*)$', text, re.MULTILINE)
    return [re.sub(r'[^\w\- ]', '', title.lower()).replace(' ', '-') for title in titles]


def table_rows(page: str) -> List[str]:
    """Figures alone: the cells beside the first of each row of a table with a verdict."""
    rows = [row.replace('达标', 'holds') for row in re.findall(r'^\|[^|]*(\|.* (?:ms|MiB) \|.*)$', text_of(page), re.M)]
    return [re.sub(r'\s+', ' ', row) for row in rows]


@pytest.mark.parametrize('page', [ENGLISH, CHINESE])
def test_it_is_short(page: str) -> None:
    assert len(text_of(page).split()) <= 900
    assert text_of(page).splitlines()[2] == SWITCH[page]


def test_both_languages_have_the_same_headings_and_code() -> None:
    assert headings(text_of(ENGLISH)) == headings(text_of(CHINESE))
    assert code_of(ENGLISH) == code_of(CHINESE)
    links = [sorted({*LINK.findall(text_of(page))} - {*SWITCH}) for page in SWITCH]
    assert links[0] == links[1]


def test_six_rows_are_those_of_the_benchmarks() -> None:
    rows = re.findall(r'^\| .* \| holds \|$', text_of(ENGLISH), re.MULTILINE)
    assert len(rows) == 6
    assert [row for row in rows if row not in text_of('docs/benchmarks.md')] == []
    assert table_rows(ENGLISH) == table_rows(CHINESE)


@pytest.mark.parametrize('page', [*pages(), *GENERATED])
def test_links_lead_somewhere(page: str) -> None:
    folder = (ROOT / page).parent
    for link in (link for link in LINK.findall(text_of(page)) if '://' not in link and not link.startswith('mailto:')):
        name, _, anchor = link.partition('#')
        target = folder / name if name else ROOT / page
        assert target.exists(), f'{page} links to {link}'
        if anchor:
            assert anchor in anchors(target.read_text(encoding='utf-8')), f'{page} links to {link}'


def test_every_page_of_docs_is_linked_from_readme_or_a_page_that_is() -> None:
    seen, waiting = set(), [ENGLISH]
    while waiting:
        page = waiting.pop()
        seen.add(page)
        for link in LINK.findall(text_of(page)):
            target = ((ROOT / page).parent / link.partition('#')[0]).resolve()
            if target.suffix == '.md' and target.is_file() and '://' not in link:
                name = target.relative_to(ROOT).as_posix()
                waiting += [name] if name not in seen else []
    assert sorted({*pages(), *GENERATED} - seen) == []
