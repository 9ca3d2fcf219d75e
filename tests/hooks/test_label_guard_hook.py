from __future__ import annotations

from typing import Any

import pytest

from mmguard import LabelGuardHook


@pytest.mark.parametrize(
    ('name', 'value', 'error'),
    [
        ('interval', 0, ValueError),
        ('interval', 1.5, TypeError),
        ('interval', True, TypeError),
        ('max_skipped_ratio', 1.01, ValueError),
        ('max_skipped_ratio', -0.1, ValueError),
        ('max_skipped_ratio', float('nan'), ValueError),
        ('max_skipped_ratio', '5 %', TypeError),
        ('top_k', -1, ValueError),
        ('top_k', '3', TypeError),
    ],
)
def test_wrong_arguments_are_named(name: str, value: Any, error: type) -> None:
    with pytest.raises(error, match=name):
        LabelGuardHook(**{name: value})


@pytest.mark.parametrize('ratio', [0, 0.0, 1, 1.0, None])
def test_limits_of_the_ratio(ratio: Any) -> None:
    assert LabelGuardHook(max_skipped_ratio=ratio).max_skipped_ratio == ratio


def test_stands_between_runtime_info_and_the_logger() -> None:
    from mmengine.hooks import LoggerHook, RuntimeInfoHook
    from mmengine.runner.priority import get_priority

    order = [get_priority(hook.priority) for hook in (RuntimeInfoHook, LabelGuardHook, LoggerHook)]
    assert order == sorted(order)
    assert len(set(order)) == 3


@pytest.mark.parametrize(
    ('name', 'rank', 'expected'),
    [
        ('label_guard.jsonl', 0, 'label_guard.jsonl'),
        ('label_guard.jsonl', 1, 'label_guard.rank1.jsonl'),
        ('log', 12, 'log.rank12'),
    ],
)
def test_every_rank_has_its_own_file(name: str, rank: int, expected: str) -> None:
    from mmguard.log.json_lines import name_for_rank

    assert name_for_rank(name, rank) == expected
