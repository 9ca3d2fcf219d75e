"""Hook that reports what the guards did."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence, Set, Tuple

import torch
from mmengine import dist
from mmengine.hooks import Hook, LoggerHook

from mmguard.hooks.discovery import (
    collect_rules,
    describe_valid_labels,
    find_guarded_losses,
    find_naming_roots,
    find_offending,
    find_samples,
    get_built_loop,
    get_dataset,
    get_loaders,
    keep_reports,
    select_evaluated,
    select_trained,
    unwrap,
)
from mmguard.hooks.runs import (
    get_train_position,
    run_log_of,
    show_loss_counts_as_they_are,
    warn_of_problems,
    write_scalars,
)
from mmguard.hooks.warnings import build_warnings, check_reports_arrive, start_warnings
from mmguard.labels.heads import from_loss
from mmguard.labels.tally import LabelGuardError, Tally, get_source
from mmguard.language import as_message, join, translate
from mmguard.log.messages import add_reporter, describe_offence, describe_place, describe_skipped_ratio, summarize_loop
from mmguard.log.run_log import RunLog
from mmguard.log.statistics import KINDS, SCALARS, SEEN, ByKind, Stats, group_tallies
from mmguard.nn.counting import CountsLabels, has_unread_counts
from mmguard.text import visible

#: Keys of the message hub, which checkpoints contain: sums of all ranks over the run; those that were not shown yet.
RUN_TOTALS_KEY = 'label_guard'
PENDING_TOTALS_KEY = 'label_guard_unshown'
#: Number of offending iterations with a line each.
SINGLES = 3
#: Number of files in the table at the end.
WORST = 20


class LabelGuardHook(Hook):
    """Hook that logs what guards in the pipeline and guarded losses skipped or remapped, exactly and per iteration.

    Writes the scalars ``guard/skipped_pixels``, ``guard/remapped_pixels``, ``guard/skipped_instances``,
    ``guard/remapped_instances``, ``guard/loss_skipped``, ``guard/loss_remapped``, ``guard/mapped_pixels`` (what the
    user's own ``label_map`` changed, not invalid labels) and ``guard/empty_images`` (images without any instance), each
    as soon as it is not 0; those of validation are called ``guard/val/skipped_pixels`` and so on. They are sums over
    all ranks and over the iterations since a LoggerHook showed them last. Logs one line for each of the first three
    offending iterations, then one per interval of the LoggerHook. Writes one JSON line per offending iteration to
    ``<runner.log_dir>/label_guard.jsonl`` (on rank 1 ``label_guard.rank1.jsonl``, and so on), which
    ``mmguard.read_log`` reads; ``label_guard.json`` next to it says which labels were valid and has the sums over all
    iterations. At the first invalid labels it names the likely cause; after a loop of any mode it prints a table.

    Args:
        max_skipped_ratio (float, optional): In [0, 1]. Training stops with ``LabelGuardError`` once the share of
            skipped pixels, instances or loss elements since the start of the run, also of one that was resumed,
            exceeds it; with several ranks it is checked when a LoggerHook shows the scalars.
        guard (bool): Guard the losses and pipelines of the run that are not guarded yet, as ``mmguard apply`` would
            write them into the config; a line in the log names each. Defaults to False.

    Raises:
        ValueError, TypeError: An argument out of range.
        LabelGuardError: While training, see ``max_skipped_ratio``.
    """

    # After RuntimeInfoHook, which has waited for the device anyway, and before LoggerHook, which prints the scalars.
    priority = 'NORMAL'

    def __init__(self, max_skipped_ratio: Optional[float] = None, guard: bool = False) -> None:
        if not isinstance(max_skipped_ratio, (int, float, type(None))):
            raise TypeError(f'max_skipped_ratio must be a number in [0, 1], got {max_skipped_ratio!r}')
        if max_skipped_ratio is not None and not 0 <= max_skipped_ratio <= 1:
            raise ValueError(f'max_skipped_ratio must be a number in [0, 1], got {max_skipped_ratio}')
        self.max_skipped_ratio = max_skipped_ratio
        if not isinstance(guard, bool):
            raise TypeError(f'guard must be True or False, got {guard!r}')
        self.guard = guard
        add_reporter(self)
        self._losses: Dict[str, CountsLabels] = {}
        self._log: RunLog
        #: Sums over all ranks since the start of the run, in the order of ``Stats.vector``.
        self._run_totals: List[int] = []
        #: Sums of this rank that are not added up over ranks yet; sums of all ranks that no logger has shown yet.
        self._rank_counts: List[int] = []
        self._pending_totals: List[int] = []
        self._loggers: List[LoggerHook] = []
        self._epoch_length = 0
        #: Mode -> the iterations that have no line yet: the first, the last, and their statistics.
        self._unreported: Dict[str, Tuple[Dict[str, int], Dict[str, int], Stats]] = {}
        self._singles_left = SINGLES
        self._hinted: Set[str] = set()
        self._named: Set[str] = set()
        self._closed: Set[Tuple[str, bool]] = set()

    def before_run(self, runner: Any) -> None:
        if self.guard:
            self._guard(runner)
        self._log = run_log_of(runner)

    # ---- training

    def before_train(self, runner: Any) -> None:
        for warning in start_warnings(runner):
            runner.logger.warning(f'guard: {visible(warning)}')
        self._start('train', runner)
        saved = runner.message_hub.runtime_info  # of a resumed run
        self._run_totals = _add_numbers([], saved.get(RUN_TOTALS_KEY, ()))
        self._pending_totals = list(saved.get(PENDING_TOTALS_KEY, ()))
        self._losses = find_guarded_losses(runner.model)
        for loss in self._losses.values():
            loss.take_counts()
        # Other hooks may read the message hub even without a LoggerHook: use the default interval then.
        self._loggers = [hook for hook in runner.hooks if isinstance(hook, LoggerHook)] or [LoggerHook()]
        show_loss_counts_as_they_are(runner.log_processor)
        if not self._losses and not collect_rules(get_dataset(runner, 'train')):
            runner.logger.warning(
                translate('guard: nothing to report: neither the training pipeline nor a loss of the model is guarded')
            )

    def before_train_iter(self, runner: Any, batch_idx: int, data_batch: Any = None) -> None:
        for loss in self._losses.values():
            if getattr(loss, 'on_invalid', None) == 'raise':
                loss.sources = [get_source(sample) for sample in find_samples(data_batch)]

    def after_train_iter(
        self, runner: Any, batch_idx: int, data_batch: Any = None, outputs: Optional[dict] = None
    ) -> None:
        samples = select_trained(data_batch)
        stats = Stats.from_samples(samples)
        losses = self._read_losses(runner)
        if losses:
            # Only a loss met these labels, no guard in the pipeline: look again to name the files.
            offended = next((name for name, count in losses.items() if count), None)
            stats.add_losses(
                losses, group_tallies() if offended is None else self._find_offending(runner, samples, offended)
            )
        self._see(runner, 'train', get_train_position(runner, batch_idx), stats, samples)
        self._rank_counts = _add_numbers(self._rank_counts, stats.vector())
        done, length = batch_idx + 1, self._epoch_length
        is_last = runner.iter + 1 == getattr(runner.train_loop, 'max_iters', 0)
        # As in LoggerHook.after_train_iter, which comes next.
        is_shown = any(
            done % hook.interval == 0 or (done == length and (not hook.ignore_last or length <= hook.interval))
            for hook in self._loggers
        )
        # Several ranks wait for each other here, so not in every iteration.
        if is_shown or is_last or done == length or dist.get_world_size() == 1:
            self._add_up(runner)
        if is_shown:
            self._show(runner)
        elif is_last:  # before a checkpoint is written
            self._show(runner, iteration=runner.iter + 1)

    def after_train(self, runner: Any) -> None:
        self._add_up(runner)
        self._show(runner, iteration=runner.iter)  # for a training that stopped early
        self._close(runner, 'train')

    def _add_up(self, runner: Any) -> None:
        """Sum the counts since the last call over all ranks."""
        if not self._rank_counts:  # the same on every rank
            return
        numbers, self._rank_counts = _sum_over_ranks(self._rank_counts), []
        self._run_totals = _add_numbers(self._run_totals, numbers)
        self._pending_totals = _add_numbers(self._pending_totals, numbers)
        runner.message_hub.update_info(RUN_TOTALS_KEY, self._run_totals)
        runner.message_hub.update_info(PENDING_TOTALS_KEY, self._pending_totals)
        ratio, limit = find_skipped_ratio(self._run_totals), self.max_skipped_ratio
        if limit is not None and ratio > limit:
            self._show(runner, iteration=runner.iter + 1)
            self._close(runner, 'train')
            worst = [tally for kind in KINDS for tally in self._log.modes['train'].find_worst(kind, 5)]
            raise LabelGuardError(describe_skipped_ratio(ratio, limit, worst), worst)

    def _show(self, runner: Any, iteration: Optional[int] = None) -> None:
        """Pass the counts since the last call to the LoggerHook, which runs next.

        With ``iteration``, no LoggerHook will show them, so the visualizer gets them immediately, for that training
        iteration.
        """
        self._log_window(runner, 'train')
        if iteration is not None and not self._pending_totals:
            return
        # Zeros, too: a logger would show the old numbers again.
        tags = write_scalars(runner, 'train', self._pending_totals or [0] * len(SCALARS))
        self._pending_totals = []
        runner.message_hub.update_info(PENDING_TOTALS_KEY, [])
        if iteration is not None and tags:
            prefix = 'train/' if getattr(runner.log_processor, 'log_with_hierarchy', False) else ''
            runner.visualizer.add_scalars({f'{prefix}{tag}': number for tag, number in tags.items()}, step=iteration)

    def _read_losses(self, runner: Any) -> Dict[str, Tally]:
        """Read all device counters with one copy."""
        present = _take_counts(self._losses)
        if has_unread_counts():  # of a loss that has replaced another while training
            self._losses = find_guarded_losses(runner.model)
            present.update(_take_counts(self._losses))
        if not present:
            return {}
        return {n: Tally(*row) for n, row in zip(present, torch.stack(list(present.values())).tolist())}

    def _find_offending(self, runner: Any, samples: List[Any], loss_name: str) -> ByKind:
        spaces = from_loss(unwrap(runner.model), loss_name)
        return find_offending(samples, spaces, getattr(self._losses[loss_name], 'on_invalid', 'ignore'))

    # ---- validation and test: mmengine calls these for every loop

    def _before_epoch(self, runner: Any, mode: str = 'train') -> None:
        if mode == 'train':
            self._epoch_length = _count_iterations(get_loaders(runner, 'train')[0])  # LoggerHook only supports this one
        else:
            self._start(mode, runner)

    def _after_iter(
        self, runner: Any, batch_idx: int, data_batch: Any = None, outputs: Any = None, mode: str = 'train'
    ) -> None:
        # Ranks may have loaders of different lengths, so sums over ranks have to wait for the end.
        place, samples = {'iter': batch_idx + 1}, select_evaluated(data_batch)
        if mode == 'val':  # the training iteration identifies the validation
            loop = get_built_loop(runner)
            place['step'] = 0 if loop is None else loop.iter
        self._see(runner, mode, place, Stats.from_samples(samples), samples)

    def _after_epoch(self, runner: Any, mode: str = 'train') -> None:
        if mode != 'train':
            write_scalars(runner, mode, _sum_over_ranks(self._log.modes[mode].sums.vector()))
            self._close(runner, mode)

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
        first = mode not in self._log.modes
        dataset = get_dataset(runner, mode)
        for loader in get_loaders(runner, mode):  # a second training has another
            keep_reports(loader)
        if first:
            check_reports_arrive(runner.logger, dataset)
        valid = describe_valid_labels(runner.model, dataset, with_losses=mode == 'train') if first else None
        self._log.begin(mode, valid, find_naming_roots(dataset))
        warn_of_problems(runner)

    def _see(self, runner: Any, mode: str, place: Dict[str, int], stats: Stats, samples: List[Any]) -> None:
        """Log an iteration: a line each for the first with invalid labels, and the likely cause for the very first."""
        self._log.see(mode, place, stats, map(get_source, samples))
        warn_of_problems(runner)
        begin, _, unreported = self._unreported.get(mode, (place, place, Stats()))
        unreported += stats
        # The first image of an iteration is named, so the order is kept.
        if stats and unreported.iterations > 1:
            unreported = unreported.condense()
        self._unreported[mode] = (begin, place, unreported)
        if self._singles_left:
            self._singles_left -= bool(stats)
            self._log_window(runner, mode)
        for kind in KINDS:
            if kind not in self._hinted and (stats.offending[kind] or stats.loss_samples[kind]):
                for warning in build_warnings(mode, kind, stats, runner.model, get_dataset(runner, mode)):
                    runner.logger.warning(f'guard: {visible(warning)}')
                    self._hinted.add(kind)

    def _log_window(self, runner: Any, mode: str) -> None:
        """Log a line about the invalid labels since the last line, if there are any."""
        begin, end, stats = self._unreported.pop(mode, ({}, {}, Stats()))
        if stats:
            where = join('', ('guard: ', describe_place(mode, begin, end)))
            runner.logger.info(describe_offence(where, stats))

    def _close(self, runner: Any, mode: str) -> None:
        """Log the result of a loop: in full the first time, then on one line."""
        self._log.end(mode)
        warn_of_problems(runner)
        stats = self._log.modes[mode]
        result = (mode, bool(stats.sums))
        if mode != 'train' and result in self._closed:
            self._log_window(runner, mode)
            return
        self._closed.add(result)
        self._unreported.pop(mode, None)
        text = summarize_loop(mode, stats, WORST, self._log.lines)
        if text:
            runner.logger.info(f'guard: {text}')

    def after_run(self, runner: Any) -> None:
        self._log.close()


def _take_counts(losses: Dict[str, CountsLabels]) -> Dict[str, torch.Tensor]:
    counts = {name: loss.take_counts() for name, loss in losses.items()}
    return {name: count for name, count in counts.items() if count is not None}


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


def find_skipped_ratio(numbers: List[int]) -> float:
    """Return the largest share of skipped pixels, instances or loss elements, from a ``Stats.vector``."""
    counts = dict(zip(SCALARS + SEEN, numbers))
    parts = (('skipped_pixels', 'pixels'), ('skipped_instances', 'instances'), ('loss_skipped', 'loss_elements'))
    return max(counts[part] / counts[whole] if counts[whole] else 0.0 for part, whole in parts)


def _add_numbers(numbers: List[int], added: Sequence[int]) -> List[int]:
    """Add two ``Stats.vector``; an empty one counts as 0, one of another length (a checkpoint's) is ignored."""
    length = len(SCALARS + SEEN)
    numbers = numbers or [0] * length
    return [a + b for a, b in zip(numbers, added)] if len(added) == length else numbers
