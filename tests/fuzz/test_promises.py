"""A broken promise is noticed, each of them."""

from __future__ import annotations

import random
import sys
import time
from pathlib import Path
from typing import Any, Callable, List

import promises
import pytest
from mutations import damaged_bytes, damaged_json, damaged_lines, damaged_table, damaged_xml, reduced


def _raise() -> int:
    raise KeyError('x')


def _say_traceback() -> int:
    print('KeyError: x\nThis should not happen', file=sys.stderr)
    return 2


def _print_traceback() -> int:
    print('Traceback (most recent call last)\n  File "a.py"\nKeyError: y', file=sys.stderr)
    return 1


def _take_memory() -> int:
    return len(bytearray(600 << 20)) * 0


@pytest.mark.parametrize(
    ('command', 'word'),
    [
        (_raise, 'traceback: KeyError'),
        (_say_traceback, 'unforeseen: KeyError: x'),
        (_print_traceback, 'unforeseen: KeyError: y'),
        (_take_memory, 'memory: '),
        (lambda: 3, 'exit code 3'),
        (lambda: sys.exit(4), 'exit code 4'),
        (lambda: print('\x1b[31m') or 0, "stdout shows '\\x1b'"),
        (lambda: print('\u202e', file=sys.stderr) or 0, "stderr shows '\\u202e'"),
        (lambda: print('\ud800') or 0, 'traceback: UnicodeEncodeError'),
    ],
)
def test_what_a_command_does_wrong(monkeypatch: pytest.MonkeyPatch, command: Callable[[], int], word: str) -> None:
    monkeypatch.setattr(promises, 'main', lambda argv: command())
    (said,) = promises.run([]).broken
    assert said.startswith(word)


def test_a_traceback_that_an_input_holds_is_none_of_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    said = 'a.json: "Traceback (most recent call last)" is no object'
    monkeypatch.setattr(promises, 'main', lambda argv: print(said, file=sys.stderr) or 2)
    assert promises.run([]).broken == []


def _count_for_ever() -> None:
    while True:
        pass


@pytest.mark.timeout(0)  # which takes the same signal
@pytest.mark.parametrize('command', [_count_for_ever, lambda: time.sleep(10)])
def test_a_command_that_hangs_is_ended(monkeypatch: pytest.MonkeyPatch, command: Callable[[], Any]) -> None:
    monkeypatch.setattr(promises, 'SECONDS', 0.1)
    monkeypatch.setattr(promises, 'main', lambda argv: command())
    (said,) = promises.run([]).broken
    assert said.startswith('hangs')


@pytest.mark.parametrize(
    ('name', 'text', 'word'),
    [
        ('a.json', '{"a": ', 'no JSON'),
        ('a.json.part', '{}', 'left behind'),
        ('a.html', '<html><script>fuzz()</script></html>', 'has a script'),
        ('a.html', '<html><script src="x"></script></html>', 'has <script>'),
        ('a.html', '<html><img src=x onerror=fuzz()></html>', 'has onerror='),
        ('a.html', '<html><a href="javascript:fuzz()">x</a></html>', 'has javascript:'),
        ('a.html', '<html>', 'not whole'),
        ('a.html', '<html>\x1b[31m</html>', 'shows'),
    ],
)
def test_what_is_wrong_with_a_file(tmp_path: Path, name: str, text: str, word: str) -> None:
    (tmp_path / name).write_text(text, encoding='utf-8')
    (said,) = promises.wrong_with(tmp_path / name)
    assert word in said


@pytest.mark.parametrize(
    ('damage', 'content'),
    [
        (damaged_json, b'{"a": [1, {"b": "c"}]}'),
        (damaged_lines, b'{"a": 1}\n{"a": [2]}\n'),
        (damaged_xml, b'<a><b>1</b><c><d>2</d></c></a>'),
        (damaged_table, b'a,b\n1,2\n'),
        (damaged_bytes, bytes(range(64))),
    ],
)
def test_damage_is_the_same_in_every_run_and_of_many_kinds(damage: Any, content: bytes) -> None:
    found: List[bytes] = [damage(random.Random(number), content) for number in range(200)]
    assert found == [damage(random.Random(number), content) for number in range(200)]
    assert len(set(found)) > 50


def test_an_input_that_fails_is_made_small() -> None:
    assert reduced(b'abc' * 50 + b'X' + b'def' * 50, lambda content: b'X' in content) == b'X'
