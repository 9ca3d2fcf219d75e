"""What a guarded nnU-Net trainer says: a line for the reader, a JSON line for the report, the sums at the end."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, Optional, Sequence

from mmguard.labels.space import LabelRule, describe_values
from mmguard.labels.tally import Tally
from mmguard.log.iteration_stats import IterationStats
from mmguard.log.messages import RateLimiter, percent
from mmguard.log.run_log import RunLog
from mmguard.log.run_record import space_to_json
from mmguard.nnunet.label_space import MARK
from mmguard.text.visible import visible
from mmguard.text.words import counted

#: Cases that a line, and the table at the end, name.
NAMED = 3
WORST = 20


@dataclass
class _Sums:
    """Of one epoch."""

    counted: Tally = field(default_factory=Tally)
    iterations: int = 0
    offending: int = 0

    def add(self, span: IterationStats) -> None:
        counted = _counted(span)
        self.counted += Tally(counted.total, counted.skipped, counted.remapped)
        self.iterations += 1
        self.offending += span.offending_iterations


class CaseLog:
    """Writes ``label_guard.jsonl`` and ``label_guard.json`` as mmengine's hook does, so that ``mmguard report`` reads
    them, and reports in words.

    A line is reported for each of the first 20 iterations with something to report, then one per 10 s. It stands in
    the file all the same, each iteration with its cases and values.

    Args:
        folder (str): Where the files are made, that of the lines at the first one.
        rank, world_size (int): Of this process; each has files of its own.
        rule (LabelRule): What is valid.
        classes (sequence of str): Names of the labels, from 0 on.
        tell (Callable[[str], None]): Takes a line for the reader.
        raw_folder (str): Where the data set's raw files are, for the advice.
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
        self._epoch: Dict[str, _Sums] = {}
        self._limiter = RateLimiter()
        self._hinted = False

    def start_anew(self) -> None:
        """Renames the files of an earlier training in this folder to ``label_guard.jsonl.old``."""
        for path in self._log.paths:
            try:
                if os.path.exists(path):
                    os.replace(path, f'{path}.old')
            except OSError as error:
                self._tell(f'guard: {path} of an earlier training cannot be renamed: {error}')

    def see(self, mode: str, place: Dict[str, int], span: IterationStats, cases: Sequence[str] = ()) -> None:
        """Takes an iteration.

        Args:
            mode (str): ``'train'`` or ``'val'``.
            place (dict[str, int]): ``iter`` in the epoch, counted from 1, ``epoch`` as nnU-Net counts, and ``step``,
                the training iterations so far.
            span (IterationStats): What was found.
            cases (sequence of str): Those of the batch.
        """
        if mode not in self._log.ledgers:
            self._log.begin(mode, self._valid())
        self._epoch.setdefault(mode, _Sums()).add(span)
        self._log.see(mode, place, span, cases)
        for problem in self._log.take_problems():
            self._tell(f'guard: {problem}')
        if not span:
            return
        if self._limiter.allow():
            self._tell(_iteration_line(mode, place, span) + self._limiter.since_last())
        if not self._hinted:
            self._hinted = True
            self._hint(span)

    def end_epoch(self, epoch: int) -> None:
        """Tells the sums of an epoch, where there was anything."""
        for mode, sums in self._epoch.items():
            if sums.offending:
                self._tell(
                    f'guard: {mode} epoch {epoch}: {_amount(sums.counted)} '
                    f'({percent(_changed(sums.counted), sums.counted.total)}), in {sums.offending:,} of '
                    f'{counted(sums.iterations, "iteration")}'
                )
        self._epoch.clear()

    def close(self) -> None:
        """Tells the sums of the training and its worst cases."""
        for mode, ledger in self._log.ledgers.items():
            self._log.end(mode)
            sums = ledger.sums
            if not sums.offending_iterations:
                self._tell(f'guard: {mode}: all labels valid ({counted(sums.kinds["pixels"].total, "voxel")})')
                continue
            number = ledger.files.number('pixels')
            rows = [
                f'  {t.source}: {counted(_changed(t), "voxel")}, {describe_values(t.values, others=t.other_values)}'
                for t in ledger.files.worst('pixels', WORST)
            ]
            if number > WORST:
                rows.append(f'  ... and {counted(number - WORST, "more case")}')
            self._tell(
                f'guard: {mode}: {counted(number, "case")} with invalid labels, in {sums.offending_iterations:,} of '
                f'{counted(sums.iterations, "iteration")}; a voxel counts each time that a patch holds it:\n'
                + '\n'.join(rows)
            )
        if any(ledger.sums.offending_iterations for ledger in self._log.ledgers.values()):
            self._tell(f'guard: every iteration: {self._log.path} (mmguard report reads it)')
        self._log.close()

    def _valid(self) -> Dict[str, Any]:
        """What is valid, for the record."""
        guard = {**space_to_json('pixels', self._rule), 'ignore_index': self._ignored()}
        return {'guards': [guard], 'classes': self._classes, 'data_roots': [self._raw_folder]}

    def _ignored(self) -> Optional[int]:
        return None if self._rule.ignore_index == MARK else self._rule.ignore_index

    def _hint(self, span: IterationStats) -> None:
        from mmguard.findings import LabelFacts, diagnose  # a run without an offence needs nothing of it
        from mmguard.findings.engine import advise_nnunet

        found = span.offending['pixels'] or span.loss_samples['pixels']
        values = sum(found, Tally()).values
        facts = LabelFacts(
            values=values,
            num_classes=self._rule.num_classes,
            ignore_index=self._ignored(),
            total=span.pixels.total,
            files=span.samples,
            offending_files=len(found),
        )
        causes = [f'\n  likely cause: {f.code} {f.title} (mmguard explain {f.code})' for f in diagnose(facts)[:1]]
        self._tell(
            f'guard: First invalid labels. Training continues {_fate(span)}, but check your data: other labels may be '
            f'wrong yet in range.{"".join(causes)}\n'
            + '\n'.join(f'  {line}' for line in advise_nnunet(self._raw_folder))
        )


def _iteration_line(mode: str, place: Dict[str, int], span: IterationStats) -> str:
    """``guard: train epoch 0 iter 3: 120 of 27,648 voxels skipped (value 7 (120 times)) in 1 of 2 cases: case_002``."""
    found = span.offending['pixels'] or span.loss_samples['pixels']
    line = f'guard: {mode} epoch {place["epoch"]} iter {place["iter"]}: {_amount(_counted(span))}'
    values = sum(found, Tally()).values
    if values:
        line += f': {describe_values(values)}'
    if found:
        names = list(dict.fromkeys(str(tally.source) for tally in found))
        more = f' and {len(names) - NAMED} more' if len(names) > NAMED else ''
        line += (
            f'; in {span.offending_samples} of {counted(span.samples, "patch")}, of {", ".join(names[:NAMED])}{more}'
        )
    return line


def _counted(span: IterationStats) -> Tally:
    """What the transforms found, or what only the loss saw."""
    if span.pixels.skipped or span.pixels.remapped or not span.losses:
        return span.pixels
    losses: List[Any] = list(span.losses.values())
    return Tally(sum(c.seen for c in losses), sum(c.skipped for c in losses), sum(c.remapped for c in losses))


def _amount(tally: Tally) -> str:
    changes = [(tally.skipped, 'skipped'), (tally.remapped, 'remapped')]
    return ', '.join(f'{count:,} of {counted(tally.total, "voxel")} {what}' for count, what in changes if count)


def _changed(tally: Tally) -> int:
    return tally.skipped + tally.remapped


def _fate(span: IterationStats) -> str:
    return 'with them clamped to a class' if _counted(span).remapped else 'without these voxels'


def raw_folder_of(dataset_name: str, raw: Optional[str]) -> str:
    """The folder of a raw data set, as a reader can type it."""
    return os.path.join(raw or '$nnUNet_raw', dataset_name)
