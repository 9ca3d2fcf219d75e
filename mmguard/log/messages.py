"""Lines and tables of the log, and how often a line may come."""

from __future__ import annotations

import time
from typing import Container, Dict, Iterable, List, Optional, Sequence, Tuple

from mmguard.labels.instances import describe_boxes, describe_reasons
from mmguard.labels.tally import Tally
from mmguard.log.iteration_stats import KINDS, IterationStats, LoopTotals
from mmguard.log.loop_stats import LoopStats
from mmguard.text.visible import visible_name
from mmguard.text.words import counted, plural

_UNITS = {'pixels': 'px', 'instances': 'instances'}


def describe_place(mode: str, begin: Dict[str, int], end: Dict[str, int]) -> str:
    """Return which iterations a line is about, as the console counts them.

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


def offence_line(where: str, span: IterationStats) -> str:
    """Return the line for a reader about one iteration, or about several since the last line.

    ``iter 37: 2,503 of 196,608 px skipped (value 11) in 3 of 4 images, first: data/camvid/trainannot/0001TP.png`` or
    ``iters 11-50: 31,204 px skipped (0.8 %, value 11) in 57 of 80 images, worst: data/camvid/trainannot/0016E5.png``.
    """
    by_loss = [tally for kind in KINDS for tally in span.loss_samples[kind]]
    boxes = describe_boxes(span.instances.reasons)
    parts = [
        _amount(span, span.pixels, 'px', _list_values(span.offending['pixels'])),
        _amount(span, span.instances, 'instances', _list_values(span.offending['instances']) + boxes),
    ]
    for name, count in span.losses.items():
        tally = Tally(count.seen, count.skipped, count.remapped)
        parts.append(_amount(span, tally, 'labels', _list_values(by_loss), f' by the loss {name}'))
    line = f'{where}: {"; ".join(part for part in parts if part)}'
    offending = [tally for kind in KINDS for tally in span.offending[kind]] or by_loss
    if offending:
        line += f' in {span.offending_samples:,} of {span.samples:,} images'
        if span.empty_images:
            line += f', {span.empty_images:,} left without an instance'
        named = [tally for tally in offending if tally.source is not None]
        word, shown = ('worst', worst_first(named)[0]) if span.iterations > 1 and named else ('first', offending[0])
        line += f', {word}: {visible_name(str(shown.source))}'
    return line


def _amount(span: IterationStats, tally: Tally, unit: str, details: List[str], by: str = '') -> str:
    """``2 of 9 instances skipped (value 600; 1 box without area)``, of several iterations with the share instead."""
    whole = '' if span.iterations > 1 else f'of {tally.total:,} '
    changes = ((tally.skipped, 'skipped'), (tally.remapped, 'remapped'))
    amount = ', '.join(f'{count:,} {whole}{unit} {change}' for count, change in changes if count)
    if span.iterations > 1:
        details = [', '.join([percent(tally.skipped + tally.remapped, tally.total), *details[:1]]), *details[1:]]
    described = f' ({"; ".join(details)})' if details else ''
    return f'{amount}{by}{described}' if amount else ''


def _list_values(tallies: List[Tally]) -> List[str]:
    """Return ``['values 11, 24']``; nothing if there is none."""
    values = sorted({value for tally in tallies for value in tally.values})
    shown = ', '.join(map(str, values[:6])) + (', ...' if len(values) > 6 else '')
    return [f'{plural(len(values), "value")} {shown}'] if values else []


def closing(mode: str, ledger: LoopStats, top_k: int, out_file: Optional[str]) -> str:
    """What a loop came to: a table where there was anything to report; empty where no label was seen."""
    totals = ledger.totals()
    if totals or totals.filled:
        return f'summary\n{closing_table(mode, ledger, top_k, out_file)}'
    return all_valid(mode, totals)


def closing_table(mode: str, ledger: LoopStats, top_k: int, out_file: Optional[str]) -> str:
    """The totals, and for each kind a table of the ``top_k`` files with the most skipped or remapped elements."""
    lines = []
    for kind in KINDS:
        number = ledger.files.number(kind)
        if number:
            worst = ledger.worst(kind, top_k)
            lines += files_table(f'mmguard: {mode}, {kind}', worst, number - len(worst))
    lines += amounts(ledger.totals())
    lines += reasons_by_kind(ledger.sums.kinds)
    if out_file:
        lines.append(f'every iteration: {out_file}')
    return '\n'.join(lines)


def worst_first(tallies: Iterable[Tally]) -> List[Tally]:
    """Tallies of files, the one with the most skipped or remapped elements first."""
    return sorted(tallies, key=lambda t: (-(t.skipped + t.remapped), str(t.source)))


def files_table(title: str, worst: Sequence[Tally], more: int) -> List[str]:
    """Return the rows of a table of files, a line each: a log has no width, and a name is there to be copied."""
    rows = [title, f'{"skipped":>12}{"remapped":>12}  file (values)']
    for tally in worst:
        name = visible_name(str(tally.source))
        rows.append(f'{tally.skipped:>12,}{tally.remapped:>12,}  {name} ({_describe_values(tally)})')
    return rows + ([f'{"...":>24}  and {counted(more, "more file")}'] if more else [])


def _describe_values(tally: Tally) -> str:
    """Return the most frequent values with their counts, and the faults of boxes."""
    ranked = sorted(tally.values.items(), key=lambda item: -item[1])
    items = [f'{value}: {number:,}' for value, number in ranked[:6]]
    others = tally.other_values + sum(number for _, number in ranked[6:])
    items += [f'others: {others:,}'] if others else []
    return ', '.join(items + describe_boxes(tally.reasons))


def amounts(totals: LoopTotals, ranks: int = 1) -> List[str]:
    """The sums of a loop, one line per thing that is counted.

    Args:
        totals (LoopTotals): Without ``iterations`` they are those of the iterations with something to tell alone, and
            shares are of these.
        ranks (int): Processes that they are added up over.
    """
    among = '' if totals.iterations else ' in the iterations with any'
    lines = []
    for kind in KINDS:
        tally, unit = totals.kinds[kind], _UNITS[kind]
        if tally.total:
            share = percent(tally.skipped, tally.total)
            mapped = f', {tally.mapped:,} mapped by label_map' if tally.mapped else ''
            lines.append(
                f'{unit}: {tally.skipped:,} of {tally.total:,} skipped ({share}){among}, {tally.remapped:,} remapped'
                f'{mapped}'
            )
    for name, count in totals.losses.items():
        if count:
            seen = f' of {count.seen:,}' if count.seen else ''
            lines.append(f'loss {name}: {count.skipped:,}{seen} labels skipped, {count.remapped:,} remapped')
    if totals.empty_images:
        lines.append(f'{counted(totals.empty_images, "image")} seen without any instance')
    lines += filled_losses(totals.filled)
    files = f'{totals.offending_files:,} of {counted(totals.files, "file")}'
    files = files if totals.files else counted(totals.offending_files, 'file')
    if totals.iterations:
        each = f' of {ranks} ranks' if ranks > 1 else ''
        lines.append(f'{files}, {totals.offending_iterations:,} of {counted(totals.iterations, "iteration")}{each}')
    else:
        logged = counted(totals.offending_iterations, 'iteration')
        lines.append(f'{files}, in the {logged} that the log holds (those with any)')
    return lines


def reasons_by_kind(found: Dict[str, Tally]) -> List[str]:
    """Values and box faults over all files, one line per kind that has any."""
    described = {kind: describe_reasons(tally) for kind, tally in found.items()}
    return [f'{kind}: {words}' for kind, words in described.items() if words]


def all_valid(mode: str, totals: LoopTotals) -> str:
    """``train: all labels valid (1,179,648 px in 8 files)``; empty where no label was seen."""
    seen = [f'{totals.kinds[kind].total:,} {_UNITS[kind]}' for kind in KINDS if totals.kinds[kind].total]
    files = f' in {counted(totals.files, "file")}' if totals.files else ''
    mapped = totals.kinds['pixels'].mapped
    seen[1:] = [f'{mapped:,} px mapped by label_map'] if mapped else []
    return f'{mode}: all labels valid ({", ".join(seen)}{files})' if seen else ''


def filled_losses(filled: Dict[str, Dict[str, int]]) -> List[str]:
    """``rank 1 had no loss_mask in 12 iterations; filled with zeros``, one line per rank and loss."""
    return [
        f'rank {rank} had no {loss} in {counted(number, "iteration")}; filled with zeros'
        for loss, by_rank in filled.items()
        for rank, number in sorted(by_rank.items(), key=lambda item: (len(item[0]), item[0]))
    ]


def too_many_skipped(ratio: float, limit: float, worst: Sequence[Tally]) -> str:
    """Why a training stops at ``max_skipped_ratio``."""
    return (
        f'{100 * ratio:.3g} % of the labels seen so far were skipped, more than max_skipped_ratio={limit}: '
        f'{", ".join(visible_name(str(tally.source)) for tally in worst)}. Correct the labels, or raise the limit'
    )


def percent(part: int, whole: int) -> str:
    return f'{100 * part / whole:.3g} %' if whole else '0 %'


#: Rank, names of losses, samples.
OneRank = Tuple[int, Sequence[str], Sequence[str]]


def describe_filled(filled: Sequence[OneRank]) -> str:
    """``rank 1 had no loss_bbox (samples: a.jpg); filled with zeros, ...``."""
    lacks = [f'rank {rank} had no {", ".join(losses)} (samples: {listed(files)})' for rank, losses, files in filled]
    return (
        f'{listed(lacks, "; ")}; filled with zeros, so that the ranks stay in step. Most often a batch without targets'
    )


def describe_mismatch(lacks: Sequence[OneRank], has: Sequence[Container[str]]) -> str:
    """Which rank lacks which loss, and which samples it had."""
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


class RateLimiter:
    """Lets the first lines through, then one per period, which says how many iterations had one since.

    Args:
        first (int): Lines that always pass.
        seconds (float): Least time between later lines, seconds.
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

    def since_last(self) -> str:
        """What a line that passes ends with: `` (and 3 such iterations since the last line)``, or nothing."""
        held_back, self._held_back = self._held_back, 0
        return f' (and {counted(held_back, "such iteration")} since the last line)' if held_back else ''
