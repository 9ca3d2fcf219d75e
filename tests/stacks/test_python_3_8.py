"""Only the matrix runs Python 3.8; everywhere else, what it would refuse is looked for in the sources."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Iterator, List

import pytest

ROOT = Path(__file__).parents[2]
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


def sources() -> List[Path]:
    return sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob('*.py'))


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
    paths = sources()
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
    ],
)
def test_what_came_later_is_seen(text: str, fault: str) -> None:
    assert any(fault in found for found in too_new(text))


@pytest.mark.parametrize('text', ['match x:\n    case 1: ...', 'with (a as b, c as d): ...'])
def test_later_syntax_is_seen(text: str) -> None:
    with pytest.raises(SyntaxError):
        list(too_new(text))


def test_postponed_annotations_are_fine() -> None:
    assert list(too_new('from __future__ import annotations\ndef f(x: list[int]) -> dict[str, int]: ...')) == []
