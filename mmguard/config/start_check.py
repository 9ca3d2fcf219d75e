"""Faults that a run names before its first iteration; the rules report the same facts.

They are mismatches between a guard and its head, a head and its data set, or ignored labels; guards without labels;
evaluation without a guard; replaced hooks of a base config.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional, Tuple

from mmguard.config.classes import get_type_name
from mmguard.config.head_classes import find_mismatched_counts
from mmguard.config.ignored_labels import find_disagreeing_labels
from mmguard.config.label_spaces import GUARD_KINDS, from_config
from mmguard.config.parts import (
    HOOK,
    Part,
    find_guarding_hook,
    find_losses,
    find_metrics,
    find_pipelines,
    find_transforms,
)
from mmguard.config.read import ReadConfig, load_config
from mmguard.config.recognition import find_bases
from mmguard.labels.loss_selection import is_guarded_type
from mmguard.labels.spaces import Space

GUARD_TRANSFORMS = ('GuardSegLabels', 'GuardInstanceLabels')
HOOKS = (HOOK, 'RankGuardHook', 'FlightRecorderHook')
#: Pack transform -> the guard of the labels that it packs.
_GUARD_BY_PACK = {'PackSegInputs': 'GuardSegLabels', 'PackDetInputs': 'GuardInstanceLabels'}
#: Metrics that take labels from the sample -> the guard of such labels. Other metrics open files themselves.
GUARD_BY_METRIC = {'IoUMetric': 'GuardSegLabels', 'SemSegMetric': 'GuardSegLabels', 'VOCMetric': 'GuardInstanceLabels'}


def find_guards(pipeline: List[Part]) -> List[Part]:
    """Return the guards of a pipeline."""
    return [transform for transform in pipeline if transform.name in GUARD_TRANSFORMS]


class UnguardedMetric(NamedTuple):
    """A metric, and the pipeline of its labels, which lacks the guard used in training."""

    metric: Part
    pipeline: List[Part]
    guard: str

    @property
    def dataset(self) -> Part:
        owner = self.pipeline[0].owner
        assert owner is not None  # pipelines belong to data sets
        return owner


def find_unguarded_evaluation(config: ReadConfig) -> Iterator[UnguardedMetric]:
    """Yield the unguarded evaluation pipelines of a guarded training."""
    if not config.shows_guards and find_guarding_hook(config) is not None:
        return  # it guards them, too
    found = find_pipelines(config)
    in_training = any(find_guards(pipeline) for pipeline in found if pipeline[0].split == 'train')
    if not in_training and not any(is_guarded_type(loss.name) for loss in find_losses(config)):
        return
    for metric in find_metrics(config):
        guard = next((GUARD_BY_METRIC[name] for name in GUARD_BY_METRIC if metric.is_a(name)), None)
        if guard is None or metric.config.get('format_only'):
            continue
        judged = [pipeline for pipeline in found if pipeline[0].split == metric.split]
        # A wrapper of the data sets may hold the guard for all of them.
        if any(_is_wrapper_of(pipeline[0].owner) and _has(pipeline, guard) for pipeline in judged):
            continue
        for pipeline in judged:
            loads = any('Annotations' in transform.name for transform in pipeline)
            if loads and pipeline[0].owner is not None and not _has(pipeline, guard):
                yield UnguardedMetric(metric, pipeline, guard)


def _has(pipeline: List[Part], guard: str) -> bool:
    return any(transform.name == guard for transform in find_guards(pipeline))


def _is_wrapper_of(dataset: Optional[Part]) -> bool:
    return dataset is not None and ('dataset' in dataset.config or 'datasets' in dataset.config)


def find_mismatched_guards(config: ReadConfig) -> Iterator[Tuple[Part, int, List[Space]]]:
    """Yield each guard whose ``num_classes`` matches no head, with the right number and the heads."""
    spaces = from_config(config)
    for guard in find_transforms(config):
        classes = guard.config.get('num_classes')
        heads = [space for space in spaces.heads if space.kind == GUARD_KINDS.get(guard.name)]
        if heads and isinstance(classes, int) and classes not in {space.num_classes for space in heads}:
            space = spaces.get(heads[0].kind) or heads[0]
            yield guard, space.num_classes, [space, *heads]


class MisplacedGuard(NamedTuple):
    """A guard that sees no labels: it comes before they are loaded, or is made for another task."""

    guard: Part  #: The guard.
    steps: List[Part]  #: The transforms of its pipeline, without nested ones.
    pack: Optional[Part]  #: The Pack transform among them.
    wanted: str  #: The guard for the labels that ``pack`` packs; empty: the guard only has to move.


def find_misplaced_guards(config: ReadConfig) -> Iterator[MisplacedGuard]:
    """Yield the guards that see no labels, because of their position or their kind."""
    for pipeline in find_pipelines(config):
        steps = [step for step in pipeline if step.path.count('[') == pipeline[0].path.count('[')]
        pack = next((step for step in steps if step.name.startswith('Pack')), None)
        for guard in find_guards(steps):
            wanted = _find_only_guard(pack, steps)
            if wanted not in ('', guard.name):
                yield MisplacedGuard(guard, steps, pack, wanted)
            elif _is_before_labels(steps, guard):
                yield MisplacedGuard(guard, steps, pack, '')


def _find_only_guard(pack: Optional[Part], steps: List[Part]) -> str:
    """Return the only guard that applies to a pipeline's labels; empty if unknown."""
    name = '' if pack is None else pack.name
    if name == 'PackDetInputs' and any(step.get('with_seg') for step in steps):
        return ''
    return _GUARD_BY_PACK.get(name, '')


def _is_before_labels(steps: List[Part], guard: Part) -> bool:
    loads = ['Annotation' in step.name for step in steps]
    at = steps.index(guard)
    return any(loads[at:]) and not any(loads[:at])


class ReplacedHooks(NamedTuple):
    """Hooks of the base config that ``custom_hooks`` leaves out, and those that it has."""

    dropped: List[Dict[str, Any]]
    kept: List[Dict[str, Any]]


def find_replaced_hooks(config: ReadConfig) -> Iterator[ReplacedHooks]:
    """Yield the hooks that a ``custom_hooks`` with one of mmguard's hooks silently replaces, if there are any."""
    kept = _read_hooks(config)
    names = [get_type_name(hook['type']) for hook in kept]
    if set(names) & set(HOOKS):
        of_bases = [hook for base in find_bases(config.file) for hook in _read_base_hooks(base)]
        dropped = [hook for hook in of_bases if get_type_name(hook['type']) not in names]
        if dropped:
            yield ReplacedHooks(dropped, kept)


def _read_hooks(config: ReadConfig) -> List[Dict[str, Any]]:
    return [hook for hook in config.data.get('custom_hooks') or [] if isinstance(hook, dict) and 'type' in hook]


def _read_base_hooks(file: str) -> List[Dict[str, Any]]:
    try:
        return _read_hooks(ReadConfig(load_config(file, import_custom_modules=False).to_dict()))
    except Exception:  # it cannot be read on its own
        return []


#: Code -> the facts that its rule reports.
FACTS: Dict[str, Callable[[ReadConfig], Iterable[Any]]] = {
    'MG225': find_mismatched_guards,
    'MG251': find_misplaced_guards,
    'MG201': find_mismatched_counts,
    'MG208': find_disagreeing_labels,
    'MG230': find_unguarded_evaluation,
    'MG253': find_replaced_hooks,
}


def find_start_faults(config: ReadConfig) -> List[str]:
    """Return the codes that have something to report."""
    return [code for code, find in FACTS.items() if any(True for _ in find(config))]
