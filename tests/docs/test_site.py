"""Sources of the site: every page has its place, every code a page, every public name a docstring."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path

import numpy as np
import pytest
from doc_pages import ROOT
from PIL import Image

from mmguard.commands.page.pictures import LOUD
from mmguard.findings.plugins import list_own_rules
from mmguard.findings.signatures import read_signatures
from tools.site.examples import EXAMPLES
from tools.site.sources import MODULES, PARTS, write


@pytest.fixture(scope='module')
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp('site')
    write(folder)
    return folder


def test_every_page_has_its_place(site: Path) -> None:
    """`make docs` makes an error of every link without a target besides."""
    written = {path.relative_to(site).with_suffix('').as_posix() for path in site.rglob('*.md')}
    listed = {re.sub(r'.*<(.*)>', r'\1', page) for part in PARTS.values() for page in part}
    assert {name for name in written if not name.startswith('docs/codes/')} == listed | {'index'}


def test_every_code_has_a_page(site: Path) -> None:
    codes = {
        **{rule.code: rule.summary for rule in list_own_rules()},
        **{one.code: one.title for one in read_signatures()},
    }
    pages = {path.stem: path.read_text(encoding='utf-8') for path in (site / 'docs/codes').iterdir()}
    assert sorted(pages) == sorted(codes)
    assert {code: text.splitlines()[0].replace('\\', '') for code, text in pages.items()} == {
        code: f'# {code}: {summary}' for code, summary in codes.items()
    }
    for rule in list_own_rules():
        assert all(text in pages[rule.code] for text in (rule.why, rule.example.wrong, rule.example.right, rule.limits))


def test_pages_of_codes_show_examples(site: Path) -> None:
    """Each picture is of a data set that has this finding: drawing it asserts that."""
    assert len(EXAMPLES) > 5
    for code in EXAMPLES:
        names = re.findall(
            r'!\[.+\]\(\.\./images/codes/(.*)\)', (site / f'docs/codes/{code}.md').read_text(encoding='utf-8')
        )
        assert names
        for name in names:
            with Image.open(site / 'docs/images/codes' / name) as picture:
                pixels = np.asarray(picture.convert('RGB')).astype(int)
            assert (np.abs(pixels - LOUD).max(axis=2) < 60).any()  # what is wrong is painted


def test_files_are_shown_and_linked(site: Path) -> None:
    for folder in ('configs', 'examples'):
        page = (site / folder / 'README.md').read_text(encoding='utf-8')
        for path in (ROOT / folder).rglob('*.py'):
            assert f'# {path.name}\n' in page
            assert path.read_text(encoding='utf-8') in page
    assert '](/docs/codes/MG107.md)' in (site / 'docs/formats.md').read_text(encoding='utf-8')
    assert '](/examples/README.md#ddp_plain_pytorchpy)' in (site / 'docs/ranks.md').read_text(encoding='utf-8')


#: Needed by the modules that are registered with mmengine.
OF_MMENGINE = ('mmguard.transforms', 'mmguard.hooks', 'mmguard.losses')
#: They import nnU-Net: docs/nnunet.md describes them.
OF_NNUNET = ('mmguard.nnunet.trainer', 'mmguard.nnunet.label_space', 'mmguard.nnunet.testing')


@pytest.mark.parametrize('module', MODULES)
def test_every_public_name_has_a_docstring(module: str) -> None:
    if module in OF_MMENGINE:
        pytest.importorskip('mmengine')
    found = importlib.import_module(module)
    assert found.__doc__
    names = [name for name in getattr(found, '__all__', ()) if not name.startswith('__')]
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
    assert sorted({*imported} - {*MODULES, *OF_NNUNET, 'mmguard.lightning'}) == []
