"""Pytest plugin that runs all tests once, then for each mutant the tests that reach it, in a forked process.

The fork keeps what is imported and collected, so a mutant costs only its tests. Tests that fail with mutmut's switches
(they trace or compile functions) are left out.
"""

from __future__ import annotations

import gc
import os
import resource
import signal
from pathlib import Path
from typing import Any, Dict, Iterator, List, Set

import hypothesis.internal.conjecture.engine as engine
import pytest
from mutmut.mutation import trampoline
from mutmut.state import state
from mutmut.utils.format_utils import mangled_name_from_mutant_name

#: Seconds of processor time for the tests of a mutant, the quickest first; tests beyond this limit are left out.
AT_MOST = 10.0


def pytest_configure(config: pytest.Config) -> None:
    engine.MAX_SHRINKING_SECONDS = 0  # one example that fails is enough


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool:
    seconds, reaching = _run_all(session)
    gc.freeze()  # so that a collection in a child does not write to memory shared with this process
    with open(os.environ['FATES'], 'a', encoding='utf-8') as fates:
        for mutant in Path(os.environ['MUTANTS']).read_text(encoding='utf-8').split():
            tests, total = [], 0.0
            for item in sorted(reaching.get(mangled_name_from_mutant_name(mutant), ()), key=seconds.__getitem__):
                total += seconds[item]
                if total > AT_MOST:
                    break
                tests.append(item)
            fates.write(f'{mutant}\t{_decide_fate(mutant, tests, total) if tests else "not reached"}\t{len(tests)}\n')
            fates.flush()
    return True


def _run_all(session: pytest.Session) -> Any:
    """Run all tests; return {test: seconds} of those that pass, and {function: tests that reach it}."""
    seconds: Dict[pytest.Item, float] = {}
    reaching: Dict[str, Set[pytest.Item]] = {}
    trampoline.set_mutant_under_test('stats')
    for item in session.items:
        before = _processor_time()
        failed = _fails(item)
        hits, state()._stats = set(state()._stats), set()
        if failed:
            print(f'takes no part: {item.nodeid}')
            continue
        seconds[item] = _processor_time() - before
        for function in hits:
            reaching.setdefault(function, set()).add(item)
    print(f'{len(seconds)} tests, {sum(seconds.values()):.0f} s', flush=True)
    return seconds, reaching


def _decide_fate(mutant: str, tests: List[pytest.Item], total: float) -> str:
    child = os.fork()
    if child == 0:
        limit = int(_processor_time() + 10 * total + 10)
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1))
        trampoline.set_mutant_under_test(mutant)
        code = 2
        try:
            code = int(any(map(_fails, tests)))
        finally:
            os._exit(code)
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL):
        return 'timed out'
    return 'survived' if status == 0 else 'killed'


def _fails(item: pytest.Item) -> bool:
    reports: List[pytest.TestReport] = []
    for report in _reports(item):
        reports.append(report)
    return any(report.failed for report in reports)


def _reports(item: pytest.Item) -> Iterator[pytest.TestReport]:
    from _pytest.runner import runtestprotocol

    yield from runtestprotocol(item, log=False, nextitem=None)


def _processor_time() -> float:
    return sum(os.times()[:4])
