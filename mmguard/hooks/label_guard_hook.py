"""Hook that reports what the guards did."""

from __future__ import annotations

from itertools import repeat
from typing import Any, Dict, List, Optional, Set, Tuple

import torch
from mmengine import dist
from mmengine.hooks import Hook, LoggerHook

from mmguard.hooks.discovery import (
    built_loop,
    dataset_of,
    find_guarded_losses,
    find_offending,
    keep_reports,
    loaders_of,
    naming_roots_of,
    rules_of,
    samples_of,
    select_evaluated,
    select_trained,
    unwrap,
    valid_labels,
)
from mmguard.hooks.runs import run_log_of, train_place, warn_of_problems
from mmguard.hooks.scalars import show_loss_counts_as_they_are, write_scalars
from mmguard.hooks.warnings import check_reports_arrive, start_warnings, warnings_of
from mmguard.labels.heads import from_loss
from mmguard.labels.samples import source_of
from mmguard.labels.space import check_int
from mmguard.labels.tally import LabelGuardError, Tally
from mmguard.language import as_message, join, translate
from mmguard.log.messages import add_reporter, describe_offence, describe_place, describe_skipped_ratio, summarize_loop
from mmguard.log.run_log import MAX_MB, NAME, RunLog
from mmguard.log.statistics import KINDS, SCALARS, ByKind, Stats, group_tallies
from mmguard.nn.counting import CountsLabels
from mmguard.text import visible

#: Keys of the message hub, and so of a checkpoint: the sums over all ranks and the run; of these, those not shown yet.
EVERYWHERE = 'label_guard'
UNSHOWN = 'label_guard_unshown'
#: Number of offending iterations with a line each.
SINGLES = 3


class LabelGuardHook(Hook):
    """Log what guards in the pipeline and guarded losses skipped or remapped, exactly and per iteration.

    Writes the scalars ``guard/skipped_pixels``, ``guard/remapped_pixels``, ``guard/skipped_instances``,
    ``guard/remapped_instances``, ``guard/loss_skipped``, ``guard/loss_remapped``, ``guard/mapped_pixels`` (what the
    user's own ``label_map`` changed, no offence) and ``guard/empty_images`` (images without any instance), each as soon
    as it is not 0; those of validation are called ``guard/val/skipped_pixels`` and so on. They are sums over all ranks
    and over the iterations since a LoggerHook showed them last. Also a line for the reader: for each of the first three
    offending iterations, then one per interval of the LoggerHook; and one JSON line per offending iteration in
    ``<runner.log_dir>/<out_file>`` (on rank 1 ``label_guard.rank1.jsonl``, and so on): ``mmguard.read_log`` reads them.
    Next to it, ``label_guard.json`` says which labels were valid and holds the sums over all iterations. At the first
    offence the hook names the likely cause; after training it prints a table. In val and test loops, too.

    Args:
        interval (int): Report every so many iterations; the counts between are added up. Defaults to 1.
        max_skipped_ratio (float, optional): In [0, 1]. Training stops with ``LabelGuardError`` once the share of
            skipped pixels, instances or loss elements since the start of the run, also of one that was resumed,
            exceeds it; several ranks look where a LoggerHook shows the scalars.
        top_k (int): Files in the closing table. Defaults to 20.
        out_file (str, optional): Name of the JSON-lines file; ``None``: no file, and none next to it.
        max_log_mb (float): Size limit of that file, in MB; after that only the sums go on. Defaults to 256.
        guard (bool): Guard the losses and pipelines of the run that are not guarded yet, as ``mmguard apply`` would
            write them into the config; a line in the log names each. Defaults to False.
        show_worst (int): Hand pictures of so many of the worst files of a loop to the runner's visualizer, at each
            validation and at the end of training. Defaults to 0.

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
        show_worst: int = 0,
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
        self.show_worst = check_int('show_worst', show_worst, at_least=0)
        add_reporter(self)
        self._losses: Dict[str, CountsLabels] = {}
        self._log: RunLog
        #: The first unreported iteration, and the last one.
        self._begin: Dict[str, int] = {}
        self._place: Dict[str, int] = {}
        #: Statistics of this rank not summed over ranks yet; statistics of all ranks not shown by a logger yet.
        self._since: List[int] = []
        self._unshown: List[int] = []
        self._loggers: List[LoggerHook] = []
        self._epoch_length = 0
        #: Mode -> the window without a line yet: its first and last iteration, and the findings.
        self._unreported: Dict[str, Tuple[Dict[str, int], Dict[str, int], Stats]] = {}
        self._singles_left = SINGLES
        self._hinted: Set[str] = set()
        self._named: Set[str] = set()
        self._closed: Set[Tuple[str, bool]] = set()
        self._pictured: Dict[str, List[Tuple[str, str]]] = {}

    def before_run(self, runner: Any) -> None:
        if self.guard:
            self._guard(runner)
        self._log = run_log_of(runner, self.out_file, self.max_log_mb)

    # ---- training

    def before_train(self, runner: Any) -> None:
        for warning in start_warnings(runner):
            runner.logger.warning(f'guard: {visible(warning)}')
        self._start('train', runner)
        self._log.loops['train'].add_everywhere(runner.message_hub.runtime_info.get(EVERYWHERE, ()))
        self._unshown = list(runner.message_hub.runtime_info.get(UNSHOWN, ()))
        self._losses = find_guarded_losses(runner.model)
        for loss in self._losses.values():
            loss.take_counts()
        # Without one, other hooks may read the message hub: as if there were the default one.
        self._loggers = [hook for hook in runner.hooks if isinstance(hook, LoggerHook)] or [LoggerHook()]
        show_loss_counts_as_they_are(runner.log_processor)
        if not self._losses and not rules_of(dataset_of(runner, 'train')):
            runner.logger.warning(
                translate('guard: nothing to report: neither the training pipeline nor a loss of the model is guarded')
            )

    def before_train_iter(self, runner: Any, batch_idx: int, data_batch: Any = None) -> None:
        for loss in self._losses.values():
            if getattr(loss, 'on_invalid', None) == 'raise':
                loss.sources = [source_of(sample) for sample in samples_of(data_batch)]

    def after_train_iter(
        self, runner: Any, batch_idx: int, data_batch: Any = None, outputs: Optional[dict] = None
    ) -> None:
        loop, samples = self._log.loops['train'], select_trained(data_batch)
        stats = loop.see(samples)
        losses = self._read_losses()
        if losses:
            # Only if a loss met labels that no guard in the pipeline did: look again to name the files.
            offended = next((name for name, count in losses.items() if count), None)
            stats.add_losses(
                losses, group_tallies() if offended is None else self._find_offending(runner, samples, offended)
            )
        self._place = train_place(runner, batch_idx)
        if loop.pending is None:
            self._begin = self._place
        loop.add(stats)
        done, length = batch_idx + 1, self._epoch_length
        is_last = runner.iter + 1 == getattr(runner.train_loop, 'max_iters', 0)
        if self._place.get('step', self._place['iter']) % self.interval == 0 or is_last:
            self._report(runner)
        # As in LoggerHook.after_train_iter, which comes next.
        is_shown = any(
            done % hook.interval == 0 or (done == length and (not hook.ignore_last or length <= hook.interval))
            for hook in self._loggers
        )
        # Several ranks wait for each other here: not in every iteration.
        if is_shown or is_last or done == length or dist.get_world_size() == 1:
            self._add_up(runner)
        if is_shown:
            self._show(runner)
        elif is_last:  # before a checkpoint is written
            self._show(runner, at=runner.iter + 1)

    def after_train(self, runner: Any) -> None:
        if self._log.loops['train'].pending is not None:  # the same on every rank
            self._report(runner)
        self._add_up(runner)
        self._show(runner, at=runner.iter)  # for a training that stopped early
        self._close(runner, 'train')
        self._show_pictures(runner, 'train')

    def _report(self, runner: Any) -> None:
        stats = self._log.report('train', self._place)
        self._log_report(runner, 'train', stats, self._begin, self._place)
        self._since = [a + b for a, b in zip(self._since or repeat(0), stats.vector())]

    def _add_up(self, runner: Any) -> None:
        """Sum over all ranks what was reported since the last call."""
        if not self._since:  # the same on every rank
            return
        numbers, self._since = _sum_over_ranks(self._since), []
        loop, hub = self._log.loops['train'], runner.message_hub
        loop.add_everywhere(numbers)
        self._unshown = [a + b for a, b in zip(self._unshown or repeat(0), numbers)]
        hub.update_info(EVERYWHERE, loop.everywhere)
        hub.update_info(UNSHOWN, self._unshown)
        ratio, limit = loop.skipped_ratio, self.max_skipped_ratio
        if limit is not None and ratio > limit:
            self._show(runner, at=runner.iter + 1)
            self._close(runner, 'train')
            worst = [tally for kind in KINDS for tally in loop.worst(kind, 5)]
            raise LabelGuardError(describe_skipped_ratio(ratio, limit, worst), worst)

    def _show(self, runner: Any, at: Optional[int] = None) -> None:
        """Pass what was found since the last call to the LoggerHook, which runs next.

        With ``at``, nothing is shown here: the visualizer gets it immediately, for this training iteration.
        """
        self._log_window(runner, 'train')
        if at is not None and not self._unshown:
            return
        # Zeros, too: a logger would show the old numbers again.
        tags = write_scalars(runner, 'train', self._unshown or [0] * len(SCALARS))
        self._unshown = []
        runner.message_hub.update_info(UNSHOWN, [])
        if at is not None and tags:
            prefix = 'train/' if getattr(runner.log_processor, 'log_with_hierarchy', False) else ''
            runner.visualizer.add_scalars({f'{prefix}{tag}': number for tag, number in tags.items()}, step=at)

    def _read_losses(self) -> Dict[str, Tally]:
        """Read all device counters with one copy."""
        counts = {name: loss.take_counts() for name, loss in self._losses.items()}
        present = {name: count for name, count in counts.items() if count is not None}
        if not present:
            return {}
        return {n: Tally(*row) for n, row in zip(present, torch.stack(list(present.values())).tolist())}

    def _find_offending(self, runner: Any, samples: List[Any], loss_name: str) -> ByKind:
        spaces = from_loss(unwrap(runner.model), loss_name)
        return find_offending(samples, spaces, getattr(self._losses[loss_name], 'on_invalid', 'ignore'))

    # ---- validation and test: mmengine calls these for every loop

    def _before_epoch(self, runner: Any, mode: str = 'train') -> None:
        if mode == 'train':
            self._epoch_length = _count_iterations(loaders_of(runner, 'train')[0])  # LoggerHook only supports this one
        else:
            self._start(mode, runner)

    def _after_iter(
        self, runner: Any, batch_idx: int, data_batch: Any = None, outputs: Any = None, mode: str = 'train'
    ) -> None:
        # Ranks may have loaders of different lengths, so sums over ranks have to wait for the end.
        loop, place = self._log.loops[mode], {'iter': batch_idx + 1}
        if mode == 'val':  # the training iteration identifies the validation
            place['step'] = _count_trained(runner)
        loop.add(loop.see(select_evaluated(data_batch)))
        self._log_report(runner, mode, self._log.report(mode, place), place, place)

    def _after_epoch(self, runner: Any, mode: str = 'train') -> None:
        if mode == 'train':
            return
        loop = self._log.loops[mode]
        loop.add_everywhere(_sum_over_ranks(loop.sums.vector()))
        write_scalars(runner, mode, loop.everywhere)
        self._close(runner, mode)
        for shown in ('train', mode):
            self._show_pictures(runner, shown)

    # ---- the parts

    def _guard(self, runner: Any) -> None:
        """Guard the run; name each change once."""
        from mmguard.hooks.guard_run import guard_run  # reads configs, which other runs need not do

        changed, left = guard_run(runner)
        for line in (
            *(translate('guarded {part}', part=as_message(part)) for part in changed),
            *(translate('left {part}', part=as_message(part)) for part in left),
        ):
            if line not in self._named:
                self._named.add(line)
                runner.logger.info(f'guard: {visible(line)}')

    def _start(self, mode: str, runner: Any) -> None:
        first = mode not in self._log.loops
        dataset = dataset_of(runner, mode)
        for loader in loaders_of(runner, mode):  # a second training has another
            keep_reports(loader)
        if first:
            check_reports_arrive(runner.logger, dataset)
        valid = valid_labels(runner.model, dataset, with_losses=mode == 'train') if first else None
        self._log.begin(mode, valid, naming_roots_of(dataset))
        warn_of_problems(runner)

    def _log_report(self, runner: Any, mode: str, stats: Stats, begin: Dict[str, int], end: Dict[str, int]) -> None:
        """Log the reports: a line for each of the first offences, and the likely cause for the very first."""
        warn_of_problems(runner)
        begin, _, unreported = self._unreported.get(mode, (begin, end, Stats()))
        unreported += stats
        # The first image of an iteration is named, so the order is kept.
        if stats and unreported.iterations > 1:
            unreported = unreported.condense()
        self._unreported[mode] = (begin, end, unreported)
        if self._singles_left:
            self._singles_left -= bool(stats)
            self._log_window(runner, mode)
        for kind in KINDS if stats else ():
            if kind in self._hinted:
                continue
            for warning in warnings_of(mode, kind, stats, runner.model, dataset_of(runner, mode)):
                runner.logger.warning(f'guard: {visible(warning)}')
                self._hinted.add(kind)

    def _log_window(self, runner: Any, mode: str) -> None:
        """Log a line about what was found since the last one; nothing if nothing was found."""
        begin, end, stats = self._unreported.pop(mode, ({}, {}, Stats()))
        if stats:
            where = join('', ('guard: ', describe_place(mode, begin, end)))
            runner.logger.info(describe_offence(where, stats))

    def _close(self, runner: Any, mode: str) -> None:
        """Log the result of a loop: in full the first time, then on one line."""
        loop = self._log.end(mode)
        warn_of_problems(runner)
        result = (mode, bool(loop.totals()))
        if mode != 'train' and result in self._closed:
            self._log_window(runner, mode)
            return
        self._closed.add(result)
        self._unreported.pop(mode, None)
        text = summarize_loop(mode, loop, self.top_k, self._log.path)
        if text:
            runner.logger.info(f'guard: {text}')

    def _show_pictures(self, runner: Any, mode: str) -> None:
        """Pass pictures of the worst files to the visualizer, if these changed since the last call."""
        loop = self._log.loops.get(mode)
        if not self.show_worst or loop is None:
            return
        found = [(kind, tally) for kind in KINDS for tally in loop.files.worst(kind, self.show_worst)]
        worst = sorted(found, key=lambda one: -(one[1].skipped + one[1].remapped))[: self.show_worst]
        names = [(kind, str(tally.source)) for kind, tally in worst]
        if names != self._pictured.get(mode, []):
            from mmguard.hooks.pictures import add_pictures  # only on request

            self._pictured[mode] = names
            add_pictures(runner, mode, worst, loop.shorten, _count_trained(runner))

    def after_run(self, runner: Any) -> None:
        self._log.close()


def _sum_over_ranks(numbers: List[int]) -> List[int]:
    if dist.get_world_size() == 1:
        return numbers
    total = torch.tensor(numbers, dtype=torch.int64)
    dist.all_reduce(total)
    return total.tolist()


def _count_iterations(loader: Any) -> int:
    """Return the number of iterations per epoch; 0 for a stream."""
    try:
        return len(loader)
    except TypeError:
        return 0


def _count_trained(runner: Any) -> int:
    loop = built_loop(runner)
    return 0 if loop is None else loop.iter
