"""What the site is made of: every page has its place, every link its target, every public name a docstring."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from doc_pages import ROOT

from tools.site.sources import MODULES, PARTS, write


def test_every_page_has_its_place(tmp_path: Path) -> None:
    """Links that lead nowhere end it; `make docs` makes an error of every warning besides."""
    pages = write(tmp_path / 'source')
    assert pages == sorted(['index', *(page for part in PARTS.values() for page in part)])
    assert '## mmguard scan' in (tmp_path / 'source/cli.md').read_text(encoding='utf-8')


@pytest.mark.parametrize('module', MODULES)
def test_every_public_name_says_what_it_is(module: str) -> None:
    """Read, not imported: not every stack has what all modules need."""
    path = ROOT / module.replace('.', '/')
    tree = ast.parse((path / '__init__.py' if path.is_dir() else path.with_suffix('.py')).read_text(encoding='utf-8'))
    assert ast.get_docstring(tree)
    for node in tree.body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and not node.name.startswith('_'):
            assert ast.get_docstring(node), node.name
