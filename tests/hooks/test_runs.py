"""Arguments of the hooks, and what begins and ends with a training."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from typing import Any, Iterator, List

import pytest

pytest.importorskip('mmengine')

from mmguard import LabelGuardHook, RankGuardHook
from mmguard.hooks.runs import find_skipped_ratio, put_back_run, run_within


class Loop:
    """As mmengine's: ``run`` is a method of the class."""

    def __init__(self) -> None:
        self.calls: List[str] = []

    def run(self) -> str:
        self.calls.append('run')
        return 'model'


@contextmanager
def noted(calls: List[str], name: str) -> Iterator[None]:
    calls.append(f'{name} begins')
    try:
        yield
    except KeyboardInterrupt:
        calls.append(f'{name} sees it')
        raise
    finally:
        calls.append(f'{name} ends')


def test_a_run_is_within_all_contexts_and_the_next_is_not() -> None:
    loop = Loop()
    for name in ('a', 'b', 'a'):  # the first was for a training that never began
        run_within(loop, name, partial(noted, loop.calls, name))
    assert loop.run() == 'model'
    assert loop.calls == ['a begins', 'b begins', 'run', 'b ends', 'a ends']
    assert 'run' not in vars(loop)
    loop.run()
    assert loop.calls[5:] == ['run']


def test_within_a_run_the_loop_is_as_it_was() -> None:
    """A training that begins another one, with the same loop, after it was interrupted."""
    loop: Any = Loop()
    seen: List[bool] = []

    def interrupted() -> None:
        seen.append(loop.run is interrupted)
        raise KeyboardInterrupt

    loop.run = interrupted  # by someone else
    run_within(loop, 'a', partial(noted, loop.calls, 'a'))
    with pytest.raises(KeyboardInterrupt):
        loop.run()
    assert (loop.run, seen) == (interrupted, [True])
    assert loop.calls == ['a begins', 'a sees it', 'a ends']


def test_put_back_without_a_run() -> None:
    loop: Any = Loop()
    put_back_run(loop)
    run_within(loop, 'a', partial(noted, loop.calls, 'a'))
    put_back_run(loop)
    put_back_run(loop)
    assert 'run' not in vars(loop)
    mine = loop.run = lambda: None
    put_back_run(loop)
    assert loop.run is mine


@pytest.mark.parametrize(
    ('name', 'value', 'error'),
    [
        ('max_skipped_ratio', 1.01, ValueError),
        ('max_skipped_ratio', -0.1, ValueError),
        ('max_skipped_ratio', float('nan'), ValueError),
        ('max_skipped_ratio', '5 %', TypeError),
        ('guard', 1, TypeError),
    ],
)
def test_wrong_arguments_are_named(name: str, value: Any, error: type) -> None:
    with pytest.raises(error, match=name):
        LabelGuardHook(**{name: value})


def test_stands_between_runtime_info_and_the_logger() -> None:
    from mmengine.hooks import LoggerHook, RuntimeInfoHook
    from mmengine.runner.priority import get_priority

    order = [get_priority(hook.priority) for hook in (RuntimeInfoHook, LabelGuardHook, LoggerHook)]
    assert order == sorted(order)
    assert len(set(order)) == 3


@pytest.mark.parametrize(
    ('totals', 'ratio'),
    [
        ([0] * 11, 0),
        ([10, 5, 1, 0, 0, 0, 99, 9, 100, 4, 50], 0.25),
        ([10, 5, 1, 0, 40, 0, 99, 9, 100, 4, 100], 0.4),
    ],
)
def test_the_ratio_is_the_largest_of_the_three(totals: List[int], ratio: float) -> None:
    assert find_skipped_ratio(totals) == pytest.approx(ratio)


def test_a_timeout_is_positive() -> None:
    with pytest.raises(ValueError, match='timeout'):
        RankGuardHook(timeout=0)
