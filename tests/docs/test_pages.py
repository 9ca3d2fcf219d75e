"""README is short, both languages have the same structure; every link of every page leads to a file or a heading."""

from __future__ import annotations

import posixpath
import re
from typing import List

import pytest
from doc_pages import GENERATED, ROOT, blocks_of, pages, text_of

from mmguard.version import __version__

ENGLISH, CHINESE = 'README.md', 'README_zh-CN.md'
#: English page -> the Chinese one.
TRANSLATIONS = {ENGLISH: CHINESE, **{f'docs/{path.name}': f'docs/zh/{path.name}' for path in ROOT.glob('docs/zh/*.md')}}
LINK = re.compile(r'\[[^\]]*\]\(([^)\s]+)\)')
#: First words of the lines of a block that is not a program.
BEFORE_AND_AFTER = {'之前': 'before', '之后': 'after'}


def headings_of(page: str) -> List[str]:
    text = re.sub(r'^```.*?^```$', '', text_of(page), flags=re.MULTILINE | re.DOTALL)
    return re.findall(r'^(#+) ', text, re.MULTILINE)


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
    """Figures of each row of a table with a verdict, without the first cell."""
    rows = [row.replace('达标', 'holds') for row in re.findall(r'^\|[^|]*(\|.* (?:ms|MiB) \|.*)$', text_of(page), re.M)]
    return [re.sub(r'\s+', ' ', row) for row in rows]


def links_of(page: str) -> List[str]:
    """The links of a page, from the root, as of the English pages; of an anchor the place of its heading."""
    found, english = [], {chinese: page for page, chinese in TRANSLATIONS.items()}
    for link in LINK.findall(text_of(page)):
        name, _, anchor = link.partition('#')
        path = posixpath.normpath(posixpath.join(posixpath.dirname(page), name)) if name else page
        place = anchors(text_of(path)).index(anchor) if anchor else ''
        found.append(f'{english.get(path, path)} {place}')
    return sorted(found)


def cells(page: str) -> List[int]:
    """The number of cells of each row of its tables."""
    return [len(re.findall(r'(?<!\\)\|', row)) for row in re.findall(r'^\|.*\|$', text_of(page), re.MULTILINE)]


@pytest.mark.parametrize('page', [ENGLISH, CHINESE])
def test_it_is_short(page: str) -> None:
    assert len(text_of(page).split()) <= 900


def test_the_pages_to_begin_with_are_translated() -> None:
    assert {*TRANSLATIONS} >= {ENGLISH, 'docs/get_started.md', 'docs/labels.md', 'docs/log.md'}


@pytest.mark.parametrize('page', TRANSLATIONS)
def test_both_languages_have_the_same_structure(page: str) -> None:
    chinese = TRANSLATIONS[page]
    to_english, to_chinese = (
        posixpath.relpath(*one)
        for one in ((page, posixpath.dirname(chinese)), (chinese, posixpath.dirname(page) or '.'))
    )
    assert text_of(page).splitlines()[2] == f'English | [简体中文]({to_chinese})'
    assert text_of(chinese).splitlines()[2] == f'[English]({to_english}) | 简体中文'
    for part in (headings_of, code_of, links_of, cells):
        assert part(page) == part(chinese), part.__name__


def test_six_rows_are_those_of_the_benchmarks() -> None:
    rows = re.findall(r'^\| .* \| holds \|$', text_of(ENGLISH), re.MULTILINE)
    assert len(rows) == 6
    assert [row for row in rows if row not in text_of('docs/benchmarks.md')] == []
    assert table_rows(ENGLISH) == table_rows(CHINESE)


def test_links_lead_somewhere() -> None:
    links = [(page, link) for page in (*pages(), *GENERATED) for link in LINK.findall(text_of(page))]
    assert len(links) > 100
    for page, link in links:
        name, _, anchor = link.partition('#')
        target = (ROOT / page).parent / name if name else ROOT / page
        if '://' not in link and not link.startswith('mailto:'):
            assert target.exists(), f'{page} links to {link}'
            assert not anchor or anchor in anchors(target.read_text(encoding='utf-8')), f'{page} links to {link}'


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


def test_the_version_is_that_of_the_changelog_and_of_every_page() -> None:
    headings = re.findall(r'^## (.*)$', text_of('CHANGELOG.md'), re.MULTILINE)
    released = [heading for heading in headings if heading != 'Unreleased']
    assert re.fullmatch(rf'{re.escape(__version__)} \(\d{{4}}-\d\d-\d\d\)', released[0])
    named = {
        page: set(re.findall(r'(?:mmguard-|rev: v|`v)(\d+\.\d+\.\d+)', text_of(page)))
        for page in pages()
        if page != 'CHANGELOG.md'
    }
    assert {page for page, versions in named.items() if versions} >= {ENGLISH, CHINESE, 'docs/integrations.md'}
    assert set().union(*named.values()) == {__version__}
