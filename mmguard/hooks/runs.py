"""Functions that several hooks use: they open a run's log, sum over ranks, write scalars, warn and wrap a training."""

from __future__ import annotations

from contextlib import ExitStack, suppress
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any, Callable, ContextManager, Dict, List, Optional, Sequence, Set
from weakref import WeakKeyDictionary

import numpy as np
import torch
from mmengine import dist
from mmengine.hooks import CheckpointHook, Hook, LoggerHook
from mmengine.logging import HistoryBuffer
from torch import nn

from mmguard.hooks.discovery import (
    collect_rules,
    find_class_names,
    get_built_loop,
    get_loaders,
    unwrap,
    walk_assigners,
    walk_pipelines,
    walk_rules,
)
from mmguard.labels.rules import BaseRule
from mmguard.labels.spaces import from_loss
from mmguard.labels.tally import LABEL_GUARD, LabelGuardError, Tally
from mmguard.language import Message, as_message, translate
from mmguard.log.run_log import RunLog
from mmguard.log.statistics import SCALARS, SEEN, Stats
from mmguard.text import describe_error, join_with_or, visible

if TYPE_CHECKING:
    from mmguard.findings import Finding

_LOGS: WeakKeyDictionary[Any, RunLog] = WeakKeyDictionary()


def run_log_of(runner: Any) -> RunLog:
    """Return the log of a run, which its hooks share."""
    if runner not in _LOGS:
        rank, world_size = dist.get_rank(), dist.get_world_size()
        _LOGS[runner] = RunLog(runner.log_dir, rank, world_size, config=runner.cfg.filename)
    return _LOGS[runner]


def warn_of_problems(runner: Any) -> None:
    """Warn once of each log file that cannot be written, has reached its limit or is not continued."""
    for problem in _LOGS[runner].take_problems():
        runner.logger.warning(f'guard: {visible(problem)}')


def get_train_position(runner: Any, loop: Any, batch_idx: int) -> Dict[str, int]:
    """Return ``{'iter': ...}`` as on the console; in logs by epoch also ``'epoch'``, and ``'step'`` over all epochs."""
    if runner.log_processor.by_epoch:
        return {'iter': batch_idx + 1, 'epoch': loop.epoch + 1, 'step': loop.iter + 1}
    return {'iter': loop.iter + 1}


class Schedule:
    """Schedule of the iterations after which a logger shows the counts of a training, or a checkpoint saves them."""

    def __init__(self, runner: Any) -> None:
        hooks = runner.hooks
        # Other hooks may read the message hub even without a LoggerHook: use the default interval then.
        self._loggers = [hook for hook in hooks if isinstance(hook, LoggerHook)] or [LoggerHook()]
        self._savers = [hook for hook in hooks if isinstance(hook, CheckpointHook) and not hook.by_epoch]
        #: True if this process is the only rank.
        self.is_alone = dist.get_world_size() == 1
        self._length = 0  # if the dataset is a stream
        with suppress(TypeError):
            self._length = len(get_loaders(runner, 'train')[0])  # LoggerHook only uses the first loader

    def is_logged(self, batch_idx: int) -> bool:
        """Return True if a LoggerHook shows the scalars after this iteration, see ``LoggerHook.after_train_iter``."""
        done = batch_idx + 1
        for hook in self._loggers:
            if done % hook.interval == 0:
                return True
            if done == self._length and (not hook.ignore_last or done <= hook.interval):
                return True
        return False

    def is_added_up(self, runner: Any, batch_idx: int) -> bool:
        """Return True if the ranks sum their counts after this iteration even if no logger shows the sums."""
        return (
            self.is_alone
            or batch_idx + 1 == self._length
            or any(hook.every_n_train_iters(runner, hook.interval, hook.save_begin) for hook in self._savers)
        )


#: Keys of the message hub, saved in checkpoints: sums over all ranks since the start of the run, and since a logger
#: last showed them; in the order of ``Stats.vector``.
RUN_TOTALS_KEY, PENDING_TOTALS_KEY = 'label_guard', 'label_guard_unshown'


def add_to_run(message_hub: Any, numbers: List[int]) -> List[int]:
    """Add ``numbers`` to the sums over all ranks; return the sums of the run, including counts from before a resume."""
    info = message_hub.runtime_info
    for key in (PENDING_TOTALS_KEY, RUN_TOTALS_KEY):
        totals = info.get(key, ())
        if len(totals) == len(numbers):
            for place, number in enumerate(numbers):
                totals[place] += number
        else:  # a checkpoint of another version
            message_hub.update_info(key, list(numbers))
    sums: List[int] = info[RUN_TOTALS_KEY]
    return sums


def take_pending(message_hub: Any) -> List[int]:
    """Return the sums that no logger has shown yet, and reset them."""
    numbers = message_hub.runtime_info.get(PENDING_TOTALS_KEY, [])
    message_hub.update_info(PENDING_TOTALS_KEY, [])
    return numbers


def sum_over_ranks(numbers: List[int]) -> List[int]:
    if dist.get_world_size() == 1:
        return numbers
    total = torch.tensor(numbers, dtype=torch.int64)
    dist.all_reduce(total)
    return total.tolist()


def add_numbers(numbers: Sequence[int], added: List[int]) -> List[int]:
    """Add two vectors of counts, see ``Stats.vector``; if their lengths differ, return only ``added``."""
    return [a + b for a, b in zip(numbers, added)] if len(numbers) == len(added) else added


def find_skipped_ratio(numbers: List[int]) -> float:
    """Return the largest skipped fraction, of pixels, instances or loss elements, in a ``Stats.vector``."""
    counts = dict(zip(SCALARS + SEEN, numbers))
    parts = (('skipped_pixels', 'pixels'), ('skipped_instances', 'instances'), ('loss_skipped', 'loss_elements'))
    return max(counts[part] / counts[whole] if counts[whole] else 0.0 for part, whole in parts)


#: mmengine copies a scalar's whole history at every update; this many values are enough for any window.
HISTORY = 10_000


def write_scalars(runner: Any, mode: str, numbers: List[int]) -> Dict[str, int]:
    """Write the scalars that loggers show next, without counters that were always 0; return them as {tag: number}."""
    scalars, tags = runner.message_hub.log_scalars, {}
    for name, number in zip(SCALARS, numbers):
        # LoggerHook drops the leading mode: without a second one, validation and training would be one curve.
        tag = f'guard/{name}' if mode == 'train' else f'guard/{mode}/{name}'
        key = f'{mode}/{tag}'
        if number or key in scalars:
            # An array of integers is printed without decimals. After a test, mmengine's JSON drops numpy integers.
            empty: Any = np.array([], dtype=object if mode == 'test' else np.int64)
            scalars.setdefault(key, HistoryBuffer(empty, max_length=HISTORY))
            runner.message_hub.update_scalar(key, number)
            tags[tag] = number
    return tags


def show_loss_counts_as_they_are(log_processor: Any) -> None:
    """Keep mmengine from averaging the losses' counts over a window, as it does if a name contains 'loss'."""
    for name in ('guard/loss_skipped', 'guard/loss_remapped'):
        if all(entry['data_src'] != name for entry in log_processor.custom_cfg):
            log_processor.custom_cfg.append(dict(data_src=name, method_name='current'))


class HookAroundTraining(Hook):
    """Base of hooks that run the training within a context, so that they notice how the training ends."""

    def around_training(self, runner: Any) -> ContextManager[Any]:
        """Create the context in which the training runs."""
        raise TypeError(f'{type(self).__name__} must define around_training()')

    def before_run(self, runner: Any) -> None:
        loop = get_built_loop(runner)
        if loop is not None:  # else only validation runs
            run_within(loop, self, partial(self.around_training, runner))

    def after_run(self, runner: Any) -> None:
        loop = get_built_loop(runner)
        if loop is not None:
            put_back_run(loop)


def run_within(loop: Any, owner: object, context: Callable[[], ContextManager[Any]]) -> None:
    """Run the next ``loop.run`` within a context, which replaces an unused context of the same owner.

    mmengine does not call hooks when a training ends with an exception, wherever it is raised: loading, a step,
    validation, Ctrl-C. The original ``loop.run`` is restored before the training runs. Contexts of later owners are
    nested in those of earlier owners.
    """
    run = vars(loop).get('run')
    if not isinstance(run, _RunWithin):
        run = loop.run = _RunWithin(loop)
    run.contexts[owner] = context


def put_back_run(loop: Any) -> None:
    """Restore ``loop.run`` if no training ran, because ``runner.val()`` calls ``before_run``, too."""
    run = vars(loop).get('run')
    if isinstance(run, _RunWithin):
        run.put_back()


class _RunWithin:
    """Replacement of ``loop.run`` for one call."""

    def __init__(self, loop: Any) -> None:
        self.contexts: Dict[object, Callable[[], ContextManager[Any]]] = {}
        self._loop, self._run = loop, loop.run
        self._before = vars(loop).get('run')

    def __call__(self) -> Any:
        self.put_back()
        with ExitStack() as stack:
            for context in self.contexts.values():
                stack.enter_context(context())
            return self._run()

    def put_back(self) -> None:
        if self._before is None:
            del self._loop.run  # reveals the method of the class
        else:
            self._loop.run = self._before


def start_warnings(runner: Any) -> List[str]:
    """Return a warning for each mismatch between the guards of a run and its model or data.

    A run that was built only from objects has no config, and gets no warning.
    """
    # Not above: only needed at the start.
    from mmguard.config.agreement import FACTS, find_start_faults
    from mmguard.config.read import ReadConfig

    found: List[Finding] = []
    try:
        config = ReadConfig(runner.cfg.to_dict(), runner.cfg.filename or '<config>', shows_guards=False)
        if find_start_faults(config):
            from mmguard.findings.engine import diagnose, select_rules

            found = diagnose(config=config, rules=select_rules(tuple(FACTS)))
    except Exception as error:  # a config may hold anything, and a warning must not end a training
        return [translate('the config could not be checked: {error}', error=describe_error(error))]
    return [
        translate(
            '{code} {evidence}: {title} {advice}',
            code=finding.code,
            evidence=as_message(finding.evidence),
            title=as_message(finding.title),
            advice=as_message(finding.next_step),
        )
        for finding in found
    ]


def check_reports_arrive(logger: Any, dataset: Any) -> None:
    """Warn if a Pack transform drops the report of a guard, because its meta_keys do not contain ``'label_guard'``.

    Raises:
        LabelGuardError: A guard after the Pack transform would apply the same ``label_map`` again.
    """
    for pipeline in walk_pipelines(dataset):
        packs = [i for i, t in enumerate(pipeline) if type(t).__name__.startswith('Pack')]
        guards = [i for i, t in enumerate(pipeline) if any(walk_rules([t]))]
        if not packs or not guards or LABEL_GUARD in getattr(pipeline[packs[-1]], 'meta_keys', ()):
            continue
        pack = type(pipeline[packs[-1]]).__name__
        for first, second in product(walk_rules(pipeline[: packs[-1]]), walk_rules(pipeline[packs[-1] :])):
            if first.kind == second.kind and first.label_map == second.label_map and not first.is_map_idempotent:
                raise LabelGuardError(
                    f'label_map={first.label_map} would be applied twice, before and after {pack}: its meta_keys '
                    f'lack {LABEL_GUARD!r}, so the second guard cannot see that labels are mapped. Add '
                    f'{LABEL_GUARD!r} to meta_keys of {pack}, or write label_map only in the first guard'
                )
        if max(guards) < packs[-1]:
            guard = type(pipeline[guards[0]]).__name__
            logger.warning(
                translate(
                    'guard: the meta_keys of {pack} lack {key!r}, so the hook cannot see the counts of {guard}. '
                    'Put the guard right after {pack}, or add {key!r} to its meta_keys',
                    pack=pack,
                    key=LABEL_GUARD,
                    guard=guard,
                )
            )


def build_warnings(mode: str, kind: str, stats: Stats, model: Any, dataset: Any) -> List[str]:
    """Return the messages for the first invalid labels of a kind, or [] if no likely cause is found."""
    offending = stats.offending[kind] or stats.loss_samples[kind]
    if not offending:
        return []
    rules = [rule for rule in collect_rules(dataset) if rule.kind == kind]
    findings = _find_likely_causes(kind, stats, offending, model, dataset, rules)
    if not findings:
        return []
    codes = [finding.code for finding in findings[:2]]
    lines = [
        translate(
            'First invalid {what}. {run} continues {how}, but check your data: other labels may be wrong yet in range.',
            what=Message('labels' if kind == 'pixels' else 'instances'),
            run=Message('Training' if mode == 'train' else 'The run'),
            how=Message('without them' if any(t.skipped for t in offending) else 'with them clamped to a class'),
        ),
        translate('  likely cause: {code} {title}', code=codes[0], title=as_message(findings[0].title)),
        translate('  seen: {evidence}', evidence=as_message(findings[0].evidence)),
        translate('  do: {advice}', advice=as_message(findings[0].advice)),
        translate('  more: {commands}', commands=join_with_or(f'`mmguard explain {code}`' for code in codes)),
    ]
    reported = ['\n'.join(lines)]
    if mode == 'train' and kind == 'instances' and any(rule.on_invalid == 'ignore' for rule in rules):
        background = describe_background(unwrap(model))
        reported += [background] if background else []
    mixed = describe_mixing(dataset)
    return [*reported, mixed] if mixed else reported


def _find_likely_causes(
    kind: str, stats: Stats, offending: List[Tally], model: Any, dataset: Any, rules: Sequence[BaseRule]
) -> List[Finding]:
    from mmguard.findings import LabelFacts, diagnose

    facts = LabelFacts.from_tallies(offending, kind, class_names=find_class_names(dataset), files=stats.samples)
    if stats.offending[kind] and rules:
        facts.num_classes, facts.ignore_index = rules[0].num_classes, rules[0].ignore_index
    else:
        of_losses = (from_loss(unwrap(model), name).get(kind) for name, count in stats.losses.items() if count)
        space = next((space for space in of_losses if space is not None), None)
        if space is None:
            return []
        facts.num_classes, facts.ignore_index = space.num_classes, space.ignore_index
    return diagnose(facts)


#: Assigners that always leave out the regions of ignored instances; they have no ``ignore_iof_thr``.
_ALWAYS = ('CenterRegionAssigner',)


def describe_background(model: nn.Module) -> Optional[str]:
    """Return a warning if the assigners train ignored instances as background, else ``None``."""
    disabled: Set[str] = set()
    unable: Set[str] = set()
    for assigner in walk_assigners(model):
        name = type(assigner).__name__
        threshold = getattr(assigner, 'ignore_iof_thr', None)
        if name in _ALWAYS or (threshold is not None and threshold > 0):
            continue
        (unable if threshold is None else disabled).add(name)
    if disabled:
        return translate(
            'instances with an invalid label were marked as ignored, but {assigners} does not use ignored instances '
            '(ignore_iof_thr=-1): their regions are trained as background. Set ignore_iof_thr=0.5 in every assigner '
            "of the model's train_cfg",
            assigners=', '.join(sorted(disabled)),
        )
    if unable:
        return translate(
            'instances with an invalid label were marked as ignored, but {assigners} does not support ignored '
            "instances, so these are trained as background. Correct the labels, or set on_invalid='drop' in "
            'GuardInstanceLabels to accept this',
            assigners=', '.join(sorted(unable)),
        )
    return None


#: Transforms of mmdet and mmseg that mix images.
MIXING = ('CachedMixUp', 'CachedMosaic', 'CopyPaste', 'MixUp', 'Mosaic', 'RandomMosaic')


def describe_mixing(dataset: Any) -> Optional[str]:
    """Return a warning that the log may name a wrong file, if the pipeline mixes images, else ``None``."""
    steps = (type(step).__name__ for pipeline in walk_pipelines(dataset) for step in pipeline)
    found = sorted({name for name in steps if name in MIXING})
    if not found:
        return None
    return translate(
        'the pipeline mixes images ({transforms}): counts are exact, but the log names only the first of the mixed '
        'images, and the invalid label may be in another. `mmguard scan CONFIG` names the files with invalid labels',
        transforms=', '.join(found),
    )
