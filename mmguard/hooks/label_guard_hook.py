"""Hook that logs the invalid labels that guards skipped or remapped."""

from __future__ import annotations

from contextlib import contextmanager
from inspect import signature
from typing import Any, Dict, Iterator, List, Optional, Set

from mmengine.hooks import CheckpointHook, Hook, LoggerHook

from mmguard.hooks.discovery import (
    collect_rules,
    describe_valid_labels,
    find_guarded_losses,
    find_naming_roots,
    find_offending,
    find_samples,
    get_built_loop,
    get_built_loops,
    get_collate_name,
    get_dataset,
    get_loaders,
    keep_reports,
    select_evaluated,
    select_trained,
    unwrap,
)
from mmguard.hooks.runs import (
    Schedule,
    add_numbers,
    add_to_run,
    build_warnings,
    check_reports_arrive,
    find_skipped_ratio,
    get_train_position,
    put_back_run,
    run_log_of,
    run_within,
    show_loss_counts_as_they_are,
    start_warnings,
    sum_over_ranks,
    take_pending,
    warn_of_problems,
    write_scalars,
)
from mmguard.labels.instances import InstanceRule
from mmguard.labels.rules import LabelMap, check_on_invalid
from mmguard.labels.spaces import from_loss
from mmguard.labels.tally import LabelGuardError, Tally, get_source
from mmguard.language import as_message, translate
from mmguard.log.messages import ConsoleLines, add_reporter, describe_skipped_ratio
from mmguard.log.run_log import RunLog
from mmguard.log.statistics import KINDS, SCALARS, ByKind, Stats, group_tallies
from mmguard.nn.counting import CountsLabels, has_unread_counts, take_tallies
from mmguard.text import visible


class LabelGuardHook(Hook):
    """Hook that logs per iteration how many labels the guards in the pipeline and the losses skipped or remapped.

    Writes the scalars ``guard/skipped_pixels``, ``guard/remapped_pixels``, ``guard/skipped_instances``,
    ``guard/remapped_instances``, ``guard/loss_skipped``, ``guard/loss_remapped``, ``guard/mapped_pixels`` (what the
    user's own ``label_map`` changed, not invalid labels) and ``guard/empty_images`` (images without any instance). In
    validation the names begin with ``guard/val/``. A scalar appears as soon as it is not 0. Scalars are sums over all
    ranks and over the iterations since a LoggerHook last showed them. Logs one line for each of the first three
    offending iterations, then one per interval of the LoggerHook. Writes one JSON line per offending iteration to
    ``<runner.log_dir>/label_guard.jsonl`` (on rank 1 ``label_guard.rank1.jsonl``, and so on), which
    ``mmguard.read_log`` reads. ``label_guard.json`` in the same folder lists the valid labels and the sums over all
    iterations. The first invalid labels are logged with their likely cause; each loop ends with a table.

    Args:
        max_skipped_ratio (float, optional): In [0, 1]. Training stops with ``LabelGuardError`` once the fraction of
            skipped pixels, instances or loss elements since the start of the run (including before a resume) exceeds
            this ratio. With several ranks, it is checked when a LoggerHook shows the scalars or a checkpoint is saved.
        guard (bool): Guard the losses and pipelines of the run that are not guarded yet, with the guards that
            ``mmguard apply`` would write into the config; a line in the log names each. Defaults to False.
        label_map (dict[int, int], optional): For the guards that ``guard=True`` puts into the pipelines: raw value ->
            class, or ``ignore_index``. Applies to pixels if the pipeline has label maps, otherwise to instances.
        on_invalid (str, optional): For the guards that ``guard=True`` puts in: ``'ignore'``, ``'drop'`` (instances
            only), ``'clip'`` or ``'raise'``. Default: ``'ignore'``, or ``'drop'`` if assigners cannot ignore instances.
        ignore_index (int, optional): For the label map guards that ``guard=True`` puts in. Default: that of the head.

    Raises:
        ValueError, TypeError: An argument has the wrong type or is out of range.
        LabelGuardError: While training, if ``max_skipped_ratio`` is exceeded.
    """

    # After RuntimeInfoHook, which has waited for the device anyway, and before LoggerHook, which prints the scalars.
    priority = 'NORMAL'

    def __init__(
        self,
        max_skipped_ratio: Optional[float] = None,
        guard: bool = False,
        label_map: Optional[LabelMap] = None,
        on_invalid: Optional[str] = None,
        ignore_index: Optional[int] = None,
    ) -> None:
        if not isinstance(max_skipped_ratio, (int, float, type(None))):
            raise TypeError(f'max_skipped_ratio must be a number in [0, 1], got {max_skipped_ratio!r}')
        if max_skipped_ratio is not None and not 0 <= max_skipped_ratio <= 1:
            raise ValueError(f'max_skipped_ratio must be a number in [0, 1], got {max_skipped_ratio}')
        self.max_skipped_ratio = max_skipped_ratio
        if not isinstance(guard, bool):
            raise TypeError(f'guard must be True or False, got {guard!r}')
        self.guard = guard
        self.label_map = label_map
        self.on_invalid = on_invalid
        self.ignore_index = ignore_index
        given = {'label_map': label_map, 'on_invalid': on_invalid, 'ignore_index': ignore_index}
        self._guard_options = {name: value for name, value in given.items() if value is not None}
        if self._guard_options and not guard:
            raise ValueError(f'{", ".join(self._guard_options)}: has no effect without guard=True, got guard=False')
        if on_invalid is not None:
            check_on_invalid(on_invalid, InstanceRule.choices)
        # The guards check the rest: only they know the number of classes.
        add_reporter(self)
        self._losses: Dict[str, CountsLabels] = {}
        self._log: RunLog
        self._schedule: Schedule
        self._console = ConsoleLines()
        #: Sums of this rank that are not added up over ranks yet, in the order of ``Stats.vector``.
        self._rank_counts: List[int] = []
        #: What is logged only once: lines of ``guard=True``, kinds with a likely cause, modes without reports.
        self._said: Set[str] = set()

    def before_run(self, runner: Any) -> None:
        self._move_before_readers(runner)
        if self.guard:
            self._guard(runner)
        self._log = run_log_of(runner)
        for loop in get_built_loops(runner):
            run_within(loop, self, self._keep_sums)

    def after_run(self, runner: Any) -> None:
        for loop in get_built_loops(runner):
            put_back_run(loop)
        self._log.close()

    def _move_before_readers(self, runner: Any) -> None:
        """Remove other LabelGuardHooks, and move this one before the hooks that show or save its counts."""
        hooks: List[Hook] = runner.hooks
        for other in [hook for hook in hooks if isinstance(hook, LabelGuardHook) and hook is not self]:
            hooks.remove(other)
            runner.logger.warning(
                translate(
                    'guard: this run has more than one LabelGuardHook. {first} is used, {other} is ignored: remove one',
                    first=self,
                    other=other,
                )
            )
        readers = [i for i, hook in enumerate(hooks) if isinstance(hook, (LoggerHook, CheckpointHook))]
        if readers and self in hooks[readers[0] :]:
            hooks.remove(self)
            hooks.insert(readers[0], self)

    def __repr__(self) -> str:
        given = {name: (getattr(self, name), of.default) for name, of in signature(type(self)).parameters.items()}
        arguments = (f'{name}={value!r}' for name, (value, default) in given.items() if value != default)
        return f'{type(self).__name__}({", ".join(arguments)})'

    @contextmanager
    def _keep_sums(self) -> Iterator[None]:
        """Write the run's sums to ``label_guard.json`` if a loop ends with an exception."""
        try:
            yield
        except BaseException:
            self._log.write()
            raise

    # ---- training

    def before_train(self, runner: Any) -> None:
        for warning in start_warnings(runner):
            runner.logger.warning(f'guard: {visible(warning)}')
        self._start('train', runner)
        self._rank_counts = []
        self._schedule = Schedule(runner)
        self._losses = find_guarded_losses(runner.model)
        for loss in self._losses.values():
            loss.take_valid()
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
        loop, samples = runner.train_loop, select_trained(data_batch)
        losses = self._read_losses(runner)
        stats = Stats.from_samples(samples, losses)
        if losses and stats:
            stats.add_loss_samples(self._find_offending(runner, samples, losses))
        self._see(runner, 'train', get_train_position(runner, loop, batch_idx), stats, samples)
        self._rank_counts = add_numbers(self._rank_counts, stats.vector())
        is_shown = self._schedule.is_logged(batch_idx)
        is_last = loop.iter + 1 == getattr(loop, 'max_iters', 0)
        if is_shown or is_last or self._schedule.is_added_up(runner, batch_idx):
            self._add_up(runner)
        if is_shown:
            self._show(runner)
        elif is_last:  # before a checkpoint is written
            self._show(runner, iteration=loop.iter + 1)

    def after_train(self, runner: Any) -> None:
        self._add_up(runner)
        self._show(runner, iteration=runner.iter)  # for a training that stopped early
        self._close(runner, 'train')

    def _add_up(self, runner: Any) -> None:
        """Sum the counts since the last call over all ranks; raise ``LabelGuardError`` above ``max_skipped_ratio``."""
        if not self._rank_counts:  # the same on every rank
            return
        numbers = self._rank_counts if self._schedule.is_alone else sum_over_ranks(self._rank_counts)
        totals = add_to_run(runner.message_hub, numbers)
        self._rank_counts, limit = [], self.max_skipped_ratio
        ratio = 0.0 if limit is None else find_skipped_ratio(totals)
        if limit is not None and ratio > limit:
            self._show(runner, iteration=runner.iter + 1)
            self._close(runner, 'train')
            worst = [tally for kind in KINDS for tally in self._log.modes['train'].find_worst(kind, 5)]
            raise LabelGuardError(describe_skipped_ratio(ratio, limit, worst), worst)

    def _show(self, runner: Any, iteration: Optional[int] = None) -> None:
        """Pass the counts since the last call to the LoggerHook, which runs next.

        If ``iteration`` is given, no LoggerHook will show the counts, so the visualizer gets them immediately, for that
        training iteration.
        """
        self._write(runner, self._console.end_window('train'))
        numbers = take_pending(runner.message_hub)
        if iteration is not None and not numbers:
            return
        # Zeros, too: a logger would show the old numbers again.
        tags = write_scalars(runner, 'train', numbers or [0] * len(SCALARS))
        if iteration is not None and tags:
            prefix = 'train/' if getattr(runner.log_processor, 'log_with_hierarchy', False) else ''
            runner.visualizer.add_scalars({f'{prefix}{tag}': number for tag, number in tags.items()}, step=iteration)

    def _read_losses(self, runner: Any) -> Dict[str, Tally]:
        """Return {name: tally} of the guarded losses, with one copy of all counters from the device."""
        present = take_tallies(self._losses)
        if has_unread_counts():  # of a loss that replaced an earlier one during training
            self._losses = find_guarded_losses(runner.model)
            present.update(take_tallies(self._losses))
        return present

    def _find_offending(self, runner: Any, samples: List[Any], losses: Dict[str, Tally]) -> ByKind:
        """Return the tallies of samples whose invalid labels only a loss saw, not a guard in the pipeline."""
        for name in (name for name, count in losses.items() if count):
            spaces = from_loss(unwrap(runner.model), name)
            on_invalid = getattr(self._losses[name], 'on_invalid', 'ignore')
            found = find_offending(samples, spaces, on_invalid, losses[name])
            if any(found.values()):
                return found
        return group_tallies()

    # ---- validation and test: mmengine calls these for every loop

    def _before_epoch(self, runner: Any, mode: str = 'train') -> None:
        if mode == 'train':
            self._schedule = Schedule(runner)
        else:
            self._start(mode, runner)
            self._add_up(runner)  # the best checkpoint is saved after a validation

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
            write_scalars(runner, mode, sum_over_ranks(self._log.modes[mode].sums.vector()))
            self._close(runner, mode)

    # ---- the parts

    def _guard(self, runner: Any) -> None:
        """Guard the losses, assigners and pipelines of the run; log each guarded or unguarded part once."""
        from mmguard.hooks.guard_run import guard_run  # reads configs, which other runs need not do

        changed, left = guard_run(runner, self._guard_options)
        for line in (
            *(translate('guarded {part}', part=as_message(part)) for part in changed),
            *(translate('left {part}', part=as_message(part)) for part in left),
        ):
            if line not in self._said:
                self._said.add(line)
                runner.logger.info(f'guard: {visible(line)}')

    def _start(self, mode: str, runner: Any) -> None:
        first = mode not in self._log.modes
        dataset = get_dataset(runner, mode)
        # A second training has another loader.
        if sum(keep_reports(loader) for loader in get_loaders(runner, mode)) and mode == 'train':
            from mmguard.hooks.guard_run import restart_loader

            restart_loader(runner)
        if first:
            check_reports_arrive(runner.logger, dataset)
        valid = describe_valid_labels(runner.model, dataset, with_losses=mode == 'train') if first else None
        self._log.begin(mode, valid, find_naming_roots(dataset))
        warn_of_problems(runner)

    def _see(self, runner: Any, mode: str, place: Dict[str, int], stats: Stats, samples: List[Any]) -> None:
        """Log an iteration; print a line for the first three with invalid labels, and a likely cause once per kind."""
        self._log.see(mode, place, stats, [get_source(sample) for sample in samples])
        for problem in self._log.take_problems():
            runner.logger.warning(f'guard: {visible(problem)}')
        if not samples and mode not in self._said:
            self._said.add(mode)
            self._warn_of_missing_reports(runner, mode)
        self._write(runner, self._console.add(mode, place, stats))
        for kind in KINDS:
            if kind not in self._said and (stats.offending[kind] or stats.loss_samples[kind]):
                for warning in build_warnings(mode, kind, stats, runner.model, get_dataset(runner, mode)):
                    runner.logger.warning(f'guard: {visible(warning)}')
                    self._said.add(kind)

    def _warn_of_missing_reports(self, runner: Any, mode: str) -> None:
        """Warn if the pipeline is guarded, but its batches do not contain data samples."""
        if collect_rules(get_dataset(runner, mode)):
            runner.logger.warning(
                translate(
                    'guard: the collate function {collate} does not return data samples, so the hook cannot see what '
                    "the guards count ({mode}). Let it return a dict whose 'data_samples' is a dict of the labels, or "
                    'count invalid labels with `mmguard scan CONFIG`',
                    collate=get_collate_name(get_loaders(runner, mode)[0]),
                    mode=mode,
                )
            )

    def _close(self, runner: Any, mode: str) -> None:
        """End the record of a loop, and log its closing table."""
        self._log.end(mode)
        warn_of_problems(runner)
        self._write(runner, self._console.end_loop(mode, self._log.modes[mode], self._log.lines))

    def _write(self, runner: Any, line: str) -> None:
        if line:
            runner.logger.info(line)
