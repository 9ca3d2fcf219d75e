"""examples/README.md and docs/recipes.md name what is there; examples are short, and mark the lines of mmguard."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from example_scripts import EXAMPLES, last_words

TABLE = (EXAMPLES / 'README.md').read_text()
RECIPES = (EXAMPLES.parent / 'docs/recipes.md').read_text()
SCRIPTS = sorted(EXAMPLES.glob('*.py'))


def test_the_table_names_every_script() -> None:
    rows = re.findall(r'\| \[(\S+?\.py)\]\(\1\) \|$', TABLE, re.M)
    assert sorted(rows) == [path.name for path in SCRIPTS]


@pytest.mark.parametrize('path', SCRIPTS, ids=lambda path: path.stem)
def test_an_example_is_short_and_has_a_test(path: Path) -> None:
    assert len(path.read_text().splitlines()) < 100
    assert ast.get_docstring(ast.parse(path.read_text()))
    tests = [test for test in (EXAMPLES.parent / 'tests').rglob('test_*.py') if test != Path(__file__)]
    assert any(path.name in test.read_text() for test in tests)


@pytest.mark.slow
@pytest.mark.parametrize(
    ('name', 'missing', 'command'),
    [
        ('mlperf_retinanet.py', 'torchvision', '`pip install torchvision`'),
        ('rtdetr_det_engine.py', 'transformers', '`pip install transformers scipy pillow`'),
        ('nnunet_guarded.py', 'nnunetv2', '`pip install nnunetv2 nibabel`'),
        ('pidnet_mmseg.py', 'mmseg', 'docs/stacks.md'),
    ],
)
def test_without_its_package_it_ends_with_one_line(name: str, missing: str, command: str) -> None:
    assert command in last_words(str(EXAMPLES / name), missing)
    assert missing in ast.get_docstring(ast.parse((EXAMPLES / name).read_text())).replace('mmsegmentation', 'mmseg')


@pytest.mark.slow
def test_without_torchrun_it_ends_with_one_line() -> None:
    assert '`torchrun --nproc-per-node 2`' in last_words(str(EXAMPLES / 'ddp_plain_pytorch.py'))


@pytest.mark.parametrize('name', ['ddp_plain_pytorch.py', 'rtdetr_det_engine.py'])
def test_it_says_how_it_is_started(name: str) -> None:
    assert f'torchrun --nproc-per-node 2 examples/{name}' in (EXAMPLES / name).read_text()


FUNCTION = re.compile(r'\b(guard_\w+|align_losses)\b')


@pytest.mark.parametrize('name', ['mlperf_retinanet.py', 'rtdetr_det_engine.py'])
def test_marked_lines_are_those_of_the_table_and_of_the_recipe(name: str) -> None:
    marked = [line for line in (EXAMPLES / name).read_text().splitlines() if line.endswith('# mmguard')]
    functions = {function for line in marked for function in FUNCTION.findall(line)}
    (row,) = [line for line in TABLE.splitlines() if f'({name})' in line]
    assert set(FUNCTION.findall(row)) == functions
    for function in functions:
        assert len([line for line in marked if function in line]) == 2  # imported, and called
        assert re.search(rf'^\+ .*\b{function}\(', RECIPES, re.M)


def test_who_copies_the_line_for_two_stages_gets_min_label() -> None:
    """Without it torchvision's two-stage detectors and SSD silently train a label 0 as background."""
    rows = [line for line in TABLE.splitlines() if line.startswith('| ') and 'guard_batch(' in line]
    assert [row for row in rows if 'R-CNN' in row and 'SSD' in row]
    assert [row for row in rows if ('R-CNN' in row) != ('min_label=1' in row)] == []
