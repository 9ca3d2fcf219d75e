"""Log of a guarded nnU-Net trainer: prints invalid labels and final counts, and writes files for ``mmguard report``."""

from __future__ import annotations

import os
from typing import Any, Callable, Dict, Optional, Sequence

from mmguard.labels.rules import LabelRule
from mmguard.language import join
from mmguard.log.messages import WORST, RateLimiter, describe_offence, describe_place, summarize_loop
from mmguard.log.run_log import RunLog
from mmguard.log.statistics import Stats
from mmguard.nnunet.label_space import EXCLUDED_LABEL
from mmguard.text import visible


class CaseLog:
    """Log of a guarded nnU-Net training that prints invalid labels, and writes the same log files as LabelGuardHook.

    The console shows one line for each of the first 20 iterations with invalid labels, then at most one
    line per 10 s. ``label_guard.jsonl`` has a line, with cases and values, for every iteration with invalid labels.

    Args:
        folder (str): Folder of the log files, which are created at the first line.
        rank, world_size (int): Rank of this process, and number of processes. Each process has its own files.
        rule (LabelRule): Defines the valid labels.
        classes (sequence of str): Names of the labels, from 0 on.
        print_line (Callable[[str], None]): Prints a line on the console and in nnU-Net's log.
        raw_folder (str): Folder of the raw data set, as typed in a shell; the advice quotes it.
    """

    def __init__(
        self,
        folder: str,
        rank: int,
        world_size: int,
        rule: LabelRule,
        classes: Sequence[str],
        print_line: Callable[[str], None],
        raw_folder: str,
    ) -> None:
        self._log = RunLog(folder, rank, world_size, framework='nnunet')
        self._rule = rule
        self._classes = list(classes)
        self._tell = lambda text: print_line(visible(text))
        self._raw_folder = raw_folder
        #: Mode -> statistics of the current epoch.
        self._epoch: Dict[str, Stats] = {}
        self._limiter = RateLimiter()
        self._hinted = False

    def rename_earlier(self) -> None:
        """Append ``.old`` to the names of the log files that an earlier training left in this folder."""
        for path in (self._log.lines, self._log.record):
            try:
                if os.path.exists(path):
                    os.replace(path, f'{path}.old')
            except OSError as error:
                self._tell(f'guard: {path} of an earlier training cannot be renamed: {error}')

    def see(self, mode: str, place: Dict[str, int], stats: Stats, cases: Sequence[str] = ()) -> None:
        """Record the statistics of an iteration, and print its invalid labels if the rate limit allows it.

        Args:
            mode (str): ``'train'`` or ``'val'``.
            place (dict[str, int]): ``iter``, the iteration of the epoch, counted from 1; ``epoch``, counted from 0 as
                in nnU-Net; and ``step``, the number of training iterations so far.
            stats (Stats): The statistics of the iteration.
            cases (sequence of str): The cases of the batch.
        """
        if mode not in self._log.modes:
            self._log.begin(mode, self._describe_valid())
        epoch = self._epoch.setdefault(mode, Stats())
        epoch += stats
        epoch.condense()
        self._log.see(mode, place, stats, cases)
        for problem in self._log.take_problems():
            self._tell(f'guard: {problem}')
        if not stats:
            return
        if self._limiter.allow():
            where = join('', ('guard: ', describe_place(mode, place, place)))
            self._tell(describe_offence(where, stats) + self._limiter.describe_held_back())
        if not self._hinted:
            self._hinted = True
            self._print_hint(stats)

    def end_epoch(self, epoch: int) -> None:
        """Print the counts of an epoch if it had invalid labels."""
        for mode, sums in self._epoch.items():
            if sums:
                self._tell(describe_offence(f'guard: {mode} epoch {epoch}', sums))
        self._epoch.clear()

    def close(self) -> None:
        """Print the counts of the whole training and its worst cases, and close the log files."""
        for mode, stats in self._log.modes.items():
            self._log.end(mode)
            summary = summarize_loop(mode, stats, WORST, self._log.lines)
            if summary:
                self._tell(f'guard: {summary}')
        self._log.close()

    def _describe_valid(self) -> Dict[str, Any]:
        """Return the entries of the log file about valid labels: settings of the guard, class names and raw folder."""
        guard = {**self._rule.to_json(), 'ignore_index': self._find_ignored()}
        return {'guards': [guard], 'classes': self._classes, 'data_roots': [self._raw_folder]}

    def _find_ignored(self) -> Optional[int]:
        return None if self._rule.ignore_index == EXCLUDED_LABEL else self._rule.ignore_index

    def _print_hint(self, stats: Stats) -> None:
        from mmguard.findings import LabelFacts, diagnose  # not needed in a run without invalid labels
        from mmguard.findings.engine import advise_nnunet

        found = stats.offending['pixels'] or stats.loss_samples['pixels']
        classes = dict(num_classes=self._rule.num_classes, ignore_index=self._find_ignored())
        total = stats.kinds['pixels'].total
        facts = LabelFacts.from_tallies(found, 'pixels', total=total, files=stats.samples, **classes)
        causes = [f'\n  likely cause: {f.code} {f.title} (mmguard explain {f.code})' for f in diagnose(facts)[:1]]
        advice = '\n'.join(f'  {line}' for line in advise_nnunet(self._raw_folder))
        remapped = any(tally.remapped for tally in found)
        treatment = 'with them clamped to a class' if remapped else 'without these voxels'
        self._tell(
            f'guard: First invalid labels. Training continues {treatment}, but check your data: '
            f'other labels may be wrong yet in range.{"".join(causes)}\n{advice}'
        )
