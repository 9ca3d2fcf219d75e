"""README_zh-CN.md says what README.md says: block by block, whatever is no prose must be the same."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, List, NamedTuple, Tuple

import pytest

ROOT = Path(__file__).parent.parent
ENGLISH, CHINESE = 'README.md', 'README_zh-CN.md'
SWITCH = {ENGLISH: f'English | [简体中文]({CHINESE})', CHINESE: f'[English]({ENGLISH}) | 简体中文'}

# Prose in code blocks, other than comments. A table that `make bench` printed may stand there untranslated, too.
PROSE = {
    'before ': '之前 ',
    'after ': '之后 ',
    '(the stack trace points at the wrong line; the process is unusable)': '(堆栈指向错误的行, 进程也无法继续使用)',
}
VERDICTS = {'达标': 'holds', '未达标': 'MISSED'}

_KINDS = (('heading', r'#+ '), ('table', r'\|'), ('comment', r'<!--'), ('item', r'- '))
_SPAN = re.compile(r'`([^`]+)`')
_LINK = re.compile(r'\[([^\]]*)\]\(([^)\s]+)\)')
_COMMENT = re.compile(r'(?:^|(?<=\s))#\s.*$')
_CJK = re.compile('[\u4e00-\u9fff]')


class Block(NamedTuple):
    kind: str  # heading, paragraph, item, table, code, comment
    text: str
    section: str
    line: int


def kind_of(line: str) -> str:
    return next((kind for kind, start in _KINDS if re.match(start, line)), 'paragraph')


def blocks_of(text: str, switch: str = '') -> List[Block]:
    """The blocks of a page, without the line that leads to the other language."""
    blocks: List[Block] = []
    section, open_kind = '', ''
    for number, line in enumerate(text.splitlines(), 1):
        if open_kind == 'code':
            blocks[-1] = blocks[-1]._replace(text=blocks[-1].text + '\n' + line)
            open_kind = '' if line.startswith('```') else 'code'
        elif not line.strip() or line == switch:
            open_kind = ''
        elif line.startswith('```'):
            open_kind = 'code'
            blocks.append(Block('code', line, section, number))
        else:
            kind = kind_of(line)
            goes_on = open_kind == kind == 'table' or (open_kind in ('paragraph', 'item') and kind == 'paragraph')
            if goes_on:
                blocks[-1] = blocks[-1]._replace(text=blocks[-1].text + '\n' + line)
                continue
            open_kind = kind if kind in ('paragraph', 'item', 'table') else ''
            section = line if kind == 'heading' else section
            blocks.append(Block(kind, line, section, number))
    return blocks


def spans(text: str) -> List[str]:
    """What stands between backticks, in any order: word order differs between the languages."""
    return sorted(' '.join(span.split()) for span in _SPAN.findall(text))


def links(text: str) -> List[Tuple[str, str]]:
    """Targets with their texts, where these are file names; other texts are translated."""
    return sorted((target, label if re.search(r'[./_]', label) else '') for label, target in _LINK.findall(text))


def numbers(text: str) -> List[str]:
    return sorted(re.findall(r'\d+(?:[.,]\d+)*', _SPAN.sub('', text)))


def names(text: str) -> List[str]:
    """Classes, projects and abbreviations: words with capitals inside, or underscores."""
    words = re.findall(r'[A-Za-z0-9_]+', _LINK.sub(r'\1', _SPAN.sub('', text)))
    return sorted({re.sub(r's$', '', word) for word in words if re.search(r'.[A-Z]|_', word)})


def facts(text: str) -> Any:
    return {'spans': spans(text), 'links': links(text), 'numbers': numbers(text), 'names': names(text)}


def rows_of(table: str) -> List[List[str]]:
    return [[cell.strip() for cell in line.strip().strip('|').split('|')] for line in table.splitlines()]


def table_facts(table: str) -> Any:
    """Per row: how many cells, and what is in each; the line of dashes as it is."""
    return [
        row if all(re.fullmatch(r':?-+:?', cell) for cell in row) else [facts(VERDICTS.get(cell, cell)) for cell in row]
        for row in rows_of(table)
    ]


def code_facts(code: str) -> Any:
    """Line by line the code, and of a comment what is not prose: calls, identifiers, numbers."""
    plain = code.splitlines()[0] == '```'
    lines = []
    for line in code.splitlines():
        if plain:
            for english, chinese in PROSE.items():
                line = re.sub(rf'^(\s*){re.escape(english)}\s*', rf'\1{chinese} ', line)
            line = re.sub(r'^((?:之前|之后) )\s*', r'\1', line.rstrip())
            if line.strip() in PROSE.values():
                line = line.strip()
        comment = _COMMENT.search(line)
        said = comment.group() if comment else ''
        calls = re.findall(r'\w+\(.*\)', said, re.ASCII)
        lines.append((_COMMENT.sub('#', line).rstrip(), calls, names(said), numbers(said)))
    return lines


def facts_of(block: Block) -> Any:
    if block.kind == 'heading':
        return len(block.text.split()[0]), facts(block.text)
    if block.kind == 'comment':
        return block.text
    return {'table': table_facts, 'code': code_facts}.get(block.kind, facts)(block.text)


def benchmarks_of(text: str) -> List[List[str]]:
    """The cells of the benchmark table beside the first of each row, which says what was measured."""
    between = re.search(r'<!-- benchmarks -->\n(.*?)\n<!-- /benchmarks -->', text, re.DOTALL)
    assert between, 'the markers of the benchmarks are missing'
    table = [line for line in between.group(1).splitlines() if line.startswith('|')]
    cells = [row[1:] for row in rows_of('\n'.join(table))[1:]]
    return [[VERDICTS.get(cell, cell) for cell in row] for row in cells]


def drift(english: str, chinese: str) -> List[str]:
    """What differs, in words with line numbers; empty: the two say the same."""
    ours, theirs = blocks_of(english, SWITCH[ENGLISH]), blocks_of(chinese, SWITCH[CHINESE])
    found = []
    for one, other in zip(ours, theirs):
        where = f'{ENGLISH}:{one.line} ({one.kind} in "{one.section}"), {CHINESE}:{other.line} ({other.kind})'
        if one.kind != other.kind:
            return [*found, f'{where}: another kind of block; the rest is not compared']
        if facts_of(one) != facts_of(other):
            found.append(f'{where}:\n  {facts_of(one)}\n  {facts_of(other)}')
    if len(ours) != len(theirs):
        longer, name = (ours, ENGLISH) if len(ours) > len(theirs) else (theirs, CHINESE)
        extra = longer[min(len(ours), len(theirs))]
        found.append(f'{name}:{extra.line}: only there: {extra.text[:80]}')
    if benchmarks_of(english) != benchmarks_of(chinese):
        found.append('the benchmarks differ')
    return found


@pytest.fixture(scope='module')
def english() -> str:
    return (ROOT / ENGLISH).read_text(encoding='utf-8')


@pytest.fixture(scope='module')
def chinese() -> str:
    return (ROOT / CHINESE).read_text(encoding='utf-8')


def test_both_readmes_say_the_same(english: str, chinese: str) -> None:
    found = drift(english, chinese)
    assert not found, '\n'.join(['what README.md says must be said in README_zh-CN.md, too', *found])


def test_each_leads_to_the_other(english: str, chinese: str) -> None:
    assert english.splitlines()[2] == SWITCH[ENGLISH]
    assert chinese.splitlines()[2] == SWITCH[CHINESE]


def test_links_lead_to_files(chinese: str) -> None:
    targets = [target for _, target in _LINK.findall(chinese) if '://' not in target]
    assert targets
    assert not [target for target in targets if not (ROOT / target.split('#')[0]).exists()]


def test_every_paragraph_is_translated(chinese: str) -> None:
    prose = [block for block in blocks_of(chinese, SWITCH[CHINESE])[1:] if block.kind in ('paragraph', 'item', 'table')]
    assert not [block.line for block in prose if not _CJK.search(block.text)]


@pytest.mark.parametrize(
    ('old', 'new'),
    [
        ('\n### ', '\n## '),  # the level of a heading
        ("dict(type='LabelGuardHook')]", "dict(type='LabelHook')]"),  # code
        ('num_classes=19)\n```', 'num_classes=20)\n```'),  # code in a comment
        ('\n    # ', '\n    '),  # a comment less
        ('before   RuntimeError', 'before   ValueError'),  # the shown output
        ("| `'drop'` | |", "| `'drop'` |"),  # a cell
        ("| `'drop'`", "| `'dropped'`"),  # a `code` span of a table
        ('| TverskyLoss |', '| TverskyLoss2 |'),  # a name in a table
        ('(docs/findings.md)', '(docs/ranks.md)'),  # a link
        ('`mmguard demo`', '`mmguard demos`'),  # a command in a paragraph
        ('about 8 minutes', 'about 9 minutes'),  # a number in a sentence
        ('MaxIoUAssigner', 'HungarianAssigner'),  # a name in a sentence
        ('\n- **', '\n- one more\n- **'),  # an item of a list
        ('\n\n## How fast', '\n\nOne more.\n\n## How fast'),  # a paragraph
        (' | 1.05 | ', ' | 1.06 | '),  # a benchmark's number
        (' | holds |', ' | MISSED |'),  # a benchmark's verdict
    ],
)
def test_drift_is_seen(english: str, chinese: str, old: str, new: str) -> None:
    changed = english.replace(old, new, 1)
    assert changed != english, f'README.md no longer has {old!r}: write another example'
    assert drift(changed, chinese)
