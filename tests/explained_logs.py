"""Explanations of logs that tests write, and tracebacks to put into them."""

from __future__ import annotations

import linecache
import traceback
from types import ModuleType
from typing import Any, Callable, Optional, Tuple

import pytest

from mmguard.commands.explain.explanation import Explanation, OutsideFacts, explain_text


def explain_log(text: str, known: Optional[OutsideFacts] = None) -> Explanation:
    """Explain a log in which something is wrong."""
    found = explain_text([text], known)
    assert found is not None, text
    return found


def find_code(text: str) -> str:
    """Return the code of the signature of a log; empty: its error is not known."""
    signature = explain_log(text).signature
    return signature.code if signature else ''


def find_first(text: str) -> Tuple[str, Tuple[str, ...]]:
    """Return the key of the first cause of a log, and the codes that confirm it."""
    first = explain_log(text).causes[0].cause
    return first.key, first.codes


def format_traceback(error: str, *frames: Tuple[str, ...]) -> str:
    """Write a traceback of frames (file, line of code, function: call) as Python does."""
    named = ((*frame, 'call')[:3] for frame in frames)
    rows = ''.join(f'  File "{file}", line 10, in {function}\n    {code}\n' for file, code, function in named)
    return f'Traceback (most recent call last):\n{rows}{error}\n'


def raised(error: str, file: str = '/home/me/train.py', code: str = 'loss = criterion(x, y)') -> str:
    """Write a traceback of one frame."""
    return format_traceback(error, (file, code))


def catch_traceback(call: Callable[[], Any]) -> str:
    """Return the traceback of code that raises."""
    try:
        call()
    except pytest.skip.Exception:
        raise
    except BaseException:
        return traceback.format_exc()
    raise AssertionError('it does not raise here')


def check_known(code: str, first: str, call: Callable[[], Any]) -> None:
    """Check that a signature knows the error of a call, and which cause is its first: its key or a code of it."""
    text = catch_traceback(call)
    found = explain_log(text)
    assert found.signature is not None, text
    assert found.signature.code == code, text
    cause = found.causes[0].cause
    assert not first or first in (cause.key, *cause.codes), cause.key


def import_source(name: str, source: str) -> Any:
    """Return a module whose lines a traceback shows as those of a file: pytest rewrites the asserts of test files."""
    module = ModuleType(name)
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    exec(compile(source, name, 'exec'), module.__dict__)
    return module
