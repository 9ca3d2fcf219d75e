"""Rules about class lists that are misread, or that differ between data sets."""

from __future__ import annotations

import inspect
from collections import Counter
from dataclasses import replace
from typing import Any, Dict, Iterator, List, Optional, Tuple

from mmguard.config.agreement import (
    find_class_counts,
    find_joined_lists,
    has_open_vocabulary,
    has_stuff_among_things,
    lists_untrained_classes,
    read_part_of_classes,
)
from mmguard.config.changes import REMOVED
from mmguard.config.parts import (
    Part,
    find_datasets,
    get_class_names,
    get_class_string,
    get_classes_path,
    get_metainfo,
    says_classes,
)
from mmguard.config.read import ReadConfig
from mmguard.findings.config_edits import combine_pair, count_in_heads, name_classes, propose, set_classes, set_heads
from mmguard.findings.edits import Edit
from mmguard.findings.finding import WARNING, Finding
from mmguard.findings.rule import ConfigRule, Example, Facts
from mmguard.findings.views import join_items
from mmguard.language import Message, join
from mmguard.text import quantity, shorten


class ClassString(ConfigRule):
    code = 'MG205'
    follows = ('MG201',)
    about_labels = True
    summary = 'The class list is a string, not a tuple: its letters become classes.'
    title = 'classes is a string, not a tuple: its {letters} letters become classes.'
    why = "classes=('person') is a string: each letter becomes a class that no annotation has."
    example = Example(wrong="metainfo=dict(classes=('person'))", right="metainfo=dict(classes=('person',))")
    limits = 'Misspelled names are not detected here; `mmguard scan CONFIG` finds them.'
    advice = 'Write `classes=({name},)`: the comma makes a tuple.'

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        for dataset in find_datasets(config):
            classes, place = get_class_string(dataset), get_classes_path(dataset)
            if not classes or get_class_names(dataset) is not None or _is_file_name(classes) or dataset.is_old:
                continue
            # A list in the config must be a subset of the one in the data set class, so no edit corrects that one.
            is_here = says_classes(dataset)
            ways = _write_list(config, 'Write a tuple, with a comma after the name.', place, classes) if is_here else ()
            words = dict(letters=len(classes), name=repr(classes))
            yield self.report_at(place, classes, words, edits=ways)


class ClassesNotRead(ConfigRule):
    code = 'MG390'
    follows = ('MG201',)
    about_labels = True
    summary = 'The class list is written as the argument classes, or as CLASSES; neither is read.'
    title_argument = '{kind} does not accept classes=... since MMDetection 3 and MMSegmentation 1: building it fails.'
    title_capitals = 'CLASSES is not read: {kind} keeps its own classes.'
    title_attribute = 'CLASSES of {kind} is not read since MMDetection 3 and MMSegmentation 1, which read METAINFO.'
    why = 'Class lists of MMDetection 2 and MMSegmentation 0 are not read: the data set keeps the classes of its type.'
    example = Example(wrong="metainfo=dict(CLASSES=('person',))", right="metainfo=dict(classes=('person',))")
    advice = 'Write the list as `metainfo=dict(classes=(...))` of the data set, with the key classes in lower case.'

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        for dataset in find_datasets(config):
            found = self._find_list(dataset)
            if found is not None:
                place, classes, edit, title = found
                removed = () if title == self.title_attribute else (place,)
                ways = _write_list(config, edit, dataset.place('metainfo.classes'), classes, *removed)
                yield self.report_at(place, classes, dict(kind=dataset.name), title, edits=ways)

    def _find_list(self, dataset: Part) -> Optional[Tuple[str, Any, str, str]]:
        """Return (config path, class list, title of the edit, title of the finding) of an unread list, or ``None``."""
        given, metainfo = dataset.config.get('classes'), dataset.config.get('metainfo')
        if given is not None and dataset.cls is not None and not dataset.is_old:
            return dataset.place('classes'), given, 'Move the classes to metainfo.', self.title_argument
        known, own = get_metainfo(dataset), getattr(dataset.cls, 'CLASSES', None)
        capitals = metainfo.get('CLASSES') if isinstance(metainfo, dict) and 'classes' not in metainfo else None
        if capitals and list(capitals) != list(known.get('classes') or ()):
            return (
                dataset.place('metainfo.CLASSES'),
                capitals,
                'Rename CLASSES to classes.',
                self.title_capitals,
            )
        is_said = says_classes(dataset) or dataset.is_old or known.get('classes') is not None
        if not is_said and isinstance(own, (list, tuple)) and own:
            place = f'{dataset.path} ({dataset.name}.CLASSES)'
            return place, own, 'Write the classes as metainfo.', self.title_attribute
        return None


class StuffAmongThings(ConfigRule):
    code = 'MG391'
    follows = ('MG201',)
    about_labels = True
    summary = 'A panoptic class list names a stuff class before a thing class.'
    title = (
        'Stuff is listed among the things: label {label} is {name}, but heads treat labels below {things} as things.'
    )
    why = (
        'Panoptic heads expect things first: a later thing is trained as stuff, and an earlier stuff class as a thing.'
    )
    example = Example(wrong="classes=('sky', 'cat'), thing_classes=['cat']", right="classes=('cat', 'sky')")
    advice = (
        'Write `classes={ordered}`, with the things first, and sort "categories" in the annotation files accordingly. '
        'Only then set num_things_classes and num_stuff_classes of the heads.'
    )

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        for dataset in find_datasets(config) if config.framework == 'mmdet' else ():
            classes, things = get_class_names(dataset) or (), read_part_of_classes(dataset, 'thing_classes')
            if has_stuff_among_things(classes, things):
                label = next(label for label, name in enumerate(classes) if name not in things)
                ordered = tuple(sorted(classes, key=lambda name: name not in things))
                words: Dict[str, Any] = dict(label=label, name=classes[label], things=len(things), ordered=ordered)
                yield self.report_at(get_classes_path(dataset), classes, words)


class NamesTwice(ConfigRule):
    code = 'MG392'
    follows = ('MG201',)
    about_labels = True
    summary = 'The class list contains a name more than once: the labels of this name are ambiguous.'
    title = 'The class list contains {names} more than once: the labels of these names are ambiguous.'
    why = 'Objects of a repeated name get one of its labels; the outputs of its other labels are never trained.'
    example = Example(wrong="classes=('cat', 'dog', 'cat')", right="classes=('cat', 'dog')")
    advice = 'Name every class once, and count it once in num_classes.'

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        for dataset in find_datasets(config):
            classes = get_class_names(dataset) if says_classes(dataset) else None
            twice = sorted(name for name, times in Counter(classes or ()).items() if times > 1)
            if twice:
                yield self.report_at(get_classes_path(dataset), classes, dict(names=join_items(map(repr, twice))))


def _write_list(config: ReadConfig, title: str, place: str, classes: Any, *removed: str) -> List[Edit]:
    """Return an edit that writes the class list and, if needed, another that also updates heads and other splits."""
    if isinstance(classes, str) and not _is_file_name(classes):
        classes = (classes,)
    return move_class_list(config, propose(title, *((gone, REMOVED) for gone in removed), (place, classes)), classes)


def _is_file_name(text: str) -> bool:
    return '/' in text or text.endswith(('.txt', '.csv', '.json'))


class SplitClasses(ConfigRule):
    code = 'MG204'
    aliases = ('MG144',)
    summary = 'The classes of the train, val and test data differ, in number, names or order.'
    why = (
        'Labels are positions in the class list. A model that is trained with one list and tested with another is '
        'scored on wrong classes or out-of-range labels; several lists within the training data contradict each other.'
    )
    title = 'The class lists differ: {number} here, {expected} at {place}{difference}.'
    title_order = (
        'The classes of {place} are in a different order here: label {label} is {here} here and {there} there.'
    )
    example = Example(wrong="train: classes=('cat', 'dog'); val: ('dog', 'cat')", right="both: classes=('cat', 'dog')")
    limits = (
        'Data sets of different types are compared only if the config sets a class list. Open-vocabulary models are '
        'not checked.'
    )
    advice = (
        'Find the class list that the files are labeled with (`mmguard scan CONFIG`), and write it as metainfo of '
        'every data set. If the splits are labeled differently, map the labels of one split with label_map of a guard.'
    )

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        known: List[Tuple[Part, List[str]]] = []
        for dataset in find_datasets(config):
            names = get_class_names(dataset)
            if names is not None and not lists_untrained_classes(dataset):
                known.append((dataset, names))
        if not known or known[0][0].split != 'train' or has_open_vocabulary(config) or find_joined_lists(config):
            return
        first, expected = known[0]
        for dataset, names in known[1:]:
            # Lists that come from different data set types may differ on purpose.
            if names == expected or not (says_classes(first) or says_classes(dataset) or _is_same_kind(first, dataset)):
                continue
            place, ways = get_classes_path(first), _unify_lists(config, first, dataset)
            if sorted(names) == sorted(expected):
                label = next(i for i, pair in enumerate(zip(names, expected)) if pair[0] != pair[1])
                words = dict(place=place, label=label, here=shorten(names[label]), there=shorten(expected[label]))
                yield self.report_at(get_classes_path(dataset), names, words, self.title_order, edits=ways)
                continue
            number, difference = quantity(len(names), 'class'), _describe_difference(names, expected)
            words = dict(number=number, expected=len(expected), place=place, difference=difference)
            severity = None if len(names) != len(expected) else WARNING
            yield self.report_at(get_classes_path(dataset), names, words, severity=severity, edits=ways)


def _unify_lists(config: ReadConfig, first: Part, dataset: Part) -> List[Edit]:
    """Return edits that make two class lists agree: copy the list of the training to ``dataset``, or the reverse."""
    names, expected = get_class_names(dataset) or [], get_class_names(first) or []
    forgotten = says_classes(first) and not says_classes(dataset)
    # Annotation files name their categories, so the order does not matter.
    certain = forgotten or (config.framework == 'mmdet' and sorted(names) == sorted(expected))
    here = propose(
        'Copy the class list of the training to this data set.',
        *name_classes(dataset, expected),
        question='' if certain else 'Are these files labeled with the class list of the training?',
        notes=('MMDetection 2.x: correct voc_classes in class_names.py, too.',) if dataset.is_old else (),
    )
    if forgotten:
        return [here]
    arrived = says_classes(dataset) and not says_classes(first)
    there = propose(
        'Write this class list in all data sets, and set num_classes in heads.',
        *set_classes(Facts(config=config), names).config,
        *count_in_heads(config, len(names)),
        question='Are the training files labeled with this class list?',
    )
    return [there] if arrived else [here, there]  # the names come from the type, not from the user


def _is_same_kind(one: Part, other: Part) -> bool:
    """Return True if two data sets have the same type, or the type of ``one`` is a subclass of that of ``other``."""
    base: Any = other.cls
    is_derived = inspect.isclass(one.cls) and inspect.isclass(base) and issubclass(one.cls, base)
    return one.name == other.name or is_derived


def _describe_difference(names: List[str], expected: List[str]) -> str:
    known, meant = set(names), set(expected)
    here: Dict[str, None] = dict.fromkeys(n for n in names if n not in meant)
    there: Dict[str, None] = dict.fromkeys(n for n in expected if n not in known)
    parts = [
        Message('only {where}: {names}', where=where, names=', '.join(list(only)[:4]))
        for where, only in ((Message('here'), here), (Message('there'), there))
        if only
    ]
    return join('', (' (', join('; ', parts), ')')) if parts else ''


def move_class_list(config: ReadConfig, move: Edit, classes: Any) -> List[Edit]:
    """Return [``move``], and if needed an edit that also updates the heads and the class lists of other splits."""
    if not isinstance(classes, (list, tuple)) or not classes:
        return [move]
    number, counts = len(classes), find_class_counts(config)
    heads = {count.path: number for count in counts if count.kind != 'stuff' and count.value != number}
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
        combine_pair(move, rest, 'Write this class list in every data set, and its length in every head.'),
        question=Message('Are these {num_classes} classes all the classes of your data?', num_classes=len(classes)),
    )
    return [move, whole]
