"""Reading a log takes time with its bytes, however long and hostile its lines are: no pattern makes it more."""

from __future__ import annotations

import re
import time
import timeit
from functools import partial
from typing import Any, Callable, Dict, List, Pattern

import pytest

from mmguard.commands import report
from mmguard.commands.explain import explanation, log_errors, log_facts, reader
from mmguard.commands.explain.explanation import explain_text
from mmguard.findings.signatures import read_signatures

FRAME = '  File "x", line 1, in a'
FILLERS = [' ', 'a', '1', '_', '::', '1 ', 'a.', '", line 1', '.py', ' a']


def shortest(call: Callable[[], Any], runs: int = 3) -> float:
    return min(timeit.repeat(call, timer=time.process_time, repeat=runs, number=1))


def log_of(begin: str, filler: str, length: int) -> List[bytes]:
    """Return a log of 64 kB with lines of a length."""
    line = f'{begin}{filler * (length // len(filler))}!\n'.encode()
    text = line * max(1, 64 * 1024 // len(line))
    return [b'Traceback (most recent call last):\n', text, b'IndexError: Target 7 is out of bounds.\n']


@pytest.mark.parametrize('filler', [' ', '_', '::', '1 ', '", line 1'])
@pytest.mark.parametrize('begin', [FRAME, 'Error: exit code', 'KeyError: is not in the '])
def test_the_time_for_a_byte_does_not_grow_with_the_line(begin: str, filler: str) -> None:
    lengths = (1024, 4096, 16384, 65536)
    explain_text([b'Error\n'])  # compiles the patterns
    times = {length: shortest(partial(explain_text, log_of(begin, filler, length))) for length in lengths}
    assert max(times.values()) < 3 * times[1024], times


def patterns() -> Dict[str, Pattern[str]]:
    texts = [
        text
        for s in read_signatures()
        for c in s.causes
        for text in (s.pattern, s.place, c.context, c.supports, c.refutes)
    ]
    found = {text: explanation._compile(text) for text in texts if text}
    for module in (reader, log_errors, log_facts, report):
        found.update({one.pattern: one for one in vars(module).values() if isinstance(one, re.Pattern)})
    return found


def words_in(pattern: str) -> List[str]:
    plain = re.sub(r'\\(.)', r'\1', re.sub(r'\\[dwsSDWbBA]', '\0', pattern))
    return sorted(set(re.findall(r"[A-Za-z_ :./,'\"=]{4,}", plain)), key=len)[-6:]


@pytest.mark.parametrize('pattern', patterns().values(), ids=lambda one: one.pattern[:40])
def test_no_pattern_takes_the_square_of_its_text(pattern: Pattern[str]) -> None:
    search = pattern.match if pattern.pattern == log_errors._RANK.pattern else pattern.search
    for word in ['', FRAME, *words_in(pattern.pattern)]:
        for filler in FILLERS:
            for unit in (filler, word + filler):
                few, many = (word + unit * (length // len(unit)) + '!' for length in (512, 16384))
                if shortest(partial(search, many), 1) > 0.01:  # less is noise
                    assert shortest(partial(search, many)) < 200 * shortest(partial(search, few)), (word, unit)
