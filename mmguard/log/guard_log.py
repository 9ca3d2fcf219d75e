"""Log of a run as an object that returns a data frame and a list of files, and draws plots."""

from __future__ import annotations

import importlib
from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any, Dict, List, Tuple, Union

from mmguard.labels.tally import Tally, find_path
from mmguard.log.messages import summarize_mode
from mmguard.log.run_files import (
    LoggedRun,
    LoggedStats,
    LogLine,
    RunFiles,
    UnreadParts,
    find_run,
    read_logs,
    read_run,
    sum_lines,
)
from mmguard.log.statistics import KINDS, SCALARS, Stats
from mmguard.text import visible

_MODES = ('train', 'val', 'test')
#: Number of files that ``str(GuardLog)`` lists per mode and kind.
_WORST = 20
#: Counters in the data frame. The other scalars may be positive in clean iterations, which have no line.
COUNTERS = SCALARS[:6]
#: Limit of clean iterations; a damaged record may state any number.
_MOST_ROWS = 10_000_000


def read_log(path: Union[str, Path]) -> GuardLog:
    """Read the log that ``LabelGuardHook`` or ``TallyLog`` wrote in a run, on all ranks.

    Args:
        path (str or Path): ``label_guard.jsonl``, or a folder, for the newest run in or below this folder.

    Raises:
        CannotRun: The file or folder has no log of mmguard.
    """
    return GuardLog(find_run(Path(path)))


class GuardLog:
    """Log of the labels that a run skipped or remapped, see :func:`read_log`; ``str()`` lists sums and the worst files.

    Attributes:
        folder (Path): The folder of its files.
        modes (list[str]): The modes in the log, out of ``'train'``, ``'val'`` and ``'test'``.
        problems (list[str]): Parts that could not be read.
        run (LoggedRun): The records of all ranks.
        lines (dict[str, LoggedStats]): Mode -> the sums of its log lines.

    Raises:
        ImportError: ``to_frame`` is called without pandas, or ``plot`` without matplotlib.
    """

    def __init__(self, files: RunFiles) -> None:
        unread = UnreadParts()
        self.folder = files.folder
        self._logs: List[List[LogLine]] = [list(read_logs([log], unread)) for log in files.logs]
        self.run: LoggedRun = read_run(files.records)
        self.lines: Dict[str, LoggedStats] = defaultdict(LoggedStats, sum_lines(*self._logs))
        self.modes = sorted({*self.lines, *self.run.modes}, key=lambda mode: (*_MODES, mode).index(mode))
        self.problems = unread.list_messages() + self.run.problems

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with one row per iteration; iterations without invalid labels have counts of 0.

        The columns are ``mode``, ``step`` (the training iteration, even for a validation), ``iter`` (the iteration
        in its loop), and the counts, summed over ranks: ``skipped_pixels``, ``remapped_pixels``, ``skipped_instances``,
        ``remapped_instances``, ``loss_skipped`` and ``loss_remapped``.
        """
        rows = [(*place, *counts) for place, counts in self._iterate_rows()]
        return _import_optional('pandas', 'to_frame()').DataFrame(rows, columns=['mode', 'step', 'iter', *COUNTERS])

    def files(self) -> List[Dict[str, Any]]:
        """Return a dict per file with skipped or remapped labels, the worst files first for each mode and kind.

        The keys are ``mode``, ``kind`` (``'pixels'`` or ``'instances'``), ``source`` (as in the log), ``path`` (to open
        the file, if it is found), ``skipped``, ``remapped`` and ``values``.
        """
        return [
            dict(
                mode=mode,
                kind=kind,
                source=tally.source,
                path=self._find_path(mode, tally),
                skipped=tally.skipped,
                remapped=tally.remapped,
                values=dict(tally.values),
            )
            for mode in self.modes
            for kind in KINDS
            for tally in self.lines[mode].files.find_worst(kind)
        ]

    def totals(self, mode: str) -> Stats:
        """Return the sums of a mode over all iterations; if the record is missing, only over those with a log line."""
        lines, totals = self.lines[mode], self.run.modes[mode].totals
        if lines.sums and not totals:  # the record is missing, or empty: the training died in its first minute
            totals = lines.totals()
        kinds = dict(totals.kinds)
        for kind, tally in totals.kinds.items():
            if not tally.values:
                found = lines.sums.kinds[kind]
                kinds[kind] = replace(
                    tally, values=found.values, reasons=found.reasons, other_values=found.other_values
                )
        return replace(totals, kinds=kinds, filled=totals.filled or lines.sums.filled)

    def _find_path(self, mode: str, tally: Tally) -> str:
        return find_path(str(tally.source), self.run.modes[mode].data_roots)

    def plot(self) -> List[Any]:
        """Plot the counts over the training iterations with matplotlib, each mode in its own axes.

        A validation is one point, the sum over its iterations. Counts that are 0 throughout are left out.

        Returns:
            list: The axes, in the order of ``modes``.
        """
        sums: Dict[str, Dict[int, List[int]]] = {mode: {} for mode in self.modes}
        for (mode, step, _), counts in self._iterate_rows():
            known = sums[mode].get(step)
            sums[mode][step] = counts if known is None else [a + b for a, b in zip(known, counts)]
        pyplot = _import_optional('matplotlib.pyplot', 'plot()')
        _, axes = pyplot.subplots(max(1, len(self.modes)), squeeze=False, layout='constrained')
        for mode, axis in zip(self.modes, axes[:, 0]):
            for name, heights in zip(COUNTERS, zip(*sums[mode].values())):
                if any(heights):
                    axis.plot(list(sums[mode]), heights, '.-', label=name)
            axis.set(title=mode, xlabel='iteration', ylim=(0, None))
            if axis.lines:
                axis.legend()
        return list(axes[:, 0])

    def _iterate_rows(self) -> List[Tuple[Tuple[str, int, int], List[int]]]:
        """Return a row per iteration: (mode, step, iteration), and the counts in the order of ``COUNTERS``."""
        # The last number of a key counts runs: a run that continues in the same folder may repeat an iteration.
        rows: Dict[Tuple[str, int, int, int], List[int]] = {}
        for lines in self._logs:
            times: Counter = Counter()
            for line in lines:
                if not line.filled:
                    place = _place(line.mode, line.place, line.iter)
                    times[place] += 1
                    known = rows.get((*place, times[place]), [0] * len(COUNTERS))
                    rows[(*place, times[place])] = [a + b for a, b in zip(known, _list_counts(line.to_stats()))]
        times = Counter()
        loops = [(mode, *loop) for mode, run in self.run.modes.items() for one in run.loops for loop in one.items()]
        for mode, end, iterations in loops:
            for number in range(1, _check_rows(iterations) + 1):
                offset = 0 if mode == 'val' else end - iterations
                place = _place(mode, end if mode == 'val' else offset + number, offset + number)
                times[place] += 1
                rows.setdefault((*place, times[place]), [0] * len(COUNTERS))
        # The record of a run that was killed is up to a minute old; lines after it may have gaps.
        trained = [key[1] for key in rows if key[0] == 'train'] or [0]
        for number in range(min(trained), min(trained) + _check_rows(max(trained) - min(trained))):
            rows.setdefault(('train', number, number, 1), [0] * len(COUNTERS))
        ranked = sorted(rows, key=lambda key: (self.modes.index(key[0]), key[3], *key[1:3]))
        return [(key[:3], rows[key]) for key in ranked]

    def __str__(self) -> str:
        rows = [f'run: {self.folder}', *self.problems]
        for mode in self.modes:
            lines, run, worst = self.lines[mode], self.run.modes[mode], {}
            for kind in KINDS:
                files = lines.files.find_worst(kind, _WORST)
                shown = [replace(tally, source=self._find_path(mode, tally)) for tally in files]
                worst[kind] = shown, lines.files.count_files(kind)
            rows += summarize_mode(mode, self.totals(mode), worst, self.run.ranks) or [f'{mode}: no label was counted']
            if not run.ended:
                rows.append(f'{mode} did not finish: its record ends at iteration {run.place:,}')
        return '\n'.join(map(visible, rows))

    def __repr__(self) -> str:
        found = []
        for mode in self.modes:  # the record also counts the iterations after the log was full
            found += [f'{mode}: {n:,} {name}' for name, n in zip(COUNTERS, _list_counts(self.totals(mode))) if n]
        return f'GuardLog({str(self.folder)!r}, {", ".join(found) or "nothing skipped or remapped"})'


def _place(mode: str, step: int, number: int) -> Tuple[str, int, int]:
    """Return (mode, training iteration, iteration of the loop); the iterations differ only in a validation."""
    return (mode, step, number) if mode == 'val' else (mode, *((step,) * 2 if mode == 'train' else (number,) * 2))


def _list_counts(totals: Stats) -> List[int]:
    return totals.vector()[: len(COUNTERS)]


def _check_rows(iterations: int) -> int:
    if iterations > _MOST_ROWS:
        raise ValueError(f'the log has {iterations:,} iterations: too many for a table')
    return iterations


def _import_optional(module: str, what: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition('.')[0]
        raise ImportError(f'{what} needs {package}: pip install {package} ({error})') from error
