"""What is said of ranks that differ: who lacked which loss, or had one that is not finite."""

from __future__ import annotations

from typing import Container, Sequence, Tuple

from mmguard.text.visible import visible_name
from mmguard.text.words import counted

#: Rank, names of losses, samples.
OneRank = Tuple[int, Sequence[str], Sequence[str]]


def describe_filled(filled: Sequence[OneRank]) -> str:
    """``rank 1 had no loss_bbox (samples: a.jpg); filled with zeros, ...``."""
    lacks = [f'rank {rank} had no {", ".join(losses)} (samples: {listed(files)})' for rank, losses, files in filled]
    return (
        f'{listed(lacks, "; ")}; filled with zeros, so that the ranks stay in step. Most often a batch without targets'
    )


def describe_mismatch(lacks: Sequence[OneRank], has: Sequence[Container[str]]) -> str:
    """Which rank lacks which loss, and which samples it had.

    Args:
        lacks (sequence of OneRank): Losses that a rank does not have, or has without a graph; of all ranks.
        has (sequence of containers): The names of those that it has.
    """
    lines = []
    for (rank, losses, files), present in zip(lacks, has):
        missing = [loss for loss in losses if loss not in present]
        constant = [loss for loss in losses if loss in present]
        parts = [f'lacks {", ".join(missing)}'] if missing else []
        parts += [f'has no gradient for {", ".join(constant)}'] if constant else []
        if parts:
            lines.append(f'rank {rank} {"; ".join(parts)} (samples: {listed(files)})')
    return (
        f'ranks differ in their losses: {". ".join(lines)}. A head that skips a branch, most often because a batch has '
        f"no targets: DistributedDataParallel would wait for ever. on_mismatch='fill' trains on with zeros"
    )


def describe_nonfinite(reports: Sequence[OneRank]) -> str:
    """``rank 1: loss_bbox (samples: a.jpg, b.jpg)``."""
    return '; '.join(f'rank {rank}: {", ".join(losses)} (samples: {listed(files)})' for rank, losses, files in reports)


def describe_unreached(names: Sequence[str]) -> str:
    """Which parameters get no gradient, and what to do."""
    return (
        f'no loss of any rank reaches {counted(len(names), "parameter")}: {listed(names)}. With a first batch without '
        f'targets that is to be expected. A branch that is never used (frozen, dropped) needs requires_grad=False, or '
        f'DistributedDataParallel find_unused_parameters=True'
    )


def listed(items: Sequence[str], between: str = ', ') -> str:
    """The first eight."""
    more = [f'and {len(items) - 8:,} more'] if len(items) > 8 else []
    return between.join([*map(visible_name, items[:8]), *more]) or 'unknown'
