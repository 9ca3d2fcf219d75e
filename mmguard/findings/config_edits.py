"""Edits that several rules offer. They change all affected settings of a config; without a config, scan options.

Most functions take the facts and return an :class:`~mmguard.findings.edits.Edit`, which is tried before it is offered.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple

from mmguard.config.agreement import (
    IgnoredLabel,
    count_classes,
    find_class_counts,
    find_ignored_labels,
    find_mismatched_guards,
    find_unguarded_evaluation,
)
from mmguard.config.changes import Changes, change_config
from mmguard.config.guards import add_reporting, guard_loss
from mmguard.config.losses import count_expected_weights, fit_weights
from mmguard.config.parts import (
    GUARD_KINDS,
    Part,
    find_datasets,
    find_guarding_hook,
    find_losses,
    find_pipelines,
    from_config,
    get_class_names,
    get_metainfo,
)
from mmguard.config.read import ReadConfig
from mmguard.findings.edits import Code, Edit, as_code, format_config_lines
from mmguard.findings.rule import Facts
from mmguard.findings.views import VOID, as_map
from mmguard.language import Message
from mmguard.text import join_with_and


def propose(title: str, *changes: Tuple[str, Any], question: str = '', **more: Any) -> Edit:
    """Return an edit with the given config changes. Without a question, the edit is safe."""
    return Edit(title, question, changes, **more)


def set_num_classes(facts: Facts, number: int, question: str = '') -> Edit:
    """Return an edit that sets ``num_classes`` of every head and guard, and adapts the settings that depend on it."""
    places: Changes = ()
    if facts.config is not None:
        places = tuple((count.path, number) for count in find_class_counts(facts.config) if count.kind == 'all')
    edit = Edit('Set num_classes in every head and guard.', question, places)
    found = add_dependent_settings(facts.config, edit)
    return replace(state_num_classes(found, number), lines=() if places else (f'num_classes={number}',))


def state_num_classes(edit: Edit, number: int) -> Edit:
    """Return ``edit`` with ``num_classes`` as a scan option and as a line of code, for a model without a config."""
    return replace(edit, options={'num_classes': number}, lines=(f'num_classes={number}',))


def set_heads(config: ReadConfig, numbers: Mapping[str, int], question: str = '') -> Edit:
    """Return an edit that sets the numbers of classes of some heads, and adapts the settings that depend on them.

    Args:
        numbers (dict[str, int]): Config path, such as ``model.panoptic_head.num_things_classes`` -> number.
    """
    edit = Edit('Set the number of classes of these heads.', question, tuple(numbers.items()))
    return add_dependent_settings(config, edit)


def count_in_heads(config: ReadConfig, number: int) -> Changes:
    """Return the changes that set ``num_classes`` of all heads to ``number``, and adapt settings that depend on it."""
    heads = {count.path: number for count in find_class_counts(config) if count.kind == 'all' and count.value != number}
    return set_heads(config, heads).config if heads else ()


def add_dependent_settings(config: Optional[ReadConfig], edit: Edit) -> Edit:
    """Add changes of settings that depend on edited heads: class weights, and num_classes of losses and guards."""
    if config is None:
        return edit
    after = change_config(config, edit.config)
    more: List[Tuple[str, Any]] = []
    asks = False
    touched = {path.rpartition('.')[0] for path, _ in edit.config}
    for loss in find_losses(after):
        if loss.owner is None or loss.owner.path not in touched:
            continue
        weights, (expected, extra) = loss.config.get('class_weight'), count_expected_weights(loss)
        if isinstance(weights, (list, tuple)) and expected not in (None, len(weights)):
            new, follows = fit_weights(weights, expected or 0, extra)
            more.append((loss.place('class_weight'), new))
            asks = asks or not follows
        own, of_head = loss.config.get('num_classes'), count_classes(loss.owner)
        if isinstance(own, int) and of_head is not None and own != of_head:
            more.append((loss.place('num_classes'), of_head))
    more += [(guard.place('num_classes'), number) for guard, number, _ in find_mismatched_guards(after)]
    return replace(
        edit,
        question=edit.question or ('Are these the class weights that you want?' if asks else ''),
        if_not=edit.if_not or ('Write the weight of each class in class_weight.' if asks and not edit.question else ''),
        config=(*edit.config, *more),
        lines=(*edit.lines, *format_config_lines(tuple(more))) if edit.lines else (),
        notes=(*edit.notes, *['Write the weights that you want in class_weight.'] * (asks and bool(edit.question))),
    )


def set_ignore_index(facts: Facts, value: int, question: str = '') -> Edit:
    """Return an edit that sets the ignored label to ``value``: in heads, losses, metrics, and fill values of maps."""
    places: Changes = ()
    if facts.config is not None:
        places = tuple(
            change
            for place in find_ignored_labels(facts.config)
            if place.value != value
            for change in _write_value(place, value)
        )
    title = 'Set the same ignore_index in the head, the losses and the metric.'
    lines = () if places else (f'ignore_index={value}',)
    return Edit(title, question, places, {'ignore_index': value}, lines=lines)


def map_labels(
    facts: Facts,
    table: Mapping[int, int],
    question: str = '',
    splits: Sequence[str] = (),
    unlabelled: Sequence[int] = (),
) -> Edit:
    """Return an edit that maps loaded values with a ``label_map``, in a guard right after label maps are loaded.

    Args:
        table (dict[int, int]): Value as loaded -> label.
        splits (list[str]): Splits of the config to change; empty: all.
        unlabelled (list[int]): Current labels that are not classes if the question is answered "yes".
    """
    labels = facts.labels
    known: Dict[int, int] = dict(facts.options.get('label_map', ()))
    pixels = None if facts.config is None else from_config(facts.config).pixels
    classes = labels.num_classes if labels is not None else 0 if pixels is None else pixels.num_classes
    guard: Dict[str, Any] = {'type': 'GuardSegLabels', 'num_classes': classes, 'label_map': dict(table)}
    if labels is not None and labels.ignore_index is not None:
        guard['ignore_index'] = labels.ignore_index
    moved = tuple(sorted(_join_maps(known, table).items()))
    shown = f'num_classes={classes}, ' if classes < 256 else ''
    shown += f'ignore_index={guard["ignore_index"]}, ' if guard.get('ignore_index') not in (None, 255) else ''
    line = f"dict(type='GuardSegLabels', {shown}label_map={as_map(table, len(table))})"
    # The framework is unknown.
    title: str = 'Map these values where the labels are loaded (with OpenMMLab right after LoadAnnotations).'
    places: Changes = ()
    if facts.config is not None:
        hook, sets = find_guarding_hook(facts.config), find_datasets(facts.config)
        if hook is not None and (not splits or {dataset.split for dataset in sets} <= set(splits)):
            title, line = Message('Map these values in the guards of {hook}.', hook=hook.name), ''
            places = ((hook.place('label_map'), _join_maps(hook.config.get('label_map') or {}, table)),)
        else:
            where = name_splits(splits)
            title = Message('Map these values right after LoadAnnotations, in the pipelines of {splits}.', splits=where)
            sets += find_datasets(facts.config, wrappers=True)
            guarded = (insert_guard(one, guard) for one in sets if not splits or one.split in splits)
            places = (*add_reporting(facts.config), *(change for changes in guarded for change in changes))
    elif known:
        title, line = 'Map these values to the labels.', f'label_map={as_map(dict(moved))}'
    return Edit(title, question, places, {'label_map': moved}, lines=(line,) * bool(line), unlabelled=tuple(unlabelled))


def name_splits(splits: Sequence[str]) -> str:
    """Return the names of splits for a sentence.

    Example:
        >>> name_splits(['train', 'val']), name_splits([])
        ('train and val', 'all splits')
    """
    return join_with_and(splits) or Message('all splits')


def _join_maps(base: Mapping[int, int], second: Mapping[int, int]) -> Dict[int, int]:
    """Return the label map that applies ``base`` and then ``second``."""
    return {**second, **{value: second.get(label, label) for value, label in base.items()}}


def reduce_zero_label(
    facts: Facts,
    switch: bool,
    question: str = '',
    splits: Sequence[str] = (),
    unlabelled: Sequence[int] = (),
) -> Edit:
    """Return an edit that sets ``reduce_zero_label`` in mmseg's data sets and loaders, for ``splits`` or all splits."""
    places: List[Tuple[str, Any]] = []
    for dataset in find_datasets(facts.config) if facts.config is not None else ():
        if not splits or dataset.split in splits:
            places.append((dataset.place('reduce_zero_label'), switch))
    loaders = [
        (t.place('reduce_zero_label'), switch)
        for pipeline in (find_pipelines(facts.config) if facts.config is not None else ())
        for t in pipeline
        if t.name == 'LoadAnnotations' and t.says('reduce_zero_label') and (not splits or t.split in splits)
    ]
    places += loaders  # by default a loader uses the value of its data set
    return Edit(
        Message(
            'Set reduce_zero_label in the data sets of {splits}.'
            if switch
            else 'Unset reduce_zero_label in the data sets of {splits}.',
            splits=name_splits(splits),
        ),
        question,
        tuple(places),
        {'reduce_zero_label': switch},
        lines=() if places else (f'reduce_zero_label={switch}',),
        unlabelled=tuple(unlabelled),
    )


def guard_pipelines(config: ReadConfig, unguarded: Sequence[Sequence[Part]], name: str, with_map: bool = True) -> Edit:
    """Return an edit that appends a guard to pipelines: a copy of the training's guard, or else a new guard."""
    training = [step for pipeline in find_pipelines(config) for step in pipeline if step.split == 'train']
    known = next((dict(step.config) for step in training if step.name == name), None)
    space = from_config(config).get(GUARD_KINDS[name])
    guard: Dict[str, Any] = known or {'type': name, 'num_classes': space.num_classes if space is not None else 0}
    if known is None and space is not None and space.ignore_index not in (None, VOID):
        guard['ignore_index'] = space.ignore_index
    if not with_map:
        guard.pop('label_map', None)
    places = {step.owner.path: step.owner for pipeline in unguarded for step in pipeline if step.owner is not None}
    changes = tuple((part.place('pipeline'), [*part.config['pipeline'], dict(guard)]) for part in places.values())
    title = 'Add a guard at the end of the pipeline, after the Pack transform.'
    setup = add_reporting(config)
    written = ((place, Code(f'[*_base_.{place}, {as_code(guard)}]')) for place, _ in changes)
    return Edit(title, '', (*setup, *changes), lines=tuple(format_config_lines((*setup, *written))))


def guard_evaluation(facts: Facts, edit: Edit) -> Edit:
    """Add guards for the evaluation pipelines to an edit of the config that guards only the training.

    The label map of the training's guard is copied only if no other split was read. Otherwise the edit already maps
    the labels of the splits that need the map.
    """
    if facts.config is None:
        return edit
    try:
        after = change_config(facts.config, edit.config)
    except (LookupError, TypeError):  # the edit cannot be applied, so it will not be offered
        return edit
    missing = list(find_unguarded_evaluation(after))
    if not missing or any(find_unguarded_evaluation(facts.config)):  # another finding reports it
        return edit
    for found in missing:
        guard = guard_pipelines(after, [found.pipeline], found.guard, with_map=not facts.others)
        edit = combine_pair(edit, guard, edit.title)
    return edit


def combine_pair(first: Edit, second: Edit, title: str) -> Edit:
    """Combine two edits that are correct only together."""
    return replace(
        first,
        title=title,
        config=(*first.config, *second.config),
        options={**first.options, **second.options},
        commands=(*first.commands, *second.commands),
        lines=(
            *(first.lines or format_config_lines(first.config)),
            *(second.lines or format_config_lines(second.config)),
        ),
        notes=(*first.notes, *second.notes),
        unlabelled=(*first.unlabelled, *second.unlabelled),
    )


def guard_losses(config: ReadConfig, paths: Iterable[str], title: str = 'Guard the loss.', question: str = '') -> Edit:
    """Return an edit that replaces the losses at ``paths`` by guarded losses."""
    wanted, setup = set(paths), add_reporting(config)
    swaps = [(loss, guard_loss(loss.config, loss.scope)) for loss in find_losses(config) if loss.path in wanted]
    changes: List[Tuple[str, Any]] = [*setup]
    for loss, new in swaps:
        keeps_arguments = list(new) == list(loss.config)
        changes.append((loss.place('type'), new['type']) if keeps_arguments else (loss.path, new))
    return propose(title, *changes, question=question)


def _write_value(place: IgnoredLabel, value: int) -> Iterator[Tuple[str, Any]]:
    """Yield the change that sets an ignored label; write its whole dict if the config does not contain this dict."""
    top, dot, inner = place.path[len(place.part.path) + 1 :].partition('.')
    default = place.part.get(top)
    if dot and '.' not in inner and not place.part.says(top) and isinstance(default, dict):
        yield place.part.place(top), {**default, inner: value}
    else:
        yield place.path, value


def insert_guard(dataset: Part, guard: Mapping[str, Any]) -> Iterator[Tuple[str, Any]]:
    """Yield the change that inserts a guard with ``label_map`` after a data set's annotation loader, if it has one."""
    steps = dataset.config.get('pipeline')
    steps = steps if isinstance(steps, (list, tuple)) else ()
    names = [str(step.get('type', '')).rpartition('.')[2] if isinstance(step, dict) else '' for step in steps]
    at = next((n for n, name in enumerate(names) if name.startswith('Load') and 'Annotation' in name), None)
    if at is None:
        return
    after = [_pass_counts(dataset, step) for step in steps[at + 1 :]]
    if after and names[at + 1] == 'GuardSegLabels':
        old = after.pop(0)
        merged = {**old, 'label_map': _join_maps(old.get('label_map') or {}, guard['label_map'])}
        yield dataset.place('pipeline'), [*steps[: at + 1], merged, *after]
    else:
        yield dataset.place('pipeline'), [*steps[: at + 1], dict(guard), *after]


def _pass_counts(dataset: Part, step: Any) -> Any:
    """Return a pipeline step unchanged, or a Pack transform with ``label_guard`` added to its ``meta_keys``."""
    part = Part('', step, dataset.scope, 'TRANSFORMS') if isinstance(step, dict) else None
    keys = part.get('meta_keys') if part is not None and part.name.startswith('Pack') else None
    if not isinstance(keys, (list, tuple)) or 'label_guard' in keys:
        return step
    return {**step, 'meta_keys': (*keys, 'label_guard')}


#: mmseg's class for custom data, as named in new-style configs.
BASE = 'mmseg.datasets.basesegdataset.BaseSegDataset'


def set_classes(facts: Facts, names: Sequence[str], question: str = '') -> Edit:
    """Return an edit that sets ``metainfo.classes`` of every data set, and removes the palette."""
    sets = find_datasets(facts.config) if facts.config is not None else ()
    places = tuple(change for dataset in sets for change in name_classes(dataset, names))
    line = f'classes=({", ".join(repr(str(name)) for name in names)},)'
    line = line if facts.config is not None and facts.config.is_old else f'metainfo=dict({line})'
    return Edit('List the classes in the data sets of all splits.', question, places, lines=(line,))


def set_classes_and_heads(facts: Facts, names: Sequence[str], question: str = '') -> Edit:
    """Return an edit that sets the class list of every data set, and its length as ``num_classes`` of the heads."""
    found = set_classes(facts, names, question)
    heads = [] if facts.config is None else [count for count in find_class_counts(facts.config) if count.kind == 'all']
    if all(count.value == len(names) for count in heads):
        return found
    follow = set_num_classes(facts, len(names), question)
    return replace(
        combine_pair(found, follow, 'List the classes in the data sets, and set num_classes in heads.'), options={}
    )


def name_classes(dataset: Part, names: Sequence[str]) -> Iterator[Tuple[str, Any]]:
    """Yield changes that set a data set's class list, and its type to BaseSegDataset if the type refuses new names."""
    if get_class_names(dataset) == list(names):
        return
    if dataset.is_old:
        yield dataset.place('classes'), tuple(names)
        return
    metainfo = dataset.config.get('metainfo')
    kept = {key: value for key, value in metainfo.items() if key != 'palette'} if isinstance(metainfo, dict) else {}
    yield dataset.place('metainfo'), {**kept, 'classes': tuple(names)}
    own = get_metainfo(dataset).get('classes')
    if own is not None and hasattr(dataset.cls, 'get_label_map') and not set(names) <= set(own):
        yield from use_base_dataset(dataset)


def use_base_dataset(dataset: Part) -> Iterator[Tuple[str, Any]]:
    """Yield changes that replace a data set's type by BaseSegDataset, but keep suffixes and ``reduce_zero_label``."""
    kind = str(dataset.config['type'])
    yield (
        dataset.place('type'),
        f'{kind.rpartition(".")[0]}.BaseSegDataset'.lstrip('.') if kind.count('.') < 2 else BASE,
    )
    for key in ('img_suffix', 'seg_map_suffix', 'reduce_zero_label'):
        if not dataset.says(key) and dataset.get(key) is not None:
            yield dataset.place(key), dataset.get(key)


def drop_first_class(config: ReadConfig, question: str) -> Optional[Edit]:
    """Return an edit that ignores label 0 and removes the first class, or ``None`` if the list cannot be shortened."""
    sets = find_datasets(config)
    names = next((get_class_names(dataset) for dataset in sets if dataset.split == 'train'), None)
    if not names or len(names) < 2 or any(get_metainfo(dataset).get('classes') for dataset in sets):
        return None
    facts = Facts(config=config)
    heads = {
        count.path: count.value - 1 for count in find_class_counts(config) if count.kind == 'all' and count.value > 1
    }
    parts = [reduce_zero_label(facts, True), set_classes(facts, names[1:]), set_heads(config, heads)]
    parts.append(set_ignore_index(facts, VOID))
    changes = tuple(change for part in parts for change in part.config)
    return Edit(Message('Remove {name!r} from the classes, and ignore the label 0.', name=names[0]), question, changes)
