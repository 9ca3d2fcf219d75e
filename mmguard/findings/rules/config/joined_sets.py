"""Data sets that are trained together although their class lists differ."""

from __future__ import annotations

from dataclasses import replace
from itertools import zip_longest
from typing import Any, Dict, Iterable, Iterator, List, Sequence, Tuple

from mmguard.config.agreement import find_class_counts, find_joined_lists, has_open_vocabulary
from mmguard.config.changes import change_config
from mmguard.config.guards import add_reporting
from mmguard.config.parts import (
    Part,
    find_datasets,
    from_config,
    get_class_names,
    get_classes_path,
    get_metainfo,
    says_classes,
)
from mmguard.config.read import ReadConfig
from mmguard.findings.class_edits import name_classes
from mmguard.findings.edits import Edit
from mmguard.findings.file_edits import rewrite
from mmguard.findings.finding import Finding
from mmguard.findings.rule import ConfigRule, Example, Facts
from mmguard.findings.usual_edits import combine_pair, insert_guard, propose, set_heads
from mmguard.findings.views import VOID, get_annotations, join_items
from mmguard.language import Message
from mmguard.text import shorten

OWN_NUMBERS = 'Are the label maps of each data set numbered by its own class list?'
SAME_NAMES = 'Does each name mean the same class in all data sets?'
SAME_FILES = 'Does every annotation file list all of these categories, in this order?'
#: Keys of ``metainfo`` that data sets of different types do not share, so that ConcatDataset has to ignore them.
_OWN_KEYS = ('dataset_type', 'task_name', 'palette', 'label_map')


class JoinedSets(ConfigRule):
    """Data sets that are trained together, each with a class list of its own."""

    code = 'MG590'
    follows = ('MG201', 'MG202')
    about_labels = True
    summary = 'The data sets of one training have different class lists.'
    title = (
        'These data sets are trained together, but label {label} is {here} here and {there} in {place}. '
        'Their {number} classes are: {union}.'
    )
    why = (
        'ConcatDataset does not translate labels: each data set numbers its own list. The one of mmengine refuses such '
        'data sets ("The meta information of the 2-th dataset does not match") unless ignore_keys names classes; the '
        'one of mmdet trains one label as several classes.'
    )
    example = Example(
        wrong="datasets=[dict(metainfo=dict(classes=('cat', 'dog'))), dict(metainfo=dict(classes=('dog', 'car')))]",
        right="classes=('cat', 'dog', 'car') in both; label maps of the second also need label_map={0: 1, 1: 2}",
    )
    limits = (
        'Classes are matched by name: it cannot see that "car" and "vehicle" are the same. An object whose class is '
        'not labeled in its own data set is trained as background.'
    )
    advice = (
        'Write one list, {union}, as metainfo of every data set, and count it in the heads. Label maps: translate each '
        "data set's numbers, `GuardSegLabels(num_classes={number}, label_map=...)` after its LoadAnnotations. COCO "
        'files, which mmdet numbers one by one: `mmguard fix FILE --classes {listed} --out DIR`.'
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
                    both = combine_pair(edit, copies, 'Write one class list in all data sets, and it in all files.')
                    yield replace(both, files=copies.files, question=SAME_NAMES, if_not='')


def _complete(config: ReadConfig) -> Iterator[Edit]:
    """Yield an edit that gives the only list of the config to the data sets without one."""
    sets, counts = find_datasets(config), find_class_counts(config)
    said = {tuple(get_class_names(dataset) or ()) for dataset in sets if says_classes(dataset)}
    left = [dataset for dataset in sets if not says_classes(dataset)]
    if len(said) == 1 and left and all(count.kind == 'all' for count in counts):
        (names,) = said
        heads = {count.path: len(names) for count in counts if count.value != len(names)}
        yield propose(
            Message('Write this class list in {places}, too.', places=join_items(one.path for one in left)),
            *(change for dataset in left for change in name_classes(dataset, names)),
            *(set_heads(config, heads).config if heads else ()),
            question=Message('Are the files of {name} labeled with these classes?', name=left[0].path),
        )


def _unite(config: ReadConfig, union: Sequence[str]) -> List[Edit]:
    """Return an edit that numbers the labels of every data set by one list; none if a split has other classes."""
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
    heads = {count.path: len(union) for count in counts if count.value != len(union)}
    by_name = all(dataset.is_a('XMLDataset') for dataset in sets)
    question = OWN_NUMBERS if has_maps else SAME_NAMES if by_name else SAME_FILES
    listed = join_items(map(repr, union), len(union))
    return [
        propose(
            Message('Number the labels of all data sets by one list: {union}.', union=listed),
            *changes,
            *(set_heads(change_config(config, changes), heads).config if heads else ()),
            question=question,
            if_not='Run `mmguard scan CONFIG`: it offers copies that do.' if question == SAME_FILES else '',
            notes=('Objects of a class that their own data set does not label are trained as background.',),
        )
    ]


def _find_table(dataset: Part, union: Sequence[str], void: int) -> Dict[int, int]:
    """Return value as loaded -> label for the values of a data set that have another number in a list."""
    own = list(map(str, get_metainfo(dataset).get('classes') or ()))
    if own and set(union) <= set(own):  # mmseg maps the classes of its own types by name
        return {}
    stored = enumerate(own or get_class_names(dataset) or ())
    table = {value: union.index(name) if name in union else void for value, name in stored}
    return {value: label for value, label in table.items() if value != label}


def _ignore_keys(config: ReadConfig, train: Sequence[Part]) -> Iterator[Tuple[str, Any]]:
    """Yield the changes that let a ConcatDataset join data sets whose ``metainfo`` differs in more than the classes."""
    is_mixed = any(one.name != train[0].name or 'palette' in (one.config.get('metainfo') or ()) for one in train)
    shifts = {bool(dataset.get('reduce_zero_label')) for dataset in train}
    keys = [*_OWN_KEYS] * is_mixed + ['reduce_zero_label'] * (len(shifts) > 1)
    for wrapper in find_datasets(config, wrappers=True):
        known = wrapper.config.get('ignore_keys') or []
        if keys and wrapper.name == 'ConcatDataset' and wrapper.split == 'train' and not wrapper.is_old:
            yield wrapper.place('ignore_keys'), [*([known] if isinstance(known, str) else known), *keys]
