"""What a function of failing code is: it raises, and its traceback is explained."""

from __future__ import annotations

import linecache
import traceback
from types import ModuleType
from typing import Callable, List, NamedTuple, Tuple

import pytest

from mmguard.tools.explain.explained import Explanation, explain_text


class Failing(NamedTuple):
    """Code that fails, and what is to be said of it.

    Attributes:
        code (str): Of its signature.
        call (callable): Raises.
        first (str): A code that decides the first cause; empty: any.
        needs (tuple[str]): Packages without which it cannot run.
    """

    code: str
    call: Callable[[], object]
    first: str = ''
    needs: Tuple[str, ...] = ()


class Table:
    """Collects failing code."""

    def __init__(self, *needs: str) -> None:
        self.rows: List[Failing] = []
        self.needs = needs

    def says(self, code: str, first: str = '', *needs: str) -> Callable[[Callable[[], object]], Callable[[], object]]:
        def add(call: Callable[[], object]) -> Callable[[], object]:
            self.rows.append(Failing(code, call, first, (*self.needs, *needs)))
            return call

        return add

    @property
    def cases(self) -> List[object]:
        return [pytest.param(row, id=f'{row.code}-{row.call.__name__}') for row in self.rows]


def explained(row: Failing) -> Explanation:
    """What is said of the traceback that the code makes here."""
    for package in row.needs:
        pytest.importorskip(package)
    text = traceback_of(row.call)
    found = explain_text([text])
    assert found is not None, text
    return found


def traceback_of(call: Callable[[], object]) -> str:
    try:
        call()
    except BaseException:
        return traceback.format_exc()
    raise AssertionError(f'{call.__name__} does not fail here')


def holds(row: Failing) -> None:
    """Asserts the signature, and the cause that stands first."""
    found = explained(row)
    assert found.signature is not None, f'{row.code} is not known: {found.raised.said}'
    assert found.signature.code == row.code, (
        f'{found.signature.code}: {found.raised.said}\n{found.raised.around[-600:]}'
    )
    if row.first:
        assert row.first in found.causes[0].cause.codes, found.causes[0].cause.text


def from_file(name: str, source: str) -> ModuleType:
    """A module whose lines a traceback shows as those of a file."""
    module = ModuleType(name)
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    exec(compile(source, name, 'exec'), module.__dict__)
    return module
