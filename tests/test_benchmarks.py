"""The benchmarks of what a training does still run; how fast it is, they print by hand."""

from __future__ import annotations

from importlib import import_module

import pytest

pytest.importorskip('mmdet')  # as the benchmarks: beside mmseg and mmdet


@pytest.mark.slow
@pytest.mark.same_everywhere
@pytest.mark.parametrize('group', ['hooks', 'transforms'])
def test_a_benchmark_runs(group: str) -> None:
    rows = import_module(f'benchmarks.{group}').rows('cpu', 1)
    assert rows
    assert all(row.ours > 0 for row in rows)
