"""Edits of class lists, and of the number of classes in heads."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Iterator, List, Mapping, Optional, Sequence, Tuple

from mmguard.config.agreement import find_class_counts, find_training_datasets
from mmguard.config.parts import Part, find_datasets, get_class_names, get_metainfo, says_classes
from mmguard.config.read import ReadConfig
from mmguard.findings.edits import Edit
from mmguard.findings.rule import Facts
from mmguard.findings.usual_edits import (
    combine_pair,
    reduce_zero_label,
    set_heads,
    set_ignore_index,
    set_num_classes,
)
from mmguard.findings.views import VOID, count_trained, get_annotations, select_ids
from mmguard.language import Message
from mmguard.text import plural, quantity

#: mmseg's class for custom data, as named in new-style configs.
BASE = 'mmseg.datasets.basesegdataset.BaseSegDataset'
#: Numbers of classes in mmdet's own configs: VOC, COCO, Objects365, LVIS, OpenImages.
COUNTS_OF_BASES = (20, 80, 365, 500, 601, 1203, 1230)


def set_classes(facts: Facts, names: Sequence[str], question: str = '') -> Edit:
    """Return an edit that sets ``metainfo.classes`` of every data set, without its palette."""
    sets = find_datasets(facts.config) if facts.config is not None else ()
    places = tuple(change for dataset in sets for change in name_classes(dataset, names))
    line = f'classes={format_classes(names)}'
    line = line if facts.config is not None and facts.config.is_old else f'metainfo=dict({line})'
    return Edit('List the classes in the data sets of all splits.', question, places, lines=(line,))


def set_classes_and_heads(facts: Facts, names: Sequence[str], question: str = '') -> Edit:
    """Return an edit that sets a class list, and the number of classes of the heads."""
    found = set_classes(facts, names, question)
    heads = [] if facts.config is None else [count for count in find_class_counts(facts.config) if count.kind == 'all']
    if all(count.value == len(names) for count in heads):
        return found
    follow = set_num_classes(facts, len(names), question)
    return replace(
        combine_pair(found, follow, 'List the classes in the data sets, and count them in every head.'), options=()
    )


def format_classes(names: Sequence[str]) -> str:
    """Format a class list as code."""
    return f'({", ".join(repr(str(name)) for name in names)},)'


def name_classes(dataset: Part, names: Sequence[str]) -> Iterator[Tuple[str, Any]]:
    """Yield changes that name the classes of one data set, with BaseSegDataset if its class accepts no new names."""
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
    """Yield changes to mmseg's class for custom data, with the file suffixes and the label shift of the old class."""
    kind = str(dataset.config['type'])
    yield (
        dataset.place('type'),
        f'{kind.rpartition(".")[0]}.BaseSegDataset'.lstrip('.') if kind.count('.') < 2 else BASE,
    )
    for key in ('img_suffix', 'seg_map_suffix', 'reduce_zero_label'):
        if not dataset.says(key) and dataset.get(key) is not None:
            yield dataset.place(key), dataset.get(key)


def move_class_list(config: ReadConfig, move: Edit, classes: Any) -> List[Edit]:
    """Return an edit of a class list, then one that also changes the heads and the splits without the list."""
    if not isinstance(classes, (list, tuple)) or not classes:
        return [move]
    heads = {
        count.path: len(classes)
        for count in find_class_counts(config)
        if count.kind != 'stuff' and count.value != len(classes)
    }
    touched = {place for place, _ in move.config}
    others = tuple(
        change
        for dataset in find_datasets(config)
        if not says_classes(dataset) and not any(place.startswith(dataset.path) for place in touched)
        for change in name_classes(dataset, [str(name) for name in classes])
    )
    if not heads and not others:
        return [move]
    rest = Edit('', config=(*set_heads(config, heads).config, *others))
    whole = replace(
        combine_pair(move, rest, 'Write the class list here, and the same classes in every head and split.'),
        question=Message('Are these {num_classes} all classes of your data?', num_classes=len(classes)),
    )
    return [move, whole]


def drop_first_class(config: ReadConfig, question: str) -> Optional[Edit]:
    """Return an edit that drops the first class: 0 is ignored, list and heads have one class less; else ``None``."""
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


def match_heads_and_list(
    facts: Facts, expected: Mapping[str, int], number: int, counted_one_more: bool = False
) -> Iterator[Edit]:
    """Yield edits that make heads and class list agree, by changing either the heads or the list.

    Args:
        expected (dict[str, int]): Path of a head -> number of classes in the list.
        number (int): Number of classes in the heads.
        counted_one_more (bool): True if the heads seem to count the background.
    """
    config, labels = facts.config, facts.labels
    assert config is not None
    data = find_training_datasets(config)
    said = any(says_classes(dataset) for dataset in data)
    known = {name for dataset in data for name in get_class_names(dataset) or ()}
    in_files = list(dict.fromkeys(get_annotations(labels).categories.values())) if labels is not None else []
    # The head that predicts comes first; the number of another one may merely not have been updated.
    leading = next((count.path for count in find_class_counts(config) if count.kind == 'all'), None)
    agrees = leading is not None and leading not in expected
    certain = agrees or (said and labels is not None)
    listed_here = sorted(set(expected.values()))
    asked = Message(
        'Does your data have {numbers} {noun}?',
        numbers=' and '.join(map(str, listed_here)),
        noun=plural(listed_here[-1], 'class'),
    )
    heads = set_heads(config, expected, '' if certain else asked)
    if labels is None and not certain:
        heads = replace(heads, notes=(*heads.notes, '`mmguard scan CONFIG` counts the classes of the files.'))
    lists = [get_class_names(dataset) for dataset in find_datasets(config) if says_classes(dataset)]
    elsewhere = next((names for names in lists if not said and names and len(names) == number), None)
    if in_files and len(in_files) == number and known != set(in_files):
        # The files have as many classes as the heads, so the list is wrong.
        yield set_classes(facts, in_files, 'Do you train all of these?' if said else '')
        if said and known & set(in_files):
            yield replace(heads, question='Do you train only these classes?')
    elif said or agrees or known == set(in_files):
        yield heads
    elif in_files:
        names = set_classes(facts, in_files)
        follow = set_heads(config, dict.fromkeys(expected, len(in_files)))
        edit = combine_pair(names, follow, 'List the categories of the file as classes, and count them in the heads.')
        yield replace(edit, question='Do you train all categories of the file?')
    elif elsewhere is not None:
        yield set_classes(facts, elsewhere)
    else:
        holds_more = labels is not None and any(number <= label < VOID for label in select_ids(count_trained(labels)))
        of_base = config.framework == 'mmdet' and number in COUNTS_OF_BASES
        if of_base:
            yield replace(heads, question=asked)
        if not holds_more and not counted_one_more and not any('stuff' in place for place in expected):
            yield _propose_names(config, number)
        # Any other number in a detector's heads was set by someone who counted the classes.
        if not of_base and (holds_more or counted_one_more or (labels is None and config.framework != 'mmdet')):
            yield replace(heads, question=asked)


def _propose_names(config: ReadConfig, number: int) -> Edit:
    """Return an edit that lists placeholder names in place of a missing list, for the user to replace."""
    names = tuple(f'class {label}' for label in range(number))
    by_name = config.framework == 'mmdet'
    return Edit(
        'List the names of your classes in the data sets of all splits, inside of wrappers.',
        Message('Is this your own data, with {classes}?', classes=quantity(number, 'class')),
        tuple(change for dataset in find_datasets(config) for change in name_classes(dataset, names)),
        lines=(f'metainfo=dict(classes=({number} names))',),
        commands=('mmguard scan CONFIG',) if by_name else (),  # the scan reads the names from the file
        is_manual=by_name,  # annotations are matched by name, so placeholders would match none
    )
