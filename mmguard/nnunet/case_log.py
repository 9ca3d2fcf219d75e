"""Reports of a guarded nnU-Net trainer: lines on the console, JSON lines for the report, sums at the end."""

from __future__ import annotations

import os
from typing import Any, Callable, Dict, Optional, Sequence

from mmguard.labels.space import LabelRule, describe_values
from mmguard.labels.tally import Tally
from mmguard.log.messages import RateLimiter, format_percent
from mmguard.log.run_log import RunLog
from mmguard.log.statistics import Stats
from mmguard.nnunet.label_space import MARK
from mmguard.text import quantity, visible

#: Number of cases in a line, and in the table at the end.
NAMED = 3
WORST = 20


class CaseLog:
    """Log of a guarded training: ``label_guard.jsonl`` and ``label_guard.json`` as mmengine's hook writes them, so that
    ``mmguard report`` reads them, and lines for the reader.

    The first 20 iterations with an offence are reported in a line each, then one per 10 s. The file has them all, each
    iteration with its cases and values.

    Args:
        folder (str): Folder of the files; the file of lines is made at the first line.
        rank, world_size (int): This process; each has its own files.
        rule (LabelRule): Defines the valid labels.
        classes (sequence of str): Names of the labels, from 0 on.
        tell (Callable[[str], None]): Receives a line for the reader.
        raw_folder (str): Folder of the raw data set, for the advice.
    """

    def __init__(
        self,
        folder: str,
        rank: int,
        world_size: int,
        rule: LabelRule,
        classes: Sequence[str],
        tell: Callable[[str], None],
        raw_folder: str,
    ) -> None:
        self._log = RunLog(folder, rank, world_size, framework='nnunet')
        self._rule = rule
        self._classes = list(classes)
        self._tell = lambda text: tell(visible(text))
        self._raw_folder = raw_folder
        #: Mode -> sums of the epoch; what only a loss met counts as pixels.
        self._epoch: Dict[str, Stats] = {}
        self._limiter = RateLimiter()
        self._hinted = False

    def rename_earlier(self) -> None:
        """Rename the files of an earlier training in this folder to ``label_guard.jsonl.old``."""
        for path in (self._log.lines, self._log.record):
            try:
                if os.path.exists(path):
                    os.replace(path, f'{path}.old')
            except OSError as error:
                self._tell(f'guard: {path} of an earlier training cannot be renamed: {error}')

    def see(self, mode: str, place: Dict[str, int], stats: Stats, cases: Sequence[str] = ()) -> None:
        """Record an iteration.

        Args:
            mode (str): ``'train'`` or ``'val'``.
            place (dict[str, int]): ``iter`` in the epoch, counted from 1, ``epoch`` as nnU-Net counts, and ``step``,
                the training iterations so far.
            stats (Stats): The statistics of the iteration.
            cases (sequence of str): The cases of the batch.
        """
        if mode not in self._log.modes:
            self._log.begin(mode, self._valid())
        counted = _choose_tally(stats)
        kinds = {**Stats().kinds, 'pixels': Tally(counted.total, counted.skipped, counted.remapped)}
        self._epoch[mode] = self._epoch.get(mode, Stats()) + Stats(1, stats.offending_iterations, kinds=kinds)
        self._log.see(mode, place, stats, cases)
        for problem in self._log.take_problems():
            self._tell(f'guard: {problem}')
        if not stats:
            return
        if self._limiter.allow():
            self._tell(_format_iteration(mode, place, stats) + self._limiter.describe_held_back())
        if not self._hinted:
            self._hinted = True
            self._build_hint(stats)

    def end_epoch(self, epoch: int) -> None:
        """Report the sums of an epoch with an offence."""
        for mode, sums in self._epoch.items():
            if sums.offending_iterations:
                counted = sums.kinds['pixels']
                self._tell(
                    f'guard: {mode} epoch {epoch}: {_describe_amount(counted)} '
                    f'({format_percent(_count_changed(counted), counted.total)}), in {sums.offending_iterations:,} of '
                    f'{quantity(sums.iterations, "iteration")}'
                )
        self._epoch.clear()

    def close(self) -> None:
        """Report the sums of the training and its worst cases."""
        for mode, loop in self._log.modes.items():
            self._log.end(mode)
            sums = loop.sums
            if not sums.offending_iterations:
                self._tell(f'guard: {mode}: all labels valid ({quantity(sums.kinds["pixels"].total, "voxel")})')
                continue
            number = loop.files.number('pixels')
            rows = [
                f'  {t.source}: {quantity(_count_changed(t), "voxel")}, '
                f'{describe_values(t.values, others=t.other_values)}'
                for t in loop.files.worst('pixels', WORST)
            ]
            if number > WORST:
                rows.append(f'  ... and {quantity(number - WORST, "more case")}')
            self._tell(
                f'guard: {mode}: {quantity(number, "case")} with invalid labels, in {sums.offending_iterations:,} of '
                f'{quantity(sums.iterations, "iteration")}; a voxel counts each time that a patch holds it:\n'
                + '\n'.join(rows)
            )
        if any(loop.sums.offending_iterations for loop in self._log.modes.values()):
            self._tell(f'guard: every iteration: {self._log.lines} (mmguard report reads it)')
        self._log.close()

    def _valid(self) -> Dict[str, Any]:
        """Describe the valid labels for the record."""
        guard = {**self._rule.to_json(), 'ignore_index': self._find_ignored()}
        return {'guards': [guard], 'classes': self._classes, 'data_roots': [self._raw_folder]}

    def _find_ignored(self) -> Optional[int]:
        return None if self._rule.ignore_index == MARK else self._rule.ignore_index

    def _build_hint(self, stats: Stats) -> None:
        from mmguard.findings import LabelFacts, diagnose  # not needed in a run without an offence
        from mmguard.findings.engine import advise_nnunet

        found = stats.offending['pixels'] or stats.loss_samples['pixels']
        values = sum(found, Tally()).values
        facts = LabelFacts(
            values=values,
            num_classes=self._rule.num_classes,
            ignore_index=self._find_ignored(),
            total=stats.kinds['pixels'].total,
            files=stats.samples,
            offending_files=len(found),
        )
        causes = [f'\n  likely cause: {f.code} {f.title} (mmguard explain {f.code})' for f in diagnose(facts)[:1]]
        advice = '\n'.join(f'  {line}' for line in advise_nnunet(self._raw_folder))
        self._tell(
            f'guard: First invalid labels. Training continues {_describe_treatment(stats)}, but check your data: '
            f'other labels may be wrong yet in range.{"".join(causes)}\n{advice}'
        )


def _format_iteration(mode: str, place: Dict[str, int], stats: Stats) -> str:
    """Format ``guard: train epoch 0 iter 3: 120 of 27,648 voxels skipped: value 7 (120 times); in 1 of 2 ...``."""
    found = stats.offending['pixels'] or stats.loss_samples['pixels']
    line = f'guard: {mode} epoch {place["epoch"]} iter {place["iter"]}: {_describe_amount(_choose_tally(stats))}'
    values = sum(found, Tally()).values
    if values:
        line += f': {describe_values(values)}'
    if found:
        names = list(dict.fromkeys(str(tally.source) for tally in found))
        more = f' and {len(names) - NAMED} more' if len(names) > NAMED else ''
        line += (
            f'; in {stats.offending_samples} of {quantity(stats.samples, "patch")}, of {", ".join(names[:NAMED])}{more}'
        )
    return line


def _choose_tally(stats: Stats) -> Tally:
    """Return the transforms' counts, or if they found nothing, the loss's."""
    pixels = stats.kinds['pixels']
    return pixels if pixels or not stats.losses else sum(stats.losses.values(), Tally())


def _describe_amount(tally: Tally) -> str:
    changes = [(tally.skipped, 'skipped'), (tally.remapped, 'remapped')]
    return ', '.join(f'{count:,} of {quantity(tally.total, "voxel")} {what}' for count, what in changes if count)


def _count_changed(tally: Tally) -> int:
    return tally.skipped + tally.remapped


def _describe_treatment(stats: Stats) -> str:
    return 'with them clamped to a class' if _choose_tally(stats).remapped else 'without these voxels'


def raw_folder_of(dataset_name: str, raw: Optional[str]) -> str:
    """Return the folder of a raw data set in a form that can be typed."""
    return os.path.join(raw or '$nnUNet_raw', dataset_name)
