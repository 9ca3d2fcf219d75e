"""The hook that reports what the guards did."""

from __future__ import annotations

from itertools import product, repeat
from typing import Any, Dict, List, Optional, Set

import torch
from mmengine import dist
from mmengine.hooks import Hook, LoggerHook
from mmengine.logging import HistoryBuffer

from mmguard.hooks.collated import keep_reports
from mmguard.hooks.discovery import (
    built_train_loop,
    culprits,
    dataset_of,
    guarded_losses,
    loaders_of,
    naming_roots_of,
    pipelines_of,
    rules_in,
    rules_of,
    samples_of,
    unwrapped,
    valid_labels,
)
from mmguard.hooks.first_offence import warnings_of
from mmguard.hooks.labelled_samples import evaluated_samples, trained_samples
from mmguard.hooks.run_logs import run_log_of, train_place, warn_of_problems
from mmguard.hooks.start_warnings import start_warnings
from mmguard.labels.errors import LabelGuardError
from mmguard.labels.space import check_int
from mmguard.labels.spaces import of_loss
from mmguard.labels.tally import LABEL_GUARD
from mmguard.log.json_lines import MAX_MB, NAME
from mmguard.log.pace import Pace
from mmguard.log.run_log import RunLog
from mmguard.log.source import source_of
from mmguard.log.span import SCALARS, ByKind, Span, by_kind
from mmguard.log.totals import KINDS, LossCount
from mmguard.log.unreported import add_reporter
from mmguard.log.wording import closing, iteration_line, too_many_skipped
from mmguard.losses.counting import CountsLabels
from mmguard.text.visible import visible

#: Where the message hub, and so a checkpoint, keeps the sums over all ranks since the start of the run.
EVERYWHERE = 'label_guard'
#: mmengine copies a scalar's whole history at every update; this many values are enough for any window.
HISTORY = 10_000


class LabelGuardHook(Hook):
    """Logs what guards in the pipeline and guarded losses skipped or remapped, exactly and per iteration.

    Writes the scalars ``guard/skipped_pixels``, ``guard/remapped_pixels``, ``guard/skipped_instances``,
    ``guard/remapped_instances``, ``guard/loss_skipped``, ``guard/loss_remapped``, ``guard/mapped_pixels`` (what the
    user's own ``label_map`` changed, no offence) and ``guard/empty_images``, images without any instance. They are sums
    over all ranks; several ranks add up where a LoggerHook shows them, and wait for each other nowhere else. Also a
    line for the reader when something was skipped (all of the first 20, then one per 10 s), and one JSON line per such
    iteration in ``<runner.log_dir>/<out_file>`` (on rank 1 ``label_guard.rank1.jsonl``, and so on). Beside it,
    ``label_guard.json`` says which labels were valid and holds the sums over all iterations. At the first offence the
    hook names the likely cause; after training it prints a table. In val and test loops, too.

    Args:
        interval (int): Report every so many iterations; the counts between are added up. Defaults to 1.
        max_skipped_ratio (float, optional): In [0, 1]. Training stops with ``LabelGuardError`` once the share of
            skipped pixels, instances or loss elements since the start of the run, also of one that was resumed,
            exceeds it; several ranks look where a LoggerHook shows the scalars.
        top_k (int): Files in the closing table. Defaults to 20.
        out_file (str, optional): Name of the JSON-lines file; ``None``: no file, and none beside it.
        max_log_mb (float): What that file may grow to, in MB; then the sums go on alone. Defaults to 256.
        guard (bool): Guard the losses and pipelines of the run that are not guarded yet, as ``mmguard apply`` would
            write them into the config; a line in the log names each. Defaults to False.

    Raises:
        ValueError, TypeError: An argument out of range.
        LabelGuardError: While training, see ``max_skipped_ratio``.
    """

    # After RuntimeInfoHook, which has waited for the device anyway, and before LoggerHook, which prints the scalars.
    priority = 'NORMAL'

    def __init__(
        self,
        interval: int = 1,
        max_skipped_ratio: Optional[float] = None,
        top_k: int = 20,
        out_file: Optional[str] = NAME,
        max_log_mb: float = MAX_MB,
        guard: bool = False,
    ) -> None:
        if not isinstance(max_skipped_ratio, (int, float, type(None))):
            raise TypeError(f'max_skipped_ratio is a share in [0, 1], got {max_skipped_ratio!r}')
        if max_skipped_ratio is not None and not 0 <= max_skipped_ratio <= 1:
            raise ValueError(f'max_skipped_ratio is a share in [0, 1], got {max_skipped_ratio}')
        if not max_log_mb > 0:
            raise ValueError(f'max_log_mb must be more than 0, got {max_log_mb}')
        self.interval = check_int('interval', interval, at_least=1)
        self.max_skipped_ratio = max_skipped_ratio
        self.top_k = check_int('top_k', top_k, at_least=0)
        self.out_file = out_file
        self.max_log_mb = max_log_mb
        if not isinstance(guard, bool):
            raise TypeError(f'guard must be True or False, got {guard!r}')
        self.guard = guard
        add_reporter(self)
        self._losses: Dict[str, CountsLabels] = {}
        self._log: RunLog
        #: Of this rank: the last report, and all since ranks added up last.
        self._last: List[int] = []
        self._since: List[int] = []
        self._place: Dict[str, int] = {}
        #: Scalars are wanted after every so many iterations of an epoch, and after its last.
        self._shown_every: List[int] = [1]
        self._epoch_length = 0
        self._pace = Pace()
        self._hinted: Set[str] = set()
        self._named: Set[str] = set()

    def before_run(self, runner: Any) -> None:
        if self.guard:
            self._guard(runner)
        self._log = run_log_of(runner, self.out_file, self.max_log_mb)

    # ---- training

    def before_train(self, runner: Any) -> None:
        for warning in start_warnings(runner):
            runner.logger.warning(f'guard: {visible(warning)}')
        self._start('train', runner)
        self._log.ledgers['train'].add_everywhere(runner.message_hub.runtime_info.get(EVERYWHERE, ()))
        self._losses = guarded_losses(runner.model)
        for loss in self._losses.values():
            loss.take_counts()
        if dist.get_world_size() > 1:  # ranks would wait for each other: only where a logger shows them
            self._shown_every = [hook.interval for hook in runner.hooks if isinstance(hook, LoggerHook)]
        _show_loss_counts_as_they_are(runner.log_processor)
        if not self._losses and not rules_of(dataset_of(runner, 'train')):
            runner.logger.warning(
                'guard: nothing to report: the training pipeline holds no guard (GuardSegLabels, ...) and the model no '
                'guarded loss'
            )

    def before_train_iter(self, runner: Any, batch_idx: int, data_batch: Any = None) -> None:
        for loss in self._losses.values():
            if getattr(loss, 'on_invalid', None) == 'raise':
                shorten = self._log.ledgers['train'].shorten
                loss.sources = [shorten(source_of(sample)) for sample in samples_of(data_batch)]

    def after_train_iter(
        self, runner: Any, batch_idx: int, data_batch: Any = None, outputs: Optional[dict] = None
    ) -> None:
        ledger, samples = self._log.ledgers['train'], trained_samples(data_batch)
        span = ledger.see(samples)
        losses = self._read_losses()
        if losses:
            # Only when one met what no guard in the pipeline did: a second look at the labels names the files.
            offended = next((name for name, count in losses.items() if count), None)
            span.see_losses(losses, by_kind() if offended is None else self._culprits(runner, samples, offended))
        ledger.add(span)
        self._place = train_place(runner, batch_idx)
        if self._place.get('step', self._place['iter']) % self.interval == 0:
            self._report(runner)
        done = batch_idx + 1
        if self._since and (done == self._epoch_length or any(done % every == 0 for every in self._shown_every)):
            self._add_up(runner)

    def after_train(self, runner: Any) -> None:
        if self._log.ledgers['train'].pending is not None:  # the same on every rank
            self._report(runner)
        if self._since:
            self._add_up(runner)
        self._close(runner, 'train')

    def _report(self, runner: Any) -> None:
        span = self._log.report('train', self._place)
        self._say(runner, 'train', span, self._place)
        self._last = span.vector()
        self._since = [a + b for a, b in zip(self._since or repeat(0), self._last)]

    def _add_up(self, runner: Any) -> None:
        """Adds up over all ranks what was reported since the last time."""
        numbers = _sum_over_ranks(self._last + self._since)
        last, since = numbers[: len(self._last)], numbers[len(self._last) :]
        self._since = []
        ledger = self._log.ledgers['train']
        ledger.add_everywhere(since)
        runner.message_hub.update_info(EVERYWHERE, ledger.everywhere)
        _write_scalars(runner, 'train', last)
        ratio, limit = ledger.skipped_ratio(), self.max_skipped_ratio
        if limit is not None and ratio > limit:
            self._close(runner, 'train')
            worst = ledger.worst(5)
            raise LabelGuardError(too_many_skipped(ratio, limit, worst), worst)

    def _read_losses(self) -> Dict[str, LossCount]:
        """Reads all device counters with one copy."""
        counts = {name: loss.take_counts() for name, loss in self._losses.items()}
        present = {name: count for name, count in counts.items() if count is not None}
        if not present:
            return {}
        return {n: LossCount(*row) for n, row in zip(present, torch.stack(list(present.values())).tolist())}

    def _culprits(self, runner: Any, samples: List[Any], loss_name: str) -> ByKind:
        spaces = of_loss(unwrapped(runner.model), loss_name)
        return culprits(samples, spaces, getattr(self._losses[loss_name], 'on_invalid', 'ignore'))

    # ---- validation and test: mmengine calls these for every loop

    def _before_epoch(self, runner: Any, mode: str = 'train') -> None:
        if mode == 'train':
            self._epoch_length = _length_of(loaders_of(runner, 'train'))
        else:
            self._start(mode, runner)

    def _after_iter(
        self, runner: Any, batch_idx: int, data_batch: Any = None, outputs: Any = None, mode: str = 'train'
    ) -> None:
        # Ranks may have loaders of different lengths here, so nothing is added up over ranks before the end.
        ledger, place = self._log.ledgers[mode], {'iter': batch_idx + 1}
        if mode == 'val':  # the training iteration tells one validation from the next
            place['step'] = _trained_iterations(runner)
        ledger.add(ledger.see(evaluated_samples(data_batch)))
        self._say(runner, mode, self._log.report(mode, place), place)

    def _after_epoch(self, runner: Any, mode: str = 'train') -> None:
        if mode == 'train':
            return
        ledger = self._log.ledgers[mode]
        seen = Span(
            pixels=ledger.kinds['pixels'], instances=ledger.kinds['instances'], empty_images=ledger.empty_images
        )
        ledger.add_everywhere(_sum_over_ranks(seen.vector()))
        if any(ledger.everywhere):
            _write_scalars(runner, mode, ledger.everywhere)
        self._close(runner, mode)

    # ---- the parts

    def _guard(self, runner: Any) -> None:
        """Guard the run; each thing is named once."""
        from mmguard.hooks.guard_run import guard_run  # reads configs, which a run without it need not

        changed, left = guard_run(runner)
        for line in (*(f'guarded {line}' for line in changed), *(f'left {line}' for line in left)):
            if line not in self._named:
                self._named.add(line)
                runner.logger.info(f'guard: {visible(line)}')

    def _start(self, mode: str, runner: Any) -> None:
        first = mode not in self._log.ledgers
        dataset = dataset_of(runner, mode)
        for loader in loaders_of(runner, mode):  # a second training has another
            keep_reports(loader)
        if first:
            _check_reports_arrive(runner.logger, dataset)
        valid = valid_labels(runner.model, dataset, with_losses=mode == 'train') if first else None
        self._log.begin(mode, valid, naming_roots_of(dataset))
        warn_of_problems(runner)

    def _say(self, runner: Any, mode: str, span: Span, place: Dict[str, int]) -> None:
        """Console line and, at the first offence, the likely cause."""
        warn_of_problems(runner)
        if not span:
            return
        shorten = self._log.ledgers[mode].shorten
        if self._pace.lets_pass():
            where = '' if mode == 'train' else f'{mode} '
            where += f'epoch {place["epoch"]} ' if 'epoch' in place else ''
            line = iteration_line(f'guard: {where}iter {place["iter"]}', span, shorten)
            runner.logger.info(line + self._pace.since_last())
        for kind in KINDS:
            if kind in self._hinted:
                continue
            for warning in warnings_of(mode, kind, span, runner.model, dataset_of(runner, mode)):
                runner.logger.warning(f'guard: {visible(warning)}')
                self._hinted.add(kind)

    def _close(self, runner: Any, mode: str) -> None:
        ledger = self._log.end(mode)
        warn_of_problems(runner)
        text = closing(mode, ledger, self.top_k, self._log.path)
        if text:
            runner.logger.info(f'guard: {text}')

    def after_run(self, runner: Any) -> None:
        self._log.close()


def _sum_over_ranks(numbers: List[int]) -> List[int]:
    if dist.get_world_size() == 1:
        return numbers
    total = torch.tensor(numbers, dtype=torch.int64)
    dist.all_reduce(total)
    return total.tolist()


def _length_of(loaders: List[Any]) -> int:
    """The iterations of an epoch; 0 where that is not known: several loaders, or a stream."""
    try:
        return len(loaders[0]) if len(loaders) == 1 else 0
    except TypeError:
        return 0


def _trained_iterations(runner: Any) -> int:
    loop = built_train_loop(runner)
    return 0 if loop is None else loop.iter


def _write_scalars(runner: Any, mode: str, numbers: List[int]) -> None:
    hub = runner.message_hub
    for name, number in zip(SCALARS, numbers):
        # Not before there is a value: LoggerHook cannot print an empty history.
        hub.log_scalars.setdefault(f'{mode}/guard/{name}', HistoryBuffer(max_length=HISTORY))
        hub.update_scalar(f'{mode}/guard/{name}', number)


def _show_loss_counts_as_they_are(log_processor: Any) -> None:
    """mmengine prints a mean over a window for every scalar with 'loss' in its name; these two are counts."""
    for name in ('guard/loss_skipped', 'guard/loss_remapped'):
        if all(entry['data_src'] != name for entry in log_processor.custom_cfg):
            log_processor.custom_cfg.append(dict(data_src=name, method_name='current'))


def _check_reports_arrive(logger: Any, dataset: Any) -> None:
    """Warn if a guard stands before a Pack transform whose meta_keys keep its report out of the sample.

    Raises:
        LabelGuardError: A guard after it would apply the same ``label_map`` again.
    """
    for pipeline in pipelines_of(dataset):
        packs = [i for i, t in enumerate(pipeline) if type(t).__name__.startswith('Pack')]
        guards = [i for i, t in enumerate(pipeline) if any(rules_in([t]))]
        if not packs or not guards or LABEL_GUARD in getattr(pipeline[packs[-1]], 'meta_keys', ()):
            continue
        pack = type(pipeline[packs[-1]]).__name__
        for first, second in product(rules_in(pipeline[: packs[-1]]), rules_in(pipeline[packs[-1] :])):
            if first.kind == second.kind and first.whole_map == second.whole_map and not first.maps_once_for_all:
                raise LabelGuardError(
                    f'label_map={first.whole_map} would be applied twice, before {pack} and behind it: its meta_keys '
                    f'lack {LABEL_GUARD!r}, so the second guard cannot see that labels are mapped. Add '
                    f'{LABEL_GUARD!r} to meta_keys of {pack}, or write label_map only in the first guard'
                )
        if max(guards) < packs[-1]:
            guard = type(pipeline[guards[0]]).__name__
            logger.warning(
                f'guard: {guard} stands before {pack}, whose meta_keys lack {LABEL_GUARD!r}: its counts do not arrive. '
                f'Put the guard right after {pack}, or add {LABEL_GUARD!r} to its meta_keys'
            )
