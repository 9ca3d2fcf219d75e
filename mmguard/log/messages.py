"""Functions that build the lines and tables of the log, limit their rate, and warn if no hook reports the counts."""

from __future__ import annotations

import time
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Set, Tuple
from weakref import WeakSet

from mmguard.labels.instances import describe_boxes, describe_reasons
from mmguard.labels.tally import Tally
from mmguard.language import Message, join, translate
from mmguard.log.run_log import ModeStats
from mmguard.log.statistics import KINDS, Stats
from mmguard.text import align_right, plural, quantity, visible_name

#: Shown instead of the file of a sample without a path.
NO_FILE = Message("unknown, as meta_keys of the Pack transform lack 'img_path'")
_UNITS = {'pixels': Message('px'), 'instances': Message('instances')}


def describe_place(mode: str, begin: Dict[str, int], end: Dict[str, int]) -> Message:
    """Describe the iterations of a log line, numbered as on the console.

    Example:
        >>> describe_place('train', {'iter': 11}, {'iter': 50}), describe_place('val', {'iter': 7}, {'iter': 7})
        ('iters 11-50', 'val iter 7')
        >>> describe_place('train', {'iter': 91, 'epoch': 1}, {'iter': 10, 'epoch': 2})
        'epoch 1 iter 91 to epoch 2 iter 10'
    """
    if begin.get('epoch') != end.get('epoch'):
        first, last = (_add_epoch(place, Message('iter {iter}', iter=place['iter'])) for place in (begin, end))
        iterations = Message('{first} to {last}', first=first, last=last)
    elif begin['iter'] == end['iter']:
        iterations = _add_epoch(end, Message('iter {iter}', iter=end['iter']))
    else:
        iterations = _add_epoch(end, Message('iters {first}-{last}', first=begin['iter'], last=end['iter']))
    return iterations if mode == 'train' else join(' ', (mode, iterations))


def _add_epoch(place: Dict[str, int], iterations: Message) -> Message:
    if 'epoch' not in place:
        return iterations
    return Message('epoch {epoch} {iterations}', epoch=place['epoch'], iterations=iterations)


def describe_offence(where: str, stats: Stats) -> str:
    """Return the console line about invalid labels in one iteration, or in all iterations since the last line.

    ``iter 37: 2,503 of 196,608 px skipped (value 11) in 3 of 4 images, first: data/camvid/trainannot/0001TP.png`` or
    ``iters 11-50: 31,204 px skipped (0.8 %, value 11) in 57 of 80 images, worst: data/camvid/trainannot/0016E5.png``.
    """
    by_loss = [tally for kind in KINDS for tally in stats.loss_samples[kind]]
    reasons = stats.kinds['instances'].reasons
    boxes = describe_boxes(reasons) if reasons else []
    parts = [
        _describe_amount(stats, stats.kinds[kind], _UNITS[kind], _list_values(stats.offending[kind]) + faults)
        for kind, faults in (('pixels', []), ('instances', boxes))
    ]
    for name, tally in stats.losses.items():
        by = Message(' by the loss {name}', name=name)
        parts.append(_describe_amount(stats, tally, Message('labels'), _list_values(by_loss), by))
    line = join(': ', (where, join('; ', filter(None, parts))))
    offending = [tally for kind in KINDS for tally in stats.offending[kind]] or by_loss
    if offending:
        counts: Dict[str, Any] = dict(offending=stats.offending_samples, samples=stats.samples)
        line = Message('{line} in {offending:,} of {samples:,} images', line=line, **counts)
        if stats.empty_images:
            line = Message('{line}, {empty:,} left without an instance', line=line, empty=stats.empty_images)
        named = [tally for tally in offending if tally.source is not None]
        if stats.iterations > 1 and named:
            shown = min(named, key=lambda tally: (-(tally.skipped + tally.remapped), str(tally.source)))
            line = Message('{line}, worst: {file}', line=line, file=visible_name(str(shown.source)))
        else:
            first = offending[0].source
            file = NO_FILE if first is None else visible_name(str(first))
            line = Message('{line}, first: {file}', line=line, file=file)
    return translate(line)


def _describe_amount(stats: Stats, tally: Tally, unit: Message, details: List[str], agent: str = '') -> str:
    """Return ``2 of 9 instances skipped (value 600; 1 box without area)``, with a percentage for several iterations."""
    skipped, remapped = '{count:,} of {total:,} {unit} skipped', '{count:,} of {total:,} {unit} remapped'
    if stats.iterations > 1:
        skipped, remapped = '{count:,} {unit} skipped', '{count:,} {unit} remapped'
        share = format_percent(tally.skipped + tally.remapped, tally.total)
        details = [join(', ', [share, *details[:1]]), *details[1:]]
    parts = [Message(skipped, count=tally.skipped, total=tally.total, unit=unit)] if tally.skipped else []
    parts += [Message(remapped, count=tally.remapped, total=tally.total, unit=unit)] if tally.remapped else []
    amount = join(', ', parts)
    if amount and details:
        return Message('{amount}{by} ({details})', amount=amount, by=agent, details=join('; ', details))
    return join('', (amount, agent)) if amount else ''


def _list_values(tallies: List[Tally]) -> List[str]:
    """Return the invalid values of tallies as ``['values 11, 24']``, or an empty list."""
    values = sorted({value for tally in tallies for value in tally.values})
    shown = ', '.join(map(str, values[:6])) + (', ...' if len(values) > 6 else '')
    return [join(' ', (plural(len(values), 'value'), shown))] if values else []


def summarize_loop(mode: str, loop: ModeStats, limit: int, log: str) -> str:
    """Summarize a loop, with the ``limit`` worst files of each kind; return ``''`` if no label was seen."""
    totals = loop.totals()
    worst = {kind: (loop.find_worst(kind, limit), loop.files.count_files(kind)) for kind in KINDS}
    lines = summarize_mode(mode, totals, worst)
    if totals or totals.filled:
        lines = [translate('summary'), *lines, translate('every iteration: {file}', file=log)]
    return '\n'.join(lines)


def summarize_mode(mode: str, totals: Stats, worst: Mapping[str, Tuple[List[Tally], int]], ranks: int = 1) -> List[str]:
    """Return the lines about a mode: a table of the worst files of each kind, then the sums.

    ``worst`` is {kind: (files to show, number of all files)}. Return one line if all labels are valid, [] if no label
    was seen.
    """
    if not (totals or totals.filled):
        return [valid] if (valid := describe_valid(mode, totals)) else []
    lines: List[str] = []
    for kind, (shown, files) in worst.items():
        if files:
            title = translate('mmguard: {mode}, {kind}', mode=mode, kind=Message(kind))
            lines += format_files(title, shown, files - len(shown))
    return lines + describe_totals(totals, ranks) + describe_reasons_by_kind(totals.kinds)


def format_files(title: str, worst: Sequence[Tally], hidden: int) -> List[str]:
    """Return the rows of a table of files; long names are not cut, so that they can be copied."""
    heads = [align_right(translate(word), 12) for word in ('skipped', 'remapped')]
    rows = [title, f'{"".join(heads)}  {translate("file (values)")}']
    for tally in worst:
        name = visible_name(str(tally.source))
        rows.append(f'{tally.skipped:>12,}{tally.remapped:>12,}  {name} ({_describe_values(tally)})')
    files = translate('and {files}', files=quantity(hidden, 'more file'))
    return rows + ([f'{"...":>24}  {files}'] if hidden else [])


def _describe_values(tally: Tally) -> str:
    """Describe the most frequent values with their counts, and the faults of boxes."""
    ranked = sorted(tally.values.items(), key=lambda item: -item[1])
    items: List[str] = [f'{value}: {number:,}' for value, number in ranked[:6]]
    others = tally.other_values + sum(number for _, number in ranked[6:])
    items += [Message('others: {number:,}', number=others)] if others else []
    return translate(join(', ', items + describe_boxes(tally.reasons)))


def describe_totals(totals: Stats, ranks: int = 1) -> List[str]:
    """Return lines with the sums of a loop over ``ranks`` processes: pixels, instances, losses, files, iterations."""
    among = '' if totals.iterations else Message(' in the offending iterations')
    lines: List[str] = []
    for kind in KINDS:
        tally, unit = totals.kinds[kind], _UNITS[kind]
        if tally.total:
            share = format_percent(tally.skipped, tally.total)
            mapped = Message(', {number:,} mapped by label_map', number=tally.mapped) if tally.mapped else ''
            lines.append(
                Message(
                    '{unit}: {skipped:,} of {total:,} skipped ({share}){among}, {remapped:,} remapped{mapped}',
                    unit=unit,
                    skipped=tally.skipped,
                    total=tally.total,
                    share=share,
                    among=among,
                    remapped=tally.remapped,
                    mapped=mapped,
                )
            )
    for name, count in totals.losses.items():
        if count:
            template = 'loss {name}: {skipped:,} labels skipped, {remapped:,} remapped'
            if count.total:
                template = 'loss {name}: {skipped:,} of {total:,} labels skipped, {remapped:,} remapped'
            counts: Dict[str, Any] = dict(skipped=count.skipped, total=count.total, remapped=count.remapped)
            lines.append(Message(template, name=name, **counts))
    if totals.empty_images:
        lines.append(Message('{images} seen without any instance', images=quantity(totals.empty_images, 'image')))
    lines += list_filled(totals.filled)
    files = quantity(totals.offending_files, 'file')
    if totals.files:
        files = Message('{number:,} of {files}', number=totals.offending_files, files=quantity(totals.files, 'file'))
    if totals.iterations:
        iterations = quantity(totals.iterations, 'iteration')
        iterations = Message('{number:,} of {iterations}', number=totals.offending_iterations, iterations=iterations)
        if ranks > 1:
            iterations = Message('{iterations} of {ranks} ranks', iterations=iterations, ranks=ranks)
        lines.append(Message('{files}, {iterations}', files=files, iterations=iterations))
    elif totals.offending_iterations:
        logged = quantity(totals.offending_iterations, 'iteration')
        template = '{files}, in the {iterations} of the log (only those with invalid labels)'
        lines.append(Message(template, files=files, iterations=logged))
    return [translate(line) for line in lines]


def describe_reasons_by_kind(tallies: Dict[str, Tally]) -> List[str]:
    """Return a line per kind (pixels, instances) with the invalid values and box faults of all files."""
    described = {kind: describe_reasons(tally) for kind, tally in tallies.items()}
    return [translate(join(': ', (Message(kind), words))) for kind, words in described.items() if words]


def describe_valid(mode: str, totals: Stats) -> str:
    """Return ``train: all labels valid (1,179,648 px in 8 files)``, or ``''`` if no label was seen."""
    units = {kind: totals.kinds[kind].total for kind in KINDS if totals.kinds[kind].total}
    seen = [Message('{number:,} {unit}', number=number, unit=_UNITS[kind]) for kind, number in units.items()]
    if not seen:
        return ''
    labels = seen[0]
    if totals.files:
        labels = Message('{labels} in {files}', labels=labels, files=quantity(totals.files, 'file'))
    mapped = totals.kinds['pixels'].mapped
    if mapped:
        labels = join(', ', [labels, Message('{number:,} px mapped by label_map', number=mapped)])
    return translate('{mode}: all labels valid ({labels})', mode=mode, labels=labels)


def list_filled(filled: Dict[str, Dict[str, int]]) -> List[str]:
    """Return ``rank 1 had no loss_mask in 12 iterations; filled with zeros``, one line per rank and loss."""
    return [
        translate(
            'rank {rank} had no {loss} in {iterations}; filled with zeros',
            rank=rank,
            loss=loss,
            iterations=quantity(number, 'iteration'),
        )
        for loss, by_rank in filled.items()
        for rank, number in sorted(by_rank.items(), key=lambda item: (len(item[0]), item[0]))
    ]


def describe_skipped_ratio(ratio: float, limit: float, worst: Sequence[Tally]) -> str:
    """Return the error message of a training that exceeds ``max_skipped_ratio``."""
    return translate(
        '{share:.3g} % of the labels seen so far were skipped, more than max_skipped_ratio={limit}: {files}. '
        'Correct the labels, or raise the limit',
        share=100 * ratio,
        limit=limit,
        files=', '.join(visible_name(str(tally.source)) for tally in worst),
    )


def format_percent(part: int, total: int) -> str:
    return f'{100 * part / total:.3g} %' if total else '0 %'


#: Rank, names of its missing losses, files of its batch.
OneRank = Tuple[int, Sequence[str], Sequence[str]]


def describe_filled(filled: Sequence[OneRank]) -> str:
    """Return ``rank 1 had no loss_bbox (samples: a.jpg); filled with zeros, ...``."""
    lacks = [f'rank {rank} had no {", ".join(losses)} (samples: {list_names(files)})' for rank, losses, files in filled]
    return f'{list_names(lacks, "; ")}; filled with zeros to keep ranks in step. Usual cause: a batch without targets'


def describe_unreached(names: Sequence[str]) -> str:
    """Return a warning about parameters that no loss reaches, with advice."""
    return (
        f'no loss of any rank reaches {quantity(len(names), "parameter")}: {list_names(names)}. That is expected if '
        'the first batch has no targets. A branch that is never used (frozen, dropped) needs requires_grad=False, or '
        'DistributedDataParallel(find_unused_parameters=True)'
    )


def list_names(items: Sequence[str], between: str = ', ') -> str:
    """Join the first eight items and the number of further items; return ``'unknown'`` for an empty list."""
    more = [f'and {len(items) - 8:,} more'] if len(items) > 8 else []
    return between.join([*map(visible_name, items[:8]), *more]) or 'unknown'


#: Number of offending iterations with a line each; number of files in the table at the end.
SINGLES, WORST = 3, 20


class ConsoleLines:
    """Console lines about the invalid labels of a run; each method returns a line, or an empty string."""

    def __init__(self) -> None:
        #: Mode -> iterations without a line so far: places of the first and the last one, and the statistics.
        self._windows: Dict[str, Tuple[Dict[str, int], Dict[str, int], Stats]] = {}
        self._singles_left = SINGLES
        self._closed: Set[Tuple[str, bool]] = set()

    def add(self, mode: str, place: Dict[str, int], stats: Stats) -> str:
        """Add an iteration; return its line if it is one of the first with invalid labels."""
        if self._singles_left:  # earlier iterations without a line had only valid labels
            self._windows.pop(mode, None)
            if not stats:
                return ''
        begin, _, window = self._windows.get(mode) or (place, place, Stats())
        window += stats
        # The first image of an iteration is named, so the order is kept.
        if stats and window.iterations > 1:
            window.condense()
        self._windows[mode] = begin, place, window
        if not self._singles_left:
            return ''
        self._singles_left -= 1
        return self.end_window(mode)

    def end_window(self, mode: str) -> str:
        """Return the line about the iterations since the last line."""
        begin, end, window = self._windows.pop(mode, ({}, {}, Stats()))
        return describe_offence(join('', ('guard: ', describe_place(mode, begin, end))), window) if window else ''

    def end_loop(self, mode: str, loop: ModeStats, log: str) -> str:
        """Return the summary of a loop, or only the line about its last iterations.

        In validation and test, only the first loop with and the first loop without invalid labels get a summary.
        """
        line, result = self.end_window(mode), (mode, bool(loop.sums))
        if mode != 'train' and result in self._closed:
            return line
        self._closed.add(result)
        text = summarize_loop(mode, loop, WORST, log)
        return f'guard: {text}' if text else ''


class RateLimiter:
    """Rate limit for log lines: it allows the first lines, then one per period, and counts the lines held back."""

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
        """Return `` (and 3 such iterations since the last line)`` to end a line, or ``''`` if none was held back."""
        held_back, self._held_back = self._held_back, 0
        return f' (and {quantity(held_back, "such iteration")} since the last line)' if held_back else ''


#: Name of a run, and a function that logs a warning in it.
Run = Tuple[str, Callable[[str], None]]

_REPORTERS: WeakSet[Any] = WeakSet()
_WARNED_RUNS: Set[str] = set()
_find_run: Optional[Callable[[], Optional[Run]]] = None


def set_run_finder(find_run: Callable[[], Optional[Run]]) -> None:
    """Set the function that returns the current run of a framework, or ``None`` outside of a run."""
    global _find_run
    _find_run = find_run


def add_reporter(hook: Any) -> None:
    """Register a hook that reports the counts of guards, so that :func:`warn_unreported` stays silent."""
    # A Runner builds its hooks before its data sets, and a loss warns in training, so the hook is known by then.
    _REPORTERS.add(hook)


def warn_unreported(guard: str) -> None:
    """Warn once per run if no hook reports the counts of a guard."""
    run = None if _REPORTERS or _find_run is None else _find_run()
    if run is not None and run[0] not in _WARNED_RUNS:
        _WARNED_RUNS.add(run[0])
        run[1](
            translate(
                'guard: {guard} excludes invalid labels, but nothing reports them: this run has no LabelGuardHook. '
                "Add dict(type='LabelGuardHook') to custom_hooks",
                guard=guard,
            )
        )
