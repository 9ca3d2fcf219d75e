"""Lines and tables of the log, a rate limit for lines, and the warning about unreported guards."""

from __future__ import annotations

import time
from typing import Any, Callable, Container, Dict, Iterable, List, Optional, Sequence, Set, Tuple
from weakref import WeakSet

from mmguard.labels.instances import describe_boxes, describe_reasons
from mmguard.labels.tally import Tally
from mmguard.log.loop_stats import LoopStats
from mmguard.log.statistics import KINDS, Stats
from mmguard.text import plural, quantity, visible_name

_UNITS = {'pixels': 'px', 'instances': 'instances'}


def describe_place(mode: str, begin: Dict[str, int], end: Dict[str, int]) -> str:
    """Describe the iterations of a line, as the console counts them.

    Example:
        >>> describe_place('train', {'iter': 11}, {'iter': 50}), describe_place('val', {'iter': 7}, {'iter': 7})
        ('iters 11-50', 'val iter 7')
        >>> describe_place('train', {'iter': 91, 'epoch': 1}, {'iter': 10, 'epoch': 2})
        'epoch 1 iter 91 to epoch 2 iter 10'
    """
    head = '' if mode == 'train' else f'{mode} '
    first, last = (f'epoch {place["epoch"]} ' if 'epoch' in place else '' for place in (begin, end))
    if first != last:
        return f'{head}{first}iter {begin["iter"]} to {last}iter {end["iter"]}'
    numbers = f' {end["iter"]}' if begin['iter'] == end['iter'] else f's {begin["iter"]}-{end["iter"]}'
    return f'{head}{last}iter{numbers}'


def describe_offence(where: str, stats: Stats) -> str:
    """Return the line for a reader about one iteration, or about several since the last line.

    ``iter 37: 2,503 of 196,608 px skipped (value 11) in 3 of 4 images, first: data/camvid/trainannot/0001TP.png`` or
    ``iters 11-50: 31,204 px skipped (0.8 %, value 11) in 57 of 80 images, worst: data/camvid/trainannot/0016E5.png``.
    """
    by_loss = [tally for kind in KINDS for tally in stats.loss_samples[kind]]
    boxes = describe_boxes(stats.kinds['instances'].reasons)
    parts = [
        _describe_amount(stats, stats.kinds['pixels'], 'px', _list_values(stats.offending['pixels'])),
        _describe_amount(
            stats, stats.kinds['instances'], 'instances', _list_values(stats.offending['instances']) + boxes
        ),
    ]
    for name, tally in stats.losses.items():
        parts.append(_describe_amount(stats, tally, 'labels', _list_values(by_loss), f' by the loss {name}'))
    line = f'{where}: {"; ".join(part for part in parts if part)}'
    offending = [tally for kind in KINDS for tally in stats.offending[kind]] or by_loss
    if offending:
        line += f' in {stats.offending_samples:,} of {stats.samples:,} images'
        if stats.empty_images:
            line += f', {stats.empty_images:,} left without an instance'
        named = [tally for tally in offending if tally.source is not None]
        word, shown = (
            ('worst', sort_worst_first(named)[0]) if stats.iterations > 1 and named else ('first', offending[0])
        )
        line += f', {word}: {visible_name(str(shown.source))}'
    return line


def _describe_amount(stats: Stats, tally: Tally, unit: str, details: List[str], by: str = '') -> str:
    """Format ``2 of 9 instances skipped (value 600; 1 box without area)``; for several iterations, the share."""
    whole = '' if stats.iterations > 1 else f'of {tally.total:,} '
    changes = ((tally.skipped, 'skipped'), (tally.remapped, 'remapped'))
    amount = ', '.join(f'{count:,} {whole}{unit} {change}' for count, change in changes if count)
    if stats.iterations > 1:
        details = [', '.join([format_percent(tally.skipped + tally.remapped, tally.total), *details[:1]]), *details[1:]]
    described = f' ({"; ".join(details)})' if details else ''
    return f'{amount}{by}{described}' if amount else ''


def _list_values(tallies: List[Tally]) -> List[str]:
    """Return ``['values 11, 24']``, or an empty list."""
    values = sorted({value for tally in tallies for value in tally.values})
    shown = ', '.join(map(str, values[:6])) + (', ...' if len(values) > 6 else '')
    return [f'{plural(len(values), "value")} {shown}'] if values else []


def summarize_loop(mode: str, loop: LoopStats, top_k: int, out_file: Optional[str]) -> str:
    """Summarize a loop: its totals and, for each kind, a table of the ``top_k`` files with the most offences.

    One line if all labels are valid; empty if none was seen.
    """
    totals = loop.totals()
    if not (totals or totals.filled):
        return describe_valid(mode, totals)
    lines = ['summary']
    for kind in KINDS:
        number = loop.files.number(kind)
        if number:
            worst = loop.worst(kind, top_k)
            lines += format_files(f'mmguard: {mode}, {kind}', worst, number - len(worst))
    lines += describe_totals(totals)
    lines += describe_reasons_by_kind(loop.sums.kinds)
    if out_file:
        lines.append(f'every iteration: {out_file}')
    return '\n'.join(lines)


def sort_worst_first(tallies: Iterable[Tally]) -> List[Tally]:
    """Sort tallies of files by the number of skipped or remapped elements, the largest first."""
    return sorted(tallies, key=lambda t: (-(t.skipped + t.remapped), str(t.source)))


def format_files(title: str, worst: Sequence[Tally], more: int) -> List[str]:
    """Return the rows of a table of files, a line each: long names are not cut, so that they can be copied."""
    rows = [title, f'{"skipped":>12}{"remapped":>12}  file (values)']
    for tally in worst:
        name = visible_name(str(tally.source))
        rows.append(f'{tally.skipped:>12,}{tally.remapped:>12,}  {name} ({_describe_values(tally)})')
    return rows + ([f'{"...":>24}  and {quantity(more, "more file")}'] if more else [])


def _describe_values(tally: Tally) -> str:
    """Describe the most frequent values with their counts, and the faults of boxes."""
    ranked = sorted(tally.values.items(), key=lambda item: -item[1])
    items = [f'{value}: {number:,}' for value, number in ranked[:6]]
    others = tally.other_values + sum(number for _, number in ranked[6:])
    items += [f'others: {others:,}'] if others else []
    return ', '.join(items + describe_boxes(tally.reasons))


def describe_totals(totals: Stats, ranks: int = 1) -> List[str]:
    """Return the sums of a loop, one line per counted thing.

    Args:
        totals (Stats): Sums of all iterations; without ``iterations``, of the offending ones only, like the shares.
        ranks (int): Number of processes in the sums.
    """
    among = '' if totals.iterations else ' in the offending iterations'
    lines = []
    for kind in KINDS:
        tally, unit = totals.kinds[kind], _UNITS[kind]
        if tally.total:
            share = format_percent(tally.skipped, tally.total)
            mapped = f', {tally.mapped:,} mapped by label_map' if tally.mapped else ''
            lines.append(
                f'{unit}: {tally.skipped:,} of {tally.total:,} skipped ({share}){among}, {tally.remapped:,} remapped'
                f'{mapped}'
            )
    for name, count in totals.losses.items():
        if count:
            seen = f' of {count.total:,}' if count.total else ''
            lines.append(f'loss {name}: {count.skipped:,}{seen} labels skipped, {count.remapped:,} remapped')
    if totals.empty_images:
        lines.append(f'{quantity(totals.empty_images, "image")} seen without any instance')
    lines += list_filled(totals.filled)
    files = f'{totals.offending_files:,} of {quantity(totals.files, "file")}'
    files = files if totals.files else quantity(totals.offending_files, 'file')
    if totals.iterations:
        each = f' of {ranks} ranks' if ranks > 1 else ''
        lines.append(f'{files}, {totals.offending_iterations:,} of {quantity(totals.iterations, "iteration")}{each}')
    else:
        logged = quantity(totals.offending_iterations, 'iteration')
        lines.append(f'{files}, in the {logged} of the log (only those with an offence)')
    return lines


def describe_reasons_by_kind(found: Dict[str, Tally]) -> List[str]:
    """Describe values and box faults over all files, one line per kind that has any."""
    described = {kind: describe_reasons(tally) for kind, tally in found.items()}
    return [f'{kind}: {words}' for kind, words in described.items() if words]


def describe_valid(mode: str, totals: Stats) -> str:
    """Return ``train: all labels valid (1,179,648 px in 8 files)``; empty if no label was seen."""
    seen = [f'{totals.kinds[kind].total:,} {_UNITS[kind]}' for kind in KINDS if totals.kinds[kind].total]
    files = f' in {quantity(totals.files, "file")}' if totals.files else ''
    mapped = totals.kinds['pixels'].mapped
    seen[1:] = [f'{mapped:,} px mapped by label_map'] if mapped else []
    return f'{mode}: all labels valid ({", ".join(seen)}{files})' if seen else ''


def list_filled(filled: Dict[str, Dict[str, int]]) -> List[str]:
    """Return ``rank 1 had no loss_mask in 12 iterations; filled with zeros``, one line per rank and loss."""
    return [
        f'rank {rank} had no {loss} in {quantity(number, "iteration")}; filled with zeros'
        for loss, by_rank in filled.items()
        for rank, number in sorted(by_rank.items(), key=lambda item: (len(item[0]), item[0]))
    ]


def describe_skipped_ratio(ratio: float, limit: float, worst: Sequence[Tally]) -> str:
    """Explain why a training stops at ``max_skipped_ratio``."""
    return (
        f'{100 * ratio:.3g} % of the labels seen so far were skipped, more than max_skipped_ratio={limit}: '
        f'{", ".join(visible_name(str(tally.source)) for tally in worst)}. Correct the labels, or raise the limit'
    )


def format_percent(part: int, whole: int) -> str:
    return f'{100 * part / whole:.3g} %' if whole else '0 %'


#: Rank, names of losses, samples.
OneRank = Tuple[int, Sequence[str], Sequence[str]]


def describe_filled(filled: Sequence[OneRank]) -> str:
    """Return ``rank 1 had no loss_bbox (samples: a.jpg); filled with zeros, ...``."""
    lacks = [f'rank {rank} had no {", ".join(losses)} (samples: {list_names(files)})' for rank, losses, files in filled]
    return f'{list_names(lacks, "; ")}; filled with zeros to keep the ranks in step. Most often a batch has no targets'


def describe_mismatch(lacks: Sequence[OneRank], has: Sequence[Container[str]]) -> str:
    """Describe which rank lacks which loss, and its samples."""
    lines = []
    for (rank, losses, files), present in zip(lacks, has):
        missing = [loss for loss in losses if loss not in present]
        constant = [loss for loss in losses if loss in present]
        parts = [f'lacks {", ".join(missing)}'] if missing else []
        parts += [f'has no gradient for {", ".join(constant)}'] if constant else []
        if parts:
            lines.append(f'rank {rank} {"; ".join(parts)} (samples: {list_names(files)})')
    return (
        f'ranks differ in their losses: {". ".join(lines)}. A head that skips a branch, most often because a batch has '
        f"no targets: DistributedDataParallel would wait forever. on_mismatch='fill' trains on with zeros"
    )


def describe_nonfinite(reports: Sequence[OneRank]) -> str:
    """Return ``rank 1: loss_bbox (samples: a.jpg, b.jpg)``."""
    return '; '.join(
        f'rank {rank}: {", ".join(losses)} (samples: {list_names(files)})' for rank, losses, files in reports
    )


def describe_unreached(names: Sequence[str]) -> str:
    """Describe the parameters without a gradient, with advice."""
    return (
        f'no loss of any rank reaches {quantity(len(names), "parameter")}: {list_names(names)}. With a first batch '
        f'without '
        f'targets that is to be expected. A branch that is never used (frozen, dropped) needs requires_grad=False, or '
        f'DistributedDataParallel find_unused_parameters=True'
    )


def list_names(items: Sequence[str], between: str = ', ') -> str:
    """List the first eight items."""
    more = [f'and {len(items) - 8:,} more'] if len(items) > 8 else []
    return between.join([*map(visible_name, items[:8]), *more]) or 'unknown'


class RateLimiter:
    """Rate limit for log lines: the first ones pass, then one per period, with the number of suppressed lines.

    Args:
        first (int): Lines that always pass.
        seconds (float): Minimum time between later lines, seconds.
    """

    def __init__(self, first: int = 20, seconds: float = 10.0) -> None:
        self._left = first
        self._seconds = seconds
        self._last = float('-inf')
        self._held_back = 0

    def allow(self) -> bool:
        now = time.monotonic()
        if self._left > 0 or now - self._last >= self._seconds:
            self._left -= 1
            self._last = now
            return True
        self._held_back += 1
        return False

    def describe_held_back(self) -> str:
        """Return the end of a line, `` (and 3 such iterations since the last line)``, or nothing."""
        held_back, self._held_back = self._held_back, 0
        return f' (and {quantity(held_back, "such iteration")} since the last line)' if held_back else ''


#: Name of a run, and a function that logs a warning in it.
Run = Tuple[str, Callable[[str], None]]

_REPORTERS: WeakSet[Any] = WeakSet()
_WARNED_RUNS: Set[str] = set()
_find_run: Optional[Callable[[], Optional[Run]]] = None


def set_run_finder(find_run: Callable[[], Optional[Run]]) -> None:
    """Set the function that returns the current run of a framework, ``None`` outside of a run."""
    global _find_run
    _find_run = find_run


def add_reporter(hook: Any) -> None:
    """Remember a hook that reports guards: a Runner builds its hooks after its model and before its data sets."""
    _REPORTERS.add(hook)


def warn_unreported(guard: str) -> None:
    """Warn once per run if no hook reports what a guard does."""
    run = None if _REPORTERS or _find_run is None else _find_run()
    if run is not None and run[0] not in _WARNED_RUNS:
        _WARNED_RUNS.add(run[0])
        run[1](
            f'guard: {guard} takes out invalid labels, but nothing reports them: this run has no LabelGuardHook. Add '
            f"dict(type='LabelGuardHook') to custom_hooks"
        )
