"""examples/README.md and docs/recipes.md name what is there; examples are short, and mark the lines of mmguard."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import List

import pytest
from example_scripts import EXAMPLES

TABLE = (EXAMPLES / 'README.md').read_text()
RECIPES = (EXAMPLES.parent / 'docs/recipes.md').read_text()
SCRIPTS = sorted(path for path in EXAMPLES.glob('*.py') if not path.name.startswith('small_'))


def test_the_table_names_every_script_and_every_link_leads_somewhere() -> None:
    rows = re.findall(r'\| \[(\S+?\.py)\]\(\1\) \|$', TABLE, re.M)
    assert sorted(rows) == [path.name for path in SCRIPTS]
    for text, folder in ((TABLE, EXAMPLES), (RECIPES, EXAMPLES.parent / 'docs')):
        links = [link for link in re.findall(r'\]\(([^)#]+)\)', text) if '://' not in link]
        assert [link for link in links if not (folder / link).exists()] == []


@pytest.mark.parametrize('path', SCRIPTS, ids=lambda path: path.stem)
def test_an_example_is_short_and_has_a_test(path: Path) -> None:
    assert len(path.read_text().splitlines()) < 80
    assert ast.get_docstring(ast.parse(path.read_text()))
    tests = [test for test in (EXAMPLES.parent / 'tests').rglob('test_*.py') if test != Path(__file__)]
    assert any(path.name in test.read_text() for test in tests)


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


def python_blocks(text: str) -> List[str]:
    return re.findall(r'```python\n(.*?)```', text, re.S)


def test_the_recipes_are_python() -> None:
    assert len(python_blocks(RECIPES)) == 3
    for block in python_blocks(RECIPES):
        ast.parse(block)
