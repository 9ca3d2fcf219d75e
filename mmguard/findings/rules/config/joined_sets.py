"""Data sets that are trained together although their class lists differ."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple

from mmguard.config.changes import change_config
from mmguard.config.guards import add_reporting
from mmguard.config.head_classes import find_class_counts, find_joined_lists, has_open_vocabulary
from mmguard.config.label_spaces import from_config
from mmguard.config.parts import Part, find_datasets, get_class_names, get_classes_path, get_metainfo, says_classes
from mmguard.config.read import ReadConfig
from mmguard.findings.class_edits import name_classes, use_base_dataset
from mmguard.findings.edits import Edit
from mmguard.findings.file_edits import rewrite
from mmguard.findings.finding import WARNING, Finding
from mmguard.findings.rule import ConfigRule, Example, Facts
from mmguard.findings.usual_edits import combine_pair, insert_guard, propose, set_heads
from mmguard.findings.views import VOID, get_annotations, join_items
from mmguard.language import Message
from mmguard.text import shorten

SAME_NAMES = 'Does each name mean the same class in all data sets?'
#: Keys of ``metainfo`` that data sets of different types do not share, so that ConcatDataset has to ignore them.
_OWN_KEYS = ('dataset_type', 'task_name', 'palette')


class JoinedSets(ConfigRule):
    """Data sets that are trained together, each with a class list of its own."""

    code = 'MG590'
    about_labels = True
    summary = 'The data sets of one training have different class lists.'
    title = (
        'These data sets are trained together, but label {label} is {here} here and {there} in {place}. '
        'Their {number} classes are: {union}.'
    )
    title_longer = 'These data sets are trained together, but this one has {here} classes, and {place} has {there}.'
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
        if not lists:
            return
        (first, expected), *others = lists
        union = list(dict.fromkeys(name for _, names in lists for name in names))
        quoted = join_items(map(repr, union), len(union))
        edits = [*_complete(config), *_unite(config, union, quoted)]
        for dataset, names in others:
            if names == expected:
                continue
            words: Dict[str, Any] = dict(
                place=get_classes_path(first), union=quoted, number=len(union), listed=','.join(union)
            )
            label = next((n for n, pair in enumerate(zip(names, expected)) if pair[0] != pair[1]), None)
            if label is None:  # one list continues the other
                words.update(here=len(names), there=len(expected))
                severity = WARNING if config.framework == 'mmdet' else None
                yield self.report_at(get_classes_path(dataset), names, words, self.title_longer, severity, edits)
            else:
                words.update(label=label, here=shorten(names[label]), there=shorten(expected[label]))
                yield self.report_at(get_classes_path(dataset), names, words, edits=edits)

    def edits(self, finding: Finding, facts: Facts) -> Iterable[Edit]:
        for edit in finding.candidates:
            yield edit
            if facts.labels is not None and get_annotations(facts.labels).names_from == 'categories':
                names = next(value['classes'] for path, value in edit.config if path.endswith('.metainfo'))
                for copies in rewrite(self, facts, '', classes=names):
                    both = combine_pair(edit, copies, 'Write one class list in all data sets, and it in all files.')
                    yield replace(both, files=copies.files, question=SAME_NAMES, if_not='')


def _complete(config: ReadConfig) -> Iterator[Edit]:
    """Yield an edit that gives the only list of the config to the data sets without one."""
    sets = find_datasets(config)
    said = {tuple(get_class_names(dataset) or ()) for dataset in sets if says_classes(dataset)}
    left = [dataset for dataset in sets if not says_classes(dataset)]
    if len(said) == 1 and left:
        (names,) = said
        heads = {count.path: len(names) for count in find_class_counts(config) if count.value != len(names)}
        yield propose(
            Message('Write the class list in {places}, too.', places=join_items((one.path for one in left), len(left))),
            *(change for dataset in left for change in name_classes(dataset, names)),
            *(set_heads(config, heads).config if heads else ()),
            question=Message('Are the files of {name} labeled with these classes?', name=left[0].path),
        )


def _unite(config: ReadConfig, union: Sequence[str], quoted: str) -> List[Edit]:
    """Return an edit that numbers the labels of every data set by one list; none if a split has other classes."""
    sets, counts, has_maps = find_datasets(config), find_class_counts(config), config.framework == 'mmseg'
    others = [name for one in sets for name in get_class_names(one) or () if name not in union]
    if others or (has_maps and config.is_old) or any(count.kind != 'all' for count in counts):
        return []
    own = [list(get_metainfo(dataset).get('classes') or ()) for dataset in sets]
    # mmseg maps the labels of its own types by name, but ConcatDataset takes only equal maps.
    maps_itself = all(names == own[0] and set(union) <= set(names) for names in own)
    space = from_config(config).pixels
    void = VOID if space is None or space.ignore_index is None else space.ignore_index
    changes: List[Tuple[str, Any]] = [] if maps_itself or not has_maps else [*add_reporting(config)]
    for dataset in sets:
        changes += _write_list(dataset, union)
        if has_maps and not maps_itself:
            written = _translate(dataset, union, void)
            if written is None:
                return []
            changes += written
    changes += _ignore_keys(config, sets)
    after = change_config(config, changes)
    heads = {count.path: len(union) for count in counts if count.value != len(union)}
    question, if_not = SAME_NAMES, ''
    if has_maps:
        question = 'Are the label maps of each data set numbered by its own class list?'
    elif not all(dataset.is_a('XMLDataset') for dataset in sets):
        question = 'Does every annotation file list all of these categories, in this order?'
        if_not = 'Run `mmguard scan CONFIG`: it offers copies of the files that do.'
    return [
        propose(
            Message('Number the labels of all data sets by one list: {union}.', union=quoted),
            *changes,
            *(set_heads(after, heads).config if heads else ()),
            question=question,
            if_not=if_not,
            notes=('Objects of a class that their own data set does not label are trained as background.',),
        )
    ]


def _write_list(dataset: Part, union: Sequence[str]) -> Iterator[Tuple[str, Any]]:
    """Yield the change that writes a class list, without a palette, which may be of another list."""
    if dataset.is_old:
        yield dataset.place('classes'), tuple(union)
        return
    known = dataset.config.get('metainfo')
    kept = {key: value for key, value in known.items() if key != 'palette'} if isinstance(known, dict) else {}
    yield dataset.place('metainfo'), {**kept, 'classes': tuple(union)}


def _translate(dataset: Part, union: Sequence[str], void: int) -> Optional[List[Tuple[str, Any]]]:
    """Return the changes that map the values in a data set's files to one list; ``None`` if its pipeline loads none."""
    own = get_metainfo(dataset).get('classes')
    stored = enumerate(map(str, own or get_class_names(dataset) or ()))
    table = {old: union.index(name) if name in union else void for old, name in stored}
    guard: Dict[str, Any] = dict(type='GuardSegLabels', num_classes=len(union))
    guard['label_map'] = {old: label for old, label in table.items() if old != label}
    if void != VOID:
        guard['ignore_index'] = void
    inserted = list(insert_guard(dataset, guard)) if guard['label_map'] else []
    if guard['label_map'] and not inserted and dataset.split == 'train':
        return None
    # A type with classes of its own takes no others.
    return [*(use_base_dataset(dataset) if own else ()), *inserted]


def _ignore_keys(config: ReadConfig, sets: Sequence[Part]) -> Iterator[Tuple[str, Any]]:
    """Yield the changes that let a ConcatDataset join data sets whose ``metainfo`` differs in more than the classes."""
    for wrapper in find_datasets(config, wrappers=True):
        inner = [dataset for dataset in sets if dataset.path.startswith(wrapper.place('datasets'))]
        keys = list(_OWN_KEYS) if len({dataset.name for dataset in inner}) > 1 else []
        keys += ['reduce_zero_label'] * (len({bool(dataset.get('reduce_zero_label')) for dataset in inner}) > 1)
        known = wrapper.config.get('ignore_keys') or []
        known = [known] if isinstance(known, str) else list(known)
        if keys and wrapper.name == 'ConcatDataset' and not wrapper.is_old:
            yield wrapper.place('ignore_keys'), list(dict.fromkeys([*known, *keys]))
