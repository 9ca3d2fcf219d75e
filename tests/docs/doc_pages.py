"""The pages that people read: README, docs/, CONTRIBUTING, and the blocks of code in them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import List, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
#: Written by a command from what other tests look at.
GENERATED = ('docs/errors.md', 'docs/findings.md')


class Block(NamedTuple):
    """A fenced block."""

    page: str
    line: int
    language: str
    code: str

    @property
    def name(self) -> str:
        return f'{self.page}:{self.line}'


def pages() -> List[str]:
    """The pages that were written by hand, from the root of the repository."""
    found = [*ROOT.glob('*.md'), *(ROOT / 'docs').rglob('*.md'), *(ROOT / 'examples').glob('*.md')]
    names = sorted(path.relative_to(ROOT).as_posix() for path in found)
    return [name for name in names if name not in GENERATED]


def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding='utf-8')


def blocks_of(page: str) -> List[Block]:
    """The fenced blocks of a page, with the line on which each begins."""
    text = text_of(page)
    found = re.finditer(r'^```(\w*)\n(.*?)^```$', text, re.MULTILINE | re.DOTALL)
    return [Block(page, text.count('\n', 0, one.start()) + 1, one[1], one[2]) for one in found]


def blocks(language: str) -> List[Block]:
    """The blocks of all English pages in one language; the Chinese ones have the same code."""
    every = (block for page in pages() if 'zh' not in page for block in blocks_of(page))
    return [block for block in every if block.language == language]
