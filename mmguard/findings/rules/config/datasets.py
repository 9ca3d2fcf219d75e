"""Rules about differing and ignored class lists of data sets, and about metrics that read another file."""

from __future__ import annotations

import posixpath
from dataclasses import replace
from itertools import zip_longest
from typing import Any, Dict, Iterable, Iterator, List, Sequence, Tuple

from mmguard.config.agreement import find_class_counts, find_joined_lists, has_open_vocabulary
from mmguard.config.changes import REMOVED, Changes, change_config
from mmguard.config.guards import add_reporting
from mmguard.config.parts import (
    Part,
    find_datasets,
    find_metrics,
    from_config,
    get_class_names,
    get_classes_path,
    get_metainfo,
    says_classes,
)
from mmguard.config.read import ReadConfig
from mmguard.findings.config_edits import combine_pair, count_in_heads, insert_guard, name_classes, propose
from mmguard.findings.edits import Edit
from mmguard.findings.file_edits import rewrite
from mmguard.findings.finding import Finding
from mmguard.findings.rule import ConfigRule, Example, Facts
from mmguard.findings.rules.config.class_lists import move_class_list
from mmguard.findings.views import VOID, get_annotations, join_items
from mmguard.language import Message
from mmguard.text import shorten

OWN_NUMBERS = 'Are the label maps of each data set numbered by its own class list?'
SAME_NAMES = 'Does each name mean the same class in all data sets?'
SAME_FILES = 'Does every annotation file list all of these categories, in this order?'
#: Keys of ``metainfo`` that data sets of different types do not share, so that ConcatDataset has to ignore them.
_OWN_KEYS = ('dataset_type', 'task_name', 'palette', 'label_map')


class JoinedSets(ConfigRule):
    code = 'MG590'
    follows = ('MG201', 'MG202')
    about_labels = True
    summary = 'The data sets of one training have different class lists.'
    title = (
        'These data sets are trained together, but label {label} is {here} here and {there} in {place}. Together they '
        'have {number} classes: {union}.'
    )
    why = (
        'ConcatDataset does not translate labels: each data set uses its own numbering. In mmengine, ConcatDataset '
        'raises an error ("The meta information of the 2-th dataset does not match") unless ignore_keys contains '
        'classes; in mmdet, it trains one label as several classes.'
    )
    example = Example(
        wrong="datasets=[dict(metainfo=dict(classes=('cat', 'dog'))), dict(metainfo=dict(classes=('dog', 'car')))]",
        right="classes=('cat', 'dog', 'car') in both; label maps of the second also need label_map={0: 1, 1: 2}",
    )
    limits = (
        'Classes are matched by name: "car" and "vehicle" count as two classes. An object whose class is not labeled '
        'in its own data set is trained as background.'
    )
    advice = (
        'Write the classes {union} as metainfo of every data set, and set num_classes={number} in the heads. '
        'Translate label maps with `GuardSegLabels(num_classes={number}, label_map=...)` after LoadAnnotations, and '
        'COCO files with `mmguard fix FILE --classes {listed} --out DIR`.'
    )

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        lists = [] if has_open_vocabulary(config) else find_joined_lists(config)
        union = list(dict.fromkeys(name for _, names in lists for name in names))
        edits = [*_complete(config), *_unite(config, union)] if lists else []
        for dataset, names in lists[1:]:
            first, expected = lists[0]
            pairs = list(zip_longest(names, expected, fillvalue='no class'))
            label = next((n for n, (here, there) in enumerate(pairs) if here != there), None)
            if label is not None:
                words: Dict[str, Any] = dict(place=get_classes_path(first), label=label, number=len(union))
                words.update(zip(('here', 'there'), map(shorten, pairs[label])))
                words.update(union=join_items(map(repr, union), len(union)), listed=','.join(union))
                yield self.report_at(get_classes_path(dataset), names, words, edits=edits)

    def edits(self, finding: Finding, facts: Facts) -> Iterable[Edit]:
        for edit in finding.candidates:
            yield edit
            names = [value['classes'] for path, value in edit.config if path.endswith('.metainfo')][:1]
            if names and facts.labels is not None and get_annotations(facts.labels).names_from == 'categories':
                for copies in rewrite(self, facts, '', classes=names[0]):
                    both = combine_pair(edit, copies, 'Write one class list in all data sets and all annotation files.')
                    yield replace(both, files=copies.files, question=SAME_NAMES, if_not='')


def _complete(config: ReadConfig) -> Iterator[Edit]:
    """Yield an edit that copies the class list to the data sets without one, if the config sets only one list."""
    sets, counts = find_datasets(config), find_class_counts(config)
    said = {tuple(get_class_names(dataset) or ()) for dataset in sets if says_classes(dataset)}
    left = [dataset for dataset in sets if not says_classes(dataset)]
    if len(said) == 1 and left and all(count.kind == 'all' for count in counts):
        (names,) = said
        yield propose(
            Message('Write this class list in {places}, too.', places=join_items(one.path for one in left)),
            *(change for dataset in left for change in name_classes(dataset, names)),
            *count_in_heads(config, len(names)),
            question=Message('Are the files of {name} labeled with these classes?', name=left[0].path),
        )


def _unite(config: ReadConfig, union: Sequence[str]) -> List[Edit]:
    """Return an edit that numbers the labels of all data sets by the list ``union``, or [] if that is not possible."""
    sets, counts, has_maps = find_datasets(config), find_class_counts(config), config.framework == 'mmseg'
    others = [name for one in sets for name in get_class_names(one) or () if name not in union]
    if others or (has_maps and config.is_old) or any(count.kind != 'all' for count in counts):
        return []
    changes: List[Tuple[str, Any]] = []
    guard: Dict[str, Any] = dict(type='GuardSegLabels', num_classes=len(union))
    space = from_config(config).pixels
    void = VOID if space is None or space.ignore_index is None else space.ignore_index
    guard.update(dict(ignore_index=void) if void != VOID else {})
    for dataset in sets:
        table = _find_table(dataset, union, void) if has_maps else {}
        inserted = list(insert_guard(dataset, {**guard, 'label_map': table})) if table else []
        if table and not inserted and dataset.split == 'train':
            return []  # its wrapper loads the label maps
        changes += [*name_classes(dataset, union), *inserted]
    changes += add_reporting(config) if any(path.endswith('.pipeline') for path, _ in changes) else ()
    changes += _ignore_keys(config, [dataset for dataset in sets if dataset.split == 'train'])
    by_name = all(dataset.is_a('XMLDataset') for dataset in sets)
    question = OWN_NUMBERS if has_maps else SAME_NAMES if by_name else SAME_FILES
    listed = join_items(map(repr, union), len(union))
    return [
        propose(
            Message('Number the labels of all data sets by one list: {union}.', union=listed),
            *changes,
            *count_in_heads(change_config(config, changes), len(union)),
            question=question,
            if_not='Run `mmguard scan CONFIG`, which offers converted files.' if question == SAME_FILES else '',
            notes=('Objects of a class that their own data set does not label are trained as background.',),
        )
    ]


def _find_table(dataset: Part, union: Sequence[str], void: int) -> Dict[int, int]:
    """Return {loaded value: label} for the classes whose number in a data set differs from that in ``union``."""
    own = list(map(str, get_metainfo(dataset).get('classes') or ()))
    if own and set(union) <= set(own):  # mmseg maps the classes of its own types by name
        return {}
    stored = enumerate(own or get_class_names(dataset) or ())
    table = {value: union.index(name) if name in union else void for value, name in stored}
    return {value: label for value, label in table.items() if value != label}


def _ignore_keys(config: ReadConfig, train: Sequence[Part]) -> Iterator[Tuple[str, Any]]:
    """Yield the changes that let a ConcatDataset ignore differences of ``metainfo`` in keys other than classes."""
    is_mixed = any(one.name != train[0].name or 'palette' in (one.config.get('metainfo') or ()) for one in train)
    shifts = {bool(dataset.get('reduce_zero_label')) for dataset in train}
    keys = [*_OWN_KEYS] * is_mixed + ['reduce_zero_label'] * (len(shifts) > 1)
    for wrapper in find_datasets(config, wrappers=True):
        known = wrapper.config.get('ignore_keys') or []
        if keys and wrapper.name == 'ConcatDataset' and wrapper.split == 'train' and not wrapper.is_old:
            yield wrapper.place('ignore_keys'), [*([known] if isinstance(known, str) else known), *keys]


ANNOTATION_METRICS = ('CocoMetric', 'LVISMetric', 'CocoPanopticMetric')


class MetricAnnotations(ConfigRule):
    code = 'MG229'
    summary = 'The metric reads its ground truth from a different file than the evaluated data set.'
    title = 'The metric and its data set read different files: {place} reads {expected}.'
    why = (
        'COCO metrics read the ground truth from their own ann_file. If this is still the file of the base config, '
        'images and category ids do not match: evaluation fails, or its scores are meaningless.'
    )
    example = Example(
        wrong="dataset: ann_file='my_val.json'; CocoMetric: ann_file='data/coco/annotations/instances_val2017.json'",
        right="CocoMetric: ann_file='my_val.json'",
    )
    limits = 'Paths are compared, not files: a copy under another name looks like a mistake.'
    advice = 'Write the ann_file of the data set in the metric, too.'

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        for metric in find_metrics(config):
            sets = [dataset for dataset in find_datasets(config) if dataset.split == metric.split]
            file = metric.config.get('ann_file')
            if len(sets) != 1 or metric.name not in ANNOTATION_METRICS or not isinstance(file, str):
                continue
            dataset = sets[0]
            if dataset.is_a('CocoPanopticDataset') != (metric.name == 'CocoPanopticMetric'):
                continue  # the boxes of a panoptic model are evaluated on another file, on purpose
            root, own = dataset.config.get('data_root') or '', dataset.config.get('ann_file')
            if not isinstance(root, str) or not isinstance(own, str) or not own:
                continue
            expected, place = posixpath.join(root, own), metric.place('ann_file')
            if posixpath.normpath(expected) != posixpath.normpath(file):
                edit = propose('Evaluate with the annotations of the data set.', (place, expected))
                yield self.report_at(place, file, dict(place=dataset.path, expected=expected), edits=[edit])


class WrapperMetainfo(ConfigRule):
    code = 'MG203'
    follows = ('MG102', 'MG107', 'MG108', 'MG140', 'MG154', 'MG201', 'MG202', 'MG204')
    about_labels = True
    summary = 'metainfo (or classes) is set in a data set wrapper instead of the wrapped data set.'
    title = '{kind} at {place} does not accept {key}: the wrapped data set does not get the class list.'
    why = (
        'RepeatDataset, ConcatDataset, ClassBalancedDataset and MultiImageMixDataset do not accept a class list: '
        'building fails, or the wrapped data set keeps its own classes and the labels do not fit the head.'
    )
    example = Example(
        wrong="dict(type='RepeatDataset', metainfo=dict(classes=('cat',)), dataset=dict(...))",
        right="dict(type='RepeatDataset', dataset=dict(..., metainfo=dict(classes=('cat',))))",
    )
    limits = 'Wrappers of your own are recognized only by an argument called dataset or datasets.'
    advice = (
        'Move metainfo into every wrapped data set. If a wrapped data set already has a class list, keep the correct '
        'list.'
    )

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        for wrapper in find_datasets(config, wrappers=True):
            for key in ('metainfo', 'classes'):
                value = wrapper.config.get(key)
                if value is not None:
                    words = dict(kind=wrapper.name, place=wrapper.path, key=key)
                    yield self.report_at(wrapper.place(key), value, words, edits=_move_inside(config, wrapper, key))


def _move_inside(config: ReadConfig, wrapper: Part, key: str) -> List[Edit]:
    """Return an edit that moves a class list into the wrapped data sets, and if needed one that also updates heads."""
    value: Any = wrapper.config[key]
    metainfo = value if isinstance(value, dict) else {'classes': (value,) if isinstance(value, str) else value}
    inner = [dataset for dataset in find_datasets(config) if dataset.path.startswith(wrapper.path)]
    other = any(
        says_classes(dataset) and get_class_names(dataset) != list(metainfo.get('classes', ())) for dataset in inner
    )
    changes: Changes = tuple(
        (dataset.place('metainfo'), {**(dataset.config.get('metainfo') or {}), **metainfo}) for dataset in inner
    )
    if wrapper.is_old:
        changes = tuple((dataset.place('classes'), tuple(metainfo['classes'])) for dataset in inner)
    title = 'Move the classes into the wrapped data sets.'
    asks = dict(question='Is the class list of the wrapper correct?', if_not='Remove the class list from the wrapper.')
    move = propose(title, (wrapper.place(key), REMOVED), *changes, **(asks if other else {}))
    return move_class_list(config, move, metainfo.get('classes'))
