"""What ``make matrix`` saw is what the package promises, what docs/stacks.md shows and what ``mmguard env`` says."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Dict, Iterator

import pytest
from packaging.version import Version

from mmguard.commands.env import read_matrix
from tools.matrix import BEGIN, END, ROWS, main, read, table

ROOT = Path(__file__).parents[2]


def promised() -> Dict[str, str]:
    """Package, or Python, -> the lower bound in pyproject.toml."""
    text = (ROOT / 'pyproject.toml').read_text(encoding='utf-8')
    (dependencies,) = re.findall(r'^dependencies = \[(.*)\]$', text, re.MULTILINE)
    (python,) = re.findall(r'^requires-python = ">=([\d.]+)"$', text, re.MULTILINE)
    return {**dict(re.findall(r'"(\w+)>=([\d.]+)"', dependencies)), 'python': python}


def test_the_lower_bounds_are_the_lowest_versions_that_were_green() -> None:
    lowest = {name: min((row[name] for row in read_matrix()), key=Version) for name in ('torch', 'numpy', 'python')}
    lowest['python'] = '.'.join(lowest['python'].split('.')[:2])  # 3.8 of 3.8.18
    assert {name: Version(bound) for name, bound in promised().items()} == {
        name: Version(seen) for name, seen in lowest.items()
    }, f'pyproject.toml should ask for {lowest}'


def test_no_row_is_left_out_and_both_numpy_are_among_them() -> None:
    assert [row['torch'] for row in read()] == [row.torch for row in ROWS]
    numpy = [row['numpy'] for row in read_matrix()]
    assert any(version.startswith('1.26') for version in numpy)
    assert any(version.startswith('2.') for version in numpy)


def test_the_table_is_what_was_seen() -> None:
    page = (ROOT / 'docs' / 'stacks.md').read_text(encoding='utf-8')
    assert page.partition(BEGIN)[2].partition(END)[0].strip().splitlines() == list(table(read()))


def test_an_unknown_version_is_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    monkeypatch.setattr('sys.argv', ['matrix.py', '2.1.2', '0.4.1'])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    assert '0.4.1' in capsys.readouterr().err


FOLDERS = ('mmguard', 'configs', 'examples', 'benchmarks', 'tests')
#: Attributes and arguments that came later.
LATER_NAMES = {
    'removeprefix', 'removesuffix', 'pairwise', 'batched', 'bit_count', 'lcm', 'nextafter', 'randbytes', 'unparse',
    'to_thread', 'is_relative_to', 'with_stem', 'hardlink_to', 'walk_up', 'aclosing', 'UnionType',
    'stdlib_module_names',
    'EncodingWarning', 'ExceptionGroup', 'TypeAlias', 'ParamSpec', 'Self', 'tomllib', 'zoneinfo', 'graphlib',
}  # fmt: skip
LATER_ARGUMENTS = {'zip': {'strict'}, 'dataclass': {'slots', 'kw_only', 'match_args'}, 'TemporaryDirectory': {'delete'}}
BUILTIN_GENERICS = {'list', 'dict', 'tuple', 'set', 'frozenset', 'type'}


def too_new(text: str) -> Iterator[str]:
    """What Python 3.8 would refuse, of the kinds that have crept into code bases before."""
    tree = ast.parse(text, feature_version=(3, 8))
    postponed = any(isinstance(n, ast.ImportFrom) and n.module == '__future__' for n in tree.body)
    annotations = set()
    for node in ast.walk(tree):
        for name in ('annotation', 'returns'):
            annotation = getattr(node, name, None)
            if isinstance(annotation, ast.AST):
                annotations.update(map(id, ast.walk(annotation)))
    for node in ast.walk(tree):
        if id(node) in annotations and postponed:
            continue
        line = getattr(node, 'lineno', 0)
        if isinstance(node, ast.Attribute) and node.attr in LATER_NAMES:
            yield f'{line}: .{node.attr}'
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            named = {alias.name for alias in node.names} | {getattr(node, 'module', None) or ''}
            yield from (f'{line}: {name}' for name in sorted(named & LATER_NAMES))
        if isinstance(node, ast.Call):
            called = getattr(node.func, 'id', getattr(node.func, 'attr', ''))
            given = {keyword.arg for keyword in node.keywords}
            yield from (f'{line}: {called}({name}=)' for name in sorted(LATER_ARGUMENTS.get(called, set()) & given))
        if isinstance(node, ast.Subscript) and getattr(node.value, 'id', '') in BUILTIN_GENERICS:
            yield f'{line}: {node.value.id}[...] at run time'  # type: ignore[attr-defined]
        is_or = isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr)
        if is_or and isinstance(node.left, (ast.Dict, ast.DictComp)):  # type: ignore[attr-defined]
            yield f'{line}: dict | dict'


def test_every_source_is_one_of_python_3_8() -> None:
    paths = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob('*.py'))
    assert len(paths) > 300
    found = {}
    for path in paths:
        try:
            found[str(path.relative_to(ROOT))] = list(too_new(path.read_text(encoding='utf-8')))
        except SyntaxError as error:
            found[str(path.relative_to(ROOT))] = [f'{error.lineno}: {error.msg}']
    assert {name: faults for name, faults in found.items() if faults} == {}


@pytest.mark.parametrize(
    ('text', 'fault'),
    [
        ("'a'.removeprefix('b')", '.removeprefix'),
        ('zip(a, b, strict=True)', 'zip(strict=)'),
        ('@dataclass(slots=True)\nclass A: ...', 'dataclass(slots=)'),
        ('Alias = list[int]', 'list[...]'),
        ('def f(x: list[int]): ...', 'list[...]'),
        ('from itertools import pairwise', 'pairwise'),
        ('merged = {} | other', 'dict | dict'),
        ('from __future__ import annotations\ndef f(x: list[int]) -> dict[str, int]: ...', ''),
        ('match x:\n    case 1: ...', 'syntax'),
        ('with (a as b, c as d): ...', 'syntax'),
    ],
)
def test_what_came_later_is_seen(text: str, fault: str) -> None:
    if fault == 'syntax':
        with pytest.raises(SyntaxError):
            list(too_new(text))
    else:
        assert [fault in found for found in too_new(text)] == [True] * bool(fault)
