"""Statistics of a window, from the tallies that a test is about."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mmguard.labels.tally import Tally
from mmguard.log.statistics import Stats


def make_stats(
    iterations: int = 0,
    offending_iterations: int = 0,
    samples: int = 0,
    offending_samples: int = 0,
    pixels: Tally = Tally(),  # noqa: B008  copied below
    instances: Tally = Tally(),  # noqa: B008
    **fields: Any,
) -> Stats:
    """Return statistics with these sums of pixels and instances."""
    kinds = {'pixels': replace(pixels), 'instances': replace(instances)}
    return Stats(
        iterations,
        offending_iterations,
        kinds=kinds,
        samples=samples,
        offending_samples=offending_samples,
        **fields,
    )
