"""The hook that tells what the guards did."""

from __future__ import annotations

import os
from typing import Any, Dict, List, Optional, Sequence

import torch
from mmengine import dist
from mmengine.hooks import Hook
from mmengine.logging import HistoryBuffer

from mmguard.diagnosis import CAUSES, LabelFacts, diagnose
from mmguard.errors import LabelGuardError
from mmguard.hooks.discovery import (
    data_roots_of,
    guarded_losses,
    label_space,
    pipelines_of,
    relative_to,
    samples_of,
    source_of,
)
from mmguard.hooks.json_lines import JsonLines
from mmguard.hooks.ledger import SCALARS, Ledger, LossCount, Span
from mmguard.hooks.wording import Pace, closing_table, iteration_line
from mmguard.labels import LabelRule, check_int
from mmguard.losses.counting import CountsLabels
from mmguard.tally import LABEL_GUARD

#: mmengine copies a scalar's whole history at every update; this many values are enough for any window.
HISTORY = 10_000


class LabelGuardHook(Hook):
    """Logs what guards in the pipeline and guarded losses skipped or remapped, exactly and per iteration.

    Writes the scalars ``guard/skipped_pixels``, ``guard/remapped_pixels``, ``guard/skipped_instances``,
    ``guard/remapped_instances``, ``guard/loss_skipped`` and ``guard/loss_remapped`` (sums over all ranks), a line for
    the reader when something was skipped (all of the first 20, then one per 10 s), and one JSON line per such iteration
    in ``<runner.log_dir>/<out_file>`` (on rank 1 ``label_guard.rank1.jsonl``, and so on). At the first offence it names
    the likely cause; after training it prints a table. In val and test loops, too.

    Args:
        interval (int): Report every so many iterations; the counts between are added up. Defaults to 1.
        max_skipped_ratio (float, optional): In [0, 1]. Training stops with ``LabelGuardError`` once the share of
            skipped pixels, instances or loss elements since the start exceeds it.
        top_k (int): Files in the closing table. Defaults to 20.
        out_file (str, optional): Name of the JSON-lines file; ``None``: no file.

    Raises:
        ValueError: An argument out of range.
        LabelGuardError: While training, see ``max_skipped_ratio``.
    """

    # After RuntimeInfoHook, which has waited for the device anyway, and before LoggerHook, which prints the scalars.
    priority = 'NORMAL'

    def __init__(
        self,
        interval: int = 1,
        max_skipped_ratio: Optional[float] = None,
        top_k: int = 20,
        out_file: Optional[str] = 'label_guard.jsonl',
    ) -> None:
        if check_int('interval', interval) < 1:
            raise ValueError(f'interval must be at least 1, got {interval}')
        if max_skipped_ratio is not None and not 0 <= max_skipped_ratio <= 1:
            raise ValueError(f'max_skipped_ratio is a share in [0, 1], got {max_skipped_ratio}')
        if check_int('top_k', top_k) < 0:
            raise ValueError(f'top_k must be at least 0, got {top_k}')
        self.interval = interval
        self.max_skipped_ratio = max_skipped_ratio
        self.top_k = top_k
        self.out_file = out_file
        self._ledgers: Dict[str, Ledger] = {}
        self._losses: Dict[str, CountsLabels] = {}
        self._span = Span()
        self._lines: Optional[JsonLines] = None
        self._roots: List[str] = []
        self._pace = Pace()
        self._hinted = False

    # ---- training

    def before_train(self, runner: Any) -> None:
        self._start('train', runner, runner.train_dataloader.dataset)
        self._losses = guarded_losses(runner.model)
        for loss in self._losses.values():
            loss.take_counts()
        for name in SCALARS:
            history = runner.message_hub.log_scalars
            history.setdefault(f'train/guard/{name}', HistoryBuffer(max_length=HISTORY))
        self._warn_if_counts_are_lost(runner)

    def before_train_iter(self, runner: Any, batch_idx: int, data_batch: Any = None) -> None:
        for loss in self._losses.values():
            if getattr(loss, 'on_invalid', None) == 'raise':
                loss.sources = [self._shorten(source_of(sample)) for sample in samples_of(data_batch)]

    def after_train_iter(
        self, runner: Any, batch_idx: int, data_batch: Any = None, outputs: Optional[dict] = None
    ) -> None:
        samples = samples_of(data_batch)
        guarded = self._see(samples, 'train')
        if not self.every_n_train_iters(runner, self.interval):
            return
        self._read_losses()
        if not guarded and any(self._span.losses.values()):
            self._look_for_culprits(runner, samples)
        self._report(runner, batch_idx, 'train')

    def after_train(self, runner: Any) -> None:
        self._read_losses()
        if self._span:
            self._report(runner, None, 'train')
        self._close(runner, 'train')

    # ---- validation and test

    def before_val_epoch(self, runner: Any) -> None:
        self._start('val', runner, runner.val_dataloader.dataset)

    def before_test_epoch(self, runner: Any) -> None:
        self._start('test', runner, runner.test_dataloader.dataset)

    def after_val_iter(
        self, runner: Any, batch_idx: int, data_batch: Any = None, outputs: Optional[Sequence] = None
    ) -> None:
        self._after_eval_iter(runner, batch_idx, data_batch, 'val')

    def after_test_iter(
        self, runner: Any, batch_idx: int, data_batch: Any = None, outputs: Optional[Sequence] = None
    ) -> None:
        self._after_eval_iter(runner, batch_idx, data_batch, 'test')

    def after_val_epoch(self, runner: Any, metrics: Optional[Dict[str, float]] = None) -> None:
        self._after_eval_epoch(runner, 'val')

    def after_test_epoch(self, runner: Any, metrics: Optional[Dict[str, float]] = None) -> None:
        self._after_eval_epoch(runner, 'test')

    def _after_eval_iter(self, runner: Any, batch_idx: int, data_batch: Any, mode: str) -> None:
        self._see(samples_of(data_batch), mode)
        # Ranks may have loaders of different lengths here, so nothing is added up over ranks before the end.
        self._log(runner, mode, batch_idx, self._span)
        self._ledgers[mode].add(self._span)
        self._span = Span()

    def _after_eval_epoch(self, runner: Any, mode: str) -> None:
        ledger = self._ledgers[mode]
        whole = Span(pixels=ledger.pixels, instances=ledger.instances)
        ledger.everywhere = _sum_over_ranks(whole.vector())
        if ledger.pixels.total or ledger.instances.total:
            for name, number in zip(SCALARS, ledger.everywhere):
                runner.message_hub.update_scalar(f'{mode}/guard/{name}', number)
        self._close(runner, mode)

    # ---- the parts

    def _start(self, mode: str, runner: Any, dataset: Any) -> None:
        self._ledgers[mode] = Ledger()
        self._span = Span()
        self._roots = list(data_roots_of(dataset))
        if self.out_file is not None and self._lines is None:
            self._lines = JsonLines(os.path.join(runner.log_dir, _name_for_rank(self.out_file, dist.get_rank())))

    def _see(self, samples: List[Any], mode: str) -> bool:
        """Adds up what the samples carry; whether any of them carries a record."""
        span, sources, guarded = self._span, self._ledgers[mode].sources, False
        span.samples += len(samples)
        for sample in samples:
            sources[source_of(sample)] = None
            record = sample.get(LABEL_GUARD)
            if record is not None:
                guarded = True
                span.see(record)
        return guarded

    def _read_losses(self) -> None:
        """Reads all device counters with one copy."""
        counts = {name: loss.take_counts() for name, loss in self._losses.items()}
        present = {name: count for name, count in counts.items() if count is not None}
        if not present:
            return
        for name, numbers in zip(present, torch.stack(list(present.values())).tolist()):
            self._span.losses[name] = self._span.losses.get(name, LossCount()) + LossCount(*numbers)

    def _look_for_culprits(self, runner: Any, samples: List[Any]) -> None:
        """Without a guard in the pipeline: looks into the labels of the batch (only when a loss had to mend)."""
        name = next(name for name, count in self._span.losses.items() if count)
        num_classes, ignore_index = label_space(runner.model, name)
        if num_classes is None:
            return
        rule = LabelRule(num_classes, -100 if ignore_index is None else ignore_index)
        for sample in samples:
            label = sample.get('gt_sem_seg')
            data = None if label is None else label.get('data', label.get('sem_seg'))
            if data is not None:
                _, tally = rule.mend(data.cpu().numpy(), source_of(sample))
                if tally:
                    self._span.loss_samples.append(tally)

    def _report(self, runner: Any, batch_idx: Optional[int], mode: str) -> None:
        span, ledger = self._span, self._ledgers[mode]
        self._span = Span()
        numbers = _sum_over_ranks(span.vector())
        for name, number in zip(SCALARS, numbers):
            runner.message_hub.update_scalar(f'{mode}/guard/{name}', number)
        ledger.everywhere = [a + b for a, b in zip(ledger.everywhere, numbers)]
        self._log(runner, mode, batch_idx, span)
        ledger.add(span)
        limit = self.max_skipped_ratio
        if limit is not None and ledger.skipped_ratio() > limit:
            self._close(runner, mode)
            raise LabelGuardError(
                f'{100 * ledger.skipped_ratio():.3g} % of the labels seen so far were skipped, more than '
                f'max_skipped_ratio={limit}: {", ".join(map(self._shorten, map(str, list(ledger.files)[:5])))}. '
                f'Correct the labels, or raise the limit',
                list(ledger.files.values()),
            )

    def _log(self, runner: Any, mode: str, batch_idx: Optional[int], span: Span) -> None:
        """Console line, JSON line and, at the first offence, the likely cause."""
        ledger = self._ledgers[mode]
        ledger.iterations += 1
        if not span:
            return
        ledger.offending_iterations += 1
        number = self._console_iter(runner, batch_idx, mode)
        by_epoch = mode == 'train' and runner.log_processor.by_epoch
        if self._lines is not None:
            place = {'epoch': runner.epoch + 1, 'step': runner.iter + 1} if by_epoch else {}
            line = {'mode': mode, 'iter': number, **place, **span.to_json(self._roots, relative_to)}
            if not self._lines.write(line) and not self._lines_lost:
                self._lines_lost = True
                runner.logger.warning(f'guard: {self._lines.path} cannot be written: {self._lines.error}')
        if self._pace.lets_pass():
            where = f'guard: {"" if mode == "train" else mode + " "}'
            where += f'epoch {runner.epoch + 1} iter {number}' if by_epoch else f'iter {number}'
            held_back = self._pace.take_held_back()
            more = f' (and {held_back} such iterations since the last line)' if held_back else ''
            runner.logger.info(iteration_line(where, span, self._shorten) + more)
        if not self._hinted:
            self._hinted = True
            self._hint(runner, span)

    _lines_lost = False

    def _hint(self, runner: Any, span: Span) -> None:
        offending = [tally for tally in span.offending + span.loss_samples if tally.values]
        values: Dict[int, int] = {}
        for tally in offending:
            for value, count in tally.values.items():
                values[value] = values.get(value, 0) + count
        num_classes, ignore_index = self._label_space(runner, span)
        if not values or num_classes is None:
            return
        facts = LabelFacts(
            values, num_classes, ignore_index, span.pixels.total, files=span.samples, offending_files=len(offending)
        )
        findings = diagnose(facts, CAUSES)
        text = '\n'.join(f'  {"likely cause" if i == 0 else "or"}: {f}' for i, f in enumerate(findings[:2]))
        runner.logger.warning(
            f'guard: first offence. Training goes on without these labels, but they are wrong, and so may be others '
            f'that no guard can tell:\n{text}'
        )

    def _label_space(self, runner: Any, span: Span) -> Any:
        for loader in (runner.train_dataloader, getattr(runner, 'val_dataloader', None)):
            for pipeline in pipelines_of(getattr(loader, 'dataset', None)):
                for transform in pipeline:
                    rule = getattr(transform, 'rule', None)
                    if isinstance(rule, LabelRule):
                        return rule.num_classes, rule.ignore_index
        for name in span.losses or self._losses:
            return label_space(runner.model, name)
        return None, None

    def _warn_if_counts_are_lost(self, runner: Any) -> None:
        """A guard before the Pack transform reports through the sample's meta information, if it is let through."""
        for pipeline in pipelines_of(runner.train_dataloader.dataset):
            packs = [i for i, t in enumerate(pipeline) if type(t).__name__.startswith('Pack')]
            guards = [i for i, t in enumerate(pipeline) if isinstance(getattr(t, 'rule', None), LabelRule)]
            if not packs or not guards or max(guards) > packs[-1]:
                continue
            if LABEL_GUARD not in getattr(pipeline[packs[-1]], 'meta_keys', ()):
                pack = type(pipeline[packs[-1]]).__name__
                runner.logger.warning(
                    f'guard: {type(pipeline[guards[0]]).__name__} stands before {pack}, whose meta_keys lack '
                    f'{LABEL_GUARD!r}: labels are mended, but their counts are lost here. Put the guard right after '
                    f'{pack}, or add {LABEL_GUARD!r} to its meta_keys'
                )

    def _close(self, runner: Any, mode: str) -> None:
        ledger = self._ledgers[mode]
        if ledger.files or any(ledger.losses.values()):
            out_file = None if self._lines is None else self._lines.path
            table = closing_table(mode, ledger, self.top_k, self._shorten, out_file)
            runner.logger.info(f'guard: summary\n{table}')
        elif ledger.pixels.total or ledger.instances.total:
            seen = f'{ledger.pixels.total:,} px' if ledger.pixels.total else f'{ledger.instances.total:,} instances'
            runner.logger.info(f'guard: {mode}: all labels valid ({seen} in {len(ledger.sources):,} files)')

    def after_run(self, runner: Any) -> None:
        if self._lines is not None:
            self._lines.close()

    def _console_iter(self, runner: Any, batch_idx: Optional[int], mode: str) -> int:
        """The number that the console shows: of the loop, or of the epoch where logs go by epoch."""
        if mode != 'train':
            return (batch_idx or 0) + 1
        if runner.log_processor.by_epoch and batch_idx is not None:
            return batch_idx + 1
        return runner.iter + (1 if batch_idx is not None else 0)

    def _shorten(self, source: str) -> str:
        return relative_to(source, self._roots)


def _name_for_rank(name: str, rank: int) -> str:
    stem, suffix = os.path.splitext(name)
    return name if rank == 0 else f'{stem}.rank{rank}{suffix}'


def _sum_over_ranks(numbers: List[int]) -> List[int]:
    if dist.get_world_size() == 1:
        return numbers
    total = torch.tensor(numbers, dtype=torch.int64)
    dist.all_reduce(total)
    return total.tolist()
