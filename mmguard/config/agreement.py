"""Search for heads, data sets, ignored labels and guards of a config that disagree with each other."""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from mmguard.config.classes import get_type_name
from mmguard.config.parts import (
    GUARD_KINDS,
    HOOK,
    Part,
    find_datasets,
    find_guarding_hook,
    find_heads,
    find_losses,
    find_metrics,
    find_pipelines,
    find_preprocessors,
    find_transforms,
    from_config,
    get_class_names,
    get_metainfo,
    says_classes,
    unwrap_stock_loss,
)
from mmguard.config.read import ReadConfig, load_config
from mmguard.config.recognition import find_bases
from mmguard.labels.loss_selection import is_guarded_type
from mmguard.labels.spaces import OPEN_VOCABULARY, STUFF, THINGS, Space, takes_labels

#: Heads whose ``num_classes`` counts the classes of stuff maps. These classes are not in the data set's class list.
STUFF_MAPS = ('FusedSemanticHead', 'SCNetSemanticHead')


class Count(NamedTuple):
    """A class count that a head sets in a config; ``kind`` is ``'all'``, ``'things'`` or ``'stuff'`` classes."""

    path: str
    value: int
    kind: str
    head: Part


def find_class_counts(config: ReadConfig) -> List[Count]:
    """Return all ``num_classes``, ``num_things_classes`` and ``num_stuff_classes`` that must match the data set."""
    found = []
    for head in find_heads(config):
        if not takes_labels(head) or head.is_a(*STUFF_MAPS) or head.config.get('class_agnostic') is True:
            continue
        for key, kind in (('num_classes', 'all'), (THINGS, 'things'), (STUFF, 'stuff')):
            value = head.config.get(key)
            if isinstance(value, int) and not isinstance(value, bool):
                found.append(Count(head.place(key), value, kind, head))
    return found


def count_classes(head: Optional[Part]) -> Optional[int]:
    """Return the number of classes that a head sets, without background and "no object", or ``None`` if unset."""
    if head is None:
        return None
    things, stuff = head.config.get(THINGS), head.config.get(STUFF)
    if isinstance(things, int):
        return things + (stuff if isinstance(stuff, int) else 0)
    value = head.config.get('num_classes')
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def count_data_classes(dataset: Part) -> Dict[str, int]:
    """Return {``'all'``: number of classes}, with ``'things'`` and ``'stuff'`` if known, or {} without a class list."""
    classes = get_class_names(dataset)
    if not classes:  # unknown, or taken from the file
        return {}
    found = {'all': len(classes)}
    for kind, key in (('things', 'thing_classes'), ('stuff', 'stuff_classes')):
        names = read_part_of_classes(dataset, key)
        # Heads treat labels below the number of things as things.
        if (
            isinstance(names, (list, tuple))
            and names
            and (kind == 'stuff' or not has_stuff_among_things(classes, names))
        ):
            found[kind] = len(names)
    return found


def read_part_of_classes(dataset: Part, key: str) -> Any:
    """Return ``thing_classes`` or ``stuff_classes`` from the ``metainfo`` of a data set, or ``None`` if missing."""
    metainfo = dataset.config.get('metainfo')
    names = metainfo.get(key) if isinstance(metainfo, dict) else None
    return get_metainfo(dataset).get(key) if names is None and not says_classes(dataset) else names


def has_stuff_among_things(classes: Sequence[str], things: Any) -> bool:
    """Return True if a class list does not begin with all its thing classes.

    Example:
        >>> has_stuff_among_things(['car', 'sky', 'cat'], ['car', 'cat'])
        True
    """
    listed = isinstance(things, (list, tuple)) and 0 < len(things) < len(classes) and set(things) <= set(classes)
    return listed and set(classes[: len(things)]) != set(things)


def lists_untrained_classes(dataset: Part) -> bool:
    """Return True if a video data set for validation or testing lists its own classes, which may be untrained."""
    return dataset.is_a('BaseVideoDataset') and dataset.split != 'train' and not says_classes(dataset)


def has_open_vocabulary(config: ReadConfig) -> bool:
    """Return True if the model takes class names as text, so that it can be tested on any data set."""
    return any(head.is_a(*OPEN_VOCABULARY) for head in find_heads(config))


def find_training_datasets(config: ReadConfig) -> List[Part]:
    """Return the training data sets, or the validation and test data sets if a config has no training data set."""
    found = [dataset for dataset in find_datasets(config) if not lists_untrained_classes(dataset)]
    return [dataset for dataset in found if dataset.split == 'train'] or found


def find_joined_lists(config: ReadConfig) -> List[Tuple[Part, List[str]]]:
    """Return (data set, class names) of each training data set if the class lists differ, or [] if they are equal."""
    train = [dataset for dataset in find_datasets(config) if dataset.split == 'train']
    found = [(dataset, names) for dataset in train for names in [get_class_names(dataset)] if names]
    return found if any(names != found[0][1] for _, names in found) else []


def find_mismatched_counts(config: ReadConfig) -> Iterator[Tuple[Count, int, Part]]:
    """Yield (class count of a head, expected number, data set) for each head that disagrees with a data set."""
    data = [(dataset, count_data_classes(dataset)) for dataset in find_training_datasets(config)]
    for count in find_class_counts(config):
        for dataset, numbers in data:
            expected = numbers.get(count.kind, numbers.get('all') if count.kind == 'things' else None)
            if count.kind == 'all' and config.framework == 'mmdet':
                expected = numbers.get('things', expected)
            if expected is None or count.value == expected:
                continue
            if count.kind == 'things' and 'things' not in numbers and _adds_up(count.head.config, expected):
                continue
            if config.framework == 'mmdet' and count.value == expected + 1 and count.kind == 'all':
                continue  # MG202 reports it, with the reason
            if count.value == 1 and expected == 2 and config.framework == 'mmseg':
                continue  # right if one sigmoid channel separates two classes; MG215 reports a softmax
            yield count, expected, dataset
            break


def _adds_up(head: dict, expected: int) -> bool:
    return head.get('num_things_classes', 0) + (head.get('num_stuff_classes') or 0) == expected


#: Class -> the argument that sets its ignored label.
LOSS_ARGUMENTS = {
    'OhemCrossEntropy': 'ignore_label',
    'TverskyLoss': 'ignore_index',
    'HuasdorffDisstanceLoss': 'ignore_index',
}
METRIC_ARGUMENTS = {'IoUMetric': 'ignore_index', 'CityscapesMetric': 'ignore_index'}
FILL_ARGUMENTS = {'RandomRotate': 'seg_pad_val', 'RandomMosaic': 'seg_pad_val', 'RandomCutOut': 'seg_fill_in'}
READING_ARGUMENTS = {'RandomCrop': 'ignore_index', 'GuardSegLabels': 'ignore_index'}


class IgnoredLabel(NamedTuple):
    """An argument that sets the ignored label of a head, loss, metric or transform."""

    path: str  #: Path of the argument, also if the config does not set it.
    value: int  #: The ignored label.
    role: str  #: ``'head'``, ``'loss'``, ``'metric'``, ``'fill'`` (pads with the label) or ``'reads'`` (excludes it).
    written: bool  #: True if the config sets the argument, false if the label is the default of the class.
    part: Part  #: The part that has the argument.


def find_ignored_labels(config: ReadConfig) -> List[IgnoredLabel]:
    """Return the arguments in an mmseg config that set an ignored label, heads first, or [] for other frameworks."""
    if config.framework != 'mmseg':
        return []
    found: List[IgnoredLabel] = []
    for head in find_heads(config):
        if head.key in ('decode_head', 'auxiliary_head', 'kernel_generate_head'):
            _add(found, head, 'ignore_index', 'head')
    for loss in map(unwrap_stock_loss, find_losses(config)):
        if loss.name in LOSS_ARGUMENTS:
            _add(found, loss, LOSS_ARGUMENTS[loss.name], 'loss')
    for preprocessor in find_preprocessors(config):
        _add(found, preprocessor, 'seg_pad_val', 'fill')
    hook = find_guarding_hook(config)
    if hook is not None and hook.says('ignore_index'):
        _add(found, hook, 'ignore_index', 'reads')
    for transform in find_transforms(config):
        if not transform.written:
            continue  # a hook inserts this transform, with the label of the hook or of the head
        if transform.name in FILL_ARGUMENTS:
            _add(found, transform, FILL_ARGUMENTS[transform.name], 'fill')
        elif transform.name in READING_ARGUMENTS:
            _add(found, transform, READING_ARGUMENTS[transform.name], 'reads')
        elif transform.name == 'Pad' and isinstance(transform.config.get('pad_val'), dict):
            _note(found, transform, 'pad_val.seg', transform.config['pad_val'].get('seg', 255), 'fill', True)
    for metric in find_metrics(config):
        if metric.name in METRIC_ARGUMENTS:
            _add(found, metric, METRIC_ARGUMENTS[metric.name], 'metric')
    for dataset in find_datasets(config):
        if dataset.is_old:  # mmseg 0.x evaluates with the label that the data set ignores
            _add(found, dataset, 'ignore_index', 'metric')
    return found


def find_leading(config: ReadConfig, places: List[IgnoredLabel]) -> Optional[IgnoredLabel]:
    """Return the ignored label that all others must match, or ``None`` if the decode head has none.

    This is the label of the decode head. But if a guard and all losses, fill values and metrics share another label, it
    is the label of the guard, which sets unlabeled pixels to its ``ignore_index`` before a head sees them.
    """
    first = next((head for head in find_heads(config) if head.key == 'decode_head'), None)
    leading = next((place for place in places if place.part == first), None)
    guard = next((place for place in places if place.part.name in ('GuardSegLabels', HOOK)), None)
    others = [place for place in places if place.role != 'head']
    if leading is None or guard is None or {place.role for place in others} <= {'reads'}:
        return leading
    return guard if {place.value for place in others} == {guard.value} else leading


def find_disagreeing_labels(config: ReadConfig) -> Iterator[Tuple[IgnoredLabel, IgnoredLabel]]:
    """Yield (argument, leading argument) for each ignored label that differs from that of :func:`find_leading`."""
    places = find_ignored_labels(config)
    first = find_leading(config, places)
    if first is not None:  # None for ignore_index=None (masked binary cross entropy) and for detectors
        yield from ((place, first) for place in places if place.value != first.value)


def _add(places: List[IgnoredLabel], part: Part, key: str, role: str) -> None:
    _note(places, part, key, part.get(key), role, part.says(key))


def _note(places: List[IgnoredLabel], part: Part, key: str, value: Any, role: str, is_written: bool) -> None:
    if isinstance(value, int) and not isinstance(value, bool):
        places.append(IgnoredLabel(part.place(key), value, role, is_written, part))


GUARD_TRANSFORMS = ('GuardSegLabels', 'GuardInstanceLabels')
HOOKS = (HOOK, 'RankGuardHook', 'FlightRecorderHook')
#: Pack transform -> the guard of the labels that it packs.
_GUARD_BY_PACK = {'PackSegInputs': 'GuardSegLabels', 'PackDetInputs': 'GuardInstanceLabels'}
#: Metric that uses the labels of samples -> the guard for these labels. Other metrics read annotation files.
GUARD_BY_METRIC = {'IoUMetric': 'GuardSegLabels', 'SemSegMetric': 'GuardSegLabels', 'VOCMetric': 'GuardInstanceLabels'}


def find_guards(pipeline: List[Part]) -> List[Part]:
    """Return mmguard's transforms in a pipeline."""
    return [transform for transform in pipeline if transform.name in GUARD_TRANSFORMS]


class UnguardedMetric(NamedTuple):
    """A metric, the pipeline that loads its labels, and the name of the guard that is missing in the pipeline."""

    metric: Part
    pipeline: List[Part]
    guard: str

    @property
    def dataset(self) -> Part:
        owner = self.pipeline[0].owner
        assert owner is not None  # pipelines belong to data sets
        return owner


def find_unguarded_evaluation(config: ReadConfig) -> Iterator[UnguardedMetric]:
    """Yield the metrics whose labels are not guarded although the config guards the training."""
    if not config.shows_guards and find_guarding_hook(config) is not None:
        return  # the hook guards evaluation pipelines, too
    found = find_pipelines(config)
    in_training = any(find_guards(pipeline) for pipeline in found if pipeline[0].split == 'train')
    if not in_training and not any(is_guarded_type(loss.name) for loss in find_losses(config)):
        return
    for metric in find_metrics(config):
        guard = next((GUARD_BY_METRIC[name] for name in GUARD_BY_METRIC if metric.is_a(name)), None)
        if guard is None or metric.config.get('format_only'):
            continue
        judged = [pipeline for pipeline in found if pipeline[0].split == metric.split]
        # A wrapper around the data sets may guard all of them.
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
    """Yield (guard, expected number, label spaces) for guards whose ``num_classes`` differs from that of every head."""
    spaces = from_config(config)
    for guard in find_transforms(config):
        classes = guard.config.get('num_classes')
        heads = [space for space in spaces.heads if space.kind == GUARD_KINDS.get(guard.name)]
        if heads and isinstance(classes, int) and classes not in {space.num_classes for space in heads}:
            space = spaces.get(heads[0].kind) or heads[0]
            yield guard, space.num_classes, [space, *heads]


class MisplacedGuard(NamedTuple):
    """A guard that sees no labels, because it runs before labels are loaded or guards another kind of labels."""

    guard: Part  #: The guard.
    steps: List[Part]  #: The transforms of its pipeline, without nested ones.
    pack: Optional[Part]  #: The Pack transform of the pipeline, or ``None`` without one.
    wanted: str  #: Name of the guard for the labels of this pipeline; empty if the guard is right but comes too early.


def find_misplaced_guards(config: ReadConfig) -> Iterator[MisplacedGuard]:
    """Yield the guards that see no labels: they run before labels are loaded, or guard another kind of labels."""
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
    """Return the name of the guard for the labels of a pipeline, or '' if both guards fit or the labels are unknown."""
    name = '' if pack is None else pack.name
    if name == 'PackDetInputs' and any(step.get('with_seg') for step in steps):
        return ''
    return _GUARD_BY_PACK.get(name, '')


def _is_before_labels(steps: List[Part], guard: Part) -> bool:
    loads = ['Annotation' in step.name for step in steps]
    at = steps.index(guard)
    return any(loads[at:]) and not any(loads[:at])


class ReplacedHooks(NamedTuple):
    """Hooks in ``custom_hooks`` (``kept``), and hooks of base configs that these replace (``dropped``)."""

    dropped: List[Dict[str, Any]]
    kept: List[Dict[str, Any]]


def find_replaced_hooks(config: ReadConfig) -> Iterator[ReplacedHooks]:
    """Yield the hooks of base configs that a ``custom_hooks`` with a hook of mmguard silently replaces."""
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
    except Exception:  # the base cannot be read separately
        return []


#: Code of a rule -> the function that finds the faults which the rule reports.
FACTS: Dict[str, Callable[[ReadConfig], Iterable[Any]]] = {
    'MG225': find_mismatched_guards,
    'MG251': find_misplaced_guards,
    'MG201': find_mismatched_counts,
    'MG208': find_disagreeing_labels,
    'MG230': find_unguarded_evaluation,
    'MG253': find_replaced_hooks,
}


def find_start_faults(config: ReadConfig) -> List[str]:
    """Return the code of each rule in :data:`FACTS` that finds a fault in a config."""
    return [code for code, find in FACTS.items() if any(True for _ in find(config))]
