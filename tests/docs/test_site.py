"""What the site is made of: every page has its place, every link its target, every public name a docstring."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from pathlib import Path

import pytest
from doc_pages import ROOT

from tools.site.sources import MODULES, PARTS, api, write


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


#: Needed by the modules that are registered with mmengine.
OF_MMENGINE = ('mmguard.transforms', 'mmguard.hooks', 'mmguard.losses')
#: They import nnU-Net, beside which the site is not built: docs/nnunet.md describes them.
OF_NNUNET = ('mmguard.nnunet.trainer', 'mmguard.nnunet.label_space')


@pytest.mark.parametrize('module', MODULES)
def test_the_reference_has_every_public_name(module: str) -> None:
    """autodoc takes what ``__all__`` names, classes and functions with a docstring of their own."""
    if module in OF_MMENGINE:
        pytest.importorskip('mmengine')
    found = importlib.import_module(module)
    names = [name for name in getattr(found, '__all__', ()) if not name.startswith('__')]
    assert f'automodule:: {module}\n   :members:' in api()
    for name in names:
        value = getattr(found, name)
        assert inspect.isclass(value) or inspect.isfunction(value), name
        assert value.__doc__, name
        assert not value.__doc__.startswith(f'{name}('), name  # what NamedTuple and dataclass write


@pytest.mark.parametrize(
    'page', sorted([*(ROOT / 'docs').glob('*.md'), ROOT / 'README.md']), ids=lambda page: page.stem
)
def test_pages_import_what_the_reference_has(page: Path) -> None:
    imported = re.findall(r'^\s*(?:from|import) (mmguard[\w.]*)', page.read_text(encoding='utf-8'), re.MULTILINE)
    assert sorted({*imported} - {*MODULES, *OF_NNUNET}) == []
