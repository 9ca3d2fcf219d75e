"""Class lists that are misread, or that do not match each other."""

from __future__ import annotations

import inspect
from collections import Counter
from typing import Any, Dict, Iterator, List, Tuple

from mmguard.config.changes import REMOVED
from mmguard.config.head_classes import (
    find_class_counts,
    has_open_vocabulary,
    has_stuff_among_things,
    lists_untrained_classes,
    read_part_of_classes,
)
from mmguard.config.parts import Part, find_datasets, get_class_names, get_classes_path, get_metainfo, says_classes
from mmguard.config.read import ReadConfig
from mmguard.findings.class_edits import move_class_list, name_classes
from mmguard.findings.edits import Edit
from mmguard.findings.finding import WARNING, Finding
from mmguard.findings.rule import ConfigRule, Example
from mmguard.findings.usual_edits import propose, set_heads
from mmguard.findings.views import join_items
from mmguard.language import Message, join
from mmguard.text import quantity, shorten


class ClassList(ConfigRule):
    """A class list that is not a list, or has a name that is misread."""

    code = 'MG205'
    follows = ('MG201',)
    about_labels = True
    summary = 'The class list is a string, holds a name twice, is not read, or has stuff among things.'
    title_argument = '{kind} does not take classes since MMDetection 3 and MMSegmentation 1: building it fails.'
    title_capitals = 'CLASSES is not read: {kind} keeps its own classes.'
    title_attribute = (
        'CLASSES of {kind} is not read since MMDetection 3 and MMSegmentation 1: METAINFO holds the classes.'
    )
    title_string = 'classes is a string, not a tuple: its {letters} letters become classes.'
    title_stuff = (
        'Stuff is listed among the things: label {label} is {name}, but heads take labels below {things} for things.'
    )
    title_twice = 'The class list holds {names} more than once: their labels are ambiguous.'
    why = (
        "classes=('person') is a string, not a tuple: each letter becomes a class. CLASSES was the name in MMDetection "
        '2.x; now it is not read and the data set keeps its own classes.'
    )
    example = Example(wrong="metainfo=dict(classes=('person'))", right="metainfo=dict(classes=('person',))")
    limits = 'Names that are merely misspelled are not detected here, but by `mmguard scan CONFIG`.'
    advice = (
        "Write metainfo=dict(classes=('person',)): the key in lower case, and the comma that makes a tuple. Name every "
        'class once. In a panoptic set list the things first, then the stuff, also in "categories" of the files; only '
        'then set num_things_classes and num_stuff_classes of the heads.'
    )

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        for dataset in find_datasets(config):
            metainfo, at = dataset.config.get('metainfo'), dataset.place('metainfo')
            given, place = dataset.config.get('classes'), dataset.place('classes')
            if given is not None and dataset.cls is not None and not dataset.is_old:
                ways = _write_list(config, 'Move the classes to metainfo.', f'{at}.classes', given, place)
                yield self.report_at(place, given, dict(kind=dataset.name), self.title_argument, edits=ways)
            yield from self._find_stuff_among_things(config, dataset)
            yield from self._look_at_class(config, dataset)
            if not isinstance(metainfo, dict):
                continue
            capitals, own = metainfo.get('CLASSES'), list(get_metainfo(dataset).get('classes') or ())
            if capitals and 'classes' not in metainfo and list(capitals) != own:
                ways = _write_list(config, 'Write classes in lower case.', f'{at}.classes', capitals, f'{at}.CLASSES')
                words = dict(kind=dataset.name)
                yield self.report_at(f'{at}.CLASSES', capitals, words, self.title_capitals, edits=ways)
            classes, place = metainfo.get('classes'), f'{at}.classes'
            if isinstance(classes, str) and get_class_names(dataset) is None and not _is_file_name(classes):
                ways = _write_list(config, 'Write a tuple, with a comma after the name.', place, classes)
                yield self.report_at(place, classes, dict(letters=len(classes)), self.title_string, edits=ways)
            elif isinstance(classes, (list, tuple)):
                twice = sorted(name for name, times in Counter(map(str, classes)).items() if times > 1)
                if twice:
                    yield self.report_at(place, classes, dict(names=join_items(map(repr, twice))), self.title_twice)

    def _look_at_class(self, config: ReadConfig, dataset: Part) -> Iterator[Finding]:
        """Yield a class list of a data set's class that is not read, or is a string."""
        if says_classes(dataset) or dataset.is_old:
            return
        classes, capitals = get_metainfo(dataset).get('classes'), getattr(dataset.cls, 'CLASSES', None)
        if isinstance(classes, str) and not _is_file_name(classes):
            # No edit: a list in the config must be a part of the one in the class.
            yield self.report_at(get_classes_path(dataset), classes, dict(letters=len(classes)), self.title_string)
        elif classes is None and isinstance(capitals, (list, tuple)) and capitals:
            place = f'{dataset.path} ({dataset.name}.CLASSES)'
            ways = _write_list(config, 'Write the classes as metainfo.', dataset.place('metainfo.classes'), capitals)
            yield self.report_at(place, capitals, dict(kind=dataset.name), self.title_attribute, edits=ways)

    def _find_stuff_among_things(self, config: ReadConfig, dataset: Part) -> Iterator[Finding]:
        """Yield a class list of a panoptic set, in the config or in its class, whose things are not first."""
        classes, things = get_class_names(dataset) or (), read_part_of_classes(dataset, 'thing_classes')
        if config.framework == 'mmdet' and has_stuff_among_things(classes, things):
            label = next(label for label, name in enumerate(classes) if name not in things)
            words: Dict[str, Any] = dict(label=label, name=classes[label], things=len(things))
            yield self.report_at(get_classes_path(dataset), classes, words, self.title_stuff)


def _write_list(config: ReadConfig, title: str, place: str, classes: Any, *removed: str) -> List[Edit]:
    """Return an edit that writes the intended list, and one that also changes the heads with another number."""
    if isinstance(classes, str) and not _is_file_name(classes):
        classes = (classes,)
    return move_class_list(config, propose(title, *((gone, REMOVED) for gone in removed), (place, classes)), classes)


def _is_file_name(text: str) -> bool:
    return '/' in text or text.endswith(('.txt', '.csv', '.json'))


class SplitClasses(ConfigRule):
    """Training, validation and test data whose classes are numbered differently."""

    code = 'MG204'
    aliases = ('MG144',)
    summary = 'The classes of the train, val and test data differ, in number, names or order.'
    why = (
        'Labels are positions in the class list. A model that learned one list and is tested by another gets the '
        'wrong class, or an index beyond its channels; several lists within the training data contradict each other.'
    )
    title = 'The class lists differ: {number} here, {expected} at {place}{difference}.'
    title_order = (
        'The same classes as in {place}, but in a different order: label {label} is {here} here and {there} there.'
    )
    example = Example(wrong="train: classes=('cat', 'dog'); val: ('dog', 'cat')", right="both: classes=('cat', 'dog')")
    limits = 'Lists of two types of data sets are compared only if the config sets one; open vocabularies never are.'
    advice = (
        'Find out which list the files are labeled by (`mmguard scan CONFIG`), and write it as metainfo of every data '
        'set. If the splits are labeled differently, map the labels of one with the label_map of a guard.'
    )

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        known: List[Tuple[Part, List[str]]] = []
        for dataset in find_datasets(config):
            names = get_class_names(dataset)
            if names is not None and not lists_untrained_classes(dataset):
                known.append((dataset, names))
        if not known or known[0][0].split != 'train' or has_open_vocabulary(config):
            return
        first, expected = known[0]
        for dataset, names in known[1:]:
            # Classes that the config does not name are up to its author, unless it names others.
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
    """Return an edit that writes the training's list here, and if both are in the config, one for the reverse."""
    names, expected = get_class_names(dataset) or [], get_class_names(first) or []
    forgotten = says_classes(first) and not says_classes(dataset)
    # Annotation files name their categories, so the order does not matter.
    certain = forgotten or (config.framework == 'mmdet' and sorted(names) == sorted(expected))
    here = propose(
        'Write the class list of the training here.',
        *name_classes(dataset, expected),
        question='' if certain else 'Are these files labeled by the class list of the training?',
        notes=('MMDetection 2.x: correct voc_classes in class_names.py, too.',) if dataset.is_old else (),
    )
    if forgotten:
        return [here]
    arrived = says_classes(dataset) and not says_classes(first)
    heads = {
        count.path: len(names)
        for count in find_class_counts(config)
        if count.kind == 'all' and count.value != len(names)
    }
    numbers = set_heads(config, heads).config if heads else ()
    there = propose(
        'Write this class list in the training data set.',
        *(change for one in find_datasets(config) for change in name_classes(one, names)),
        *numbers,
        question='Are the training files labeled by this list?',
    )
    return [there] if arrived else [here, there]  # the names come from the type, not from the user


def _is_same_kind(one: Part, other: Part) -> bool:
    """Return True if two data sets have the same type, or that of the first derives from that of the other."""
    return one.name == other.name or _is_made_of(one.cls, other.cls)


def _is_made_of(one: Any, other: Any) -> bool:
    return inspect.isclass(one) and inspect.isclass(other) and issubclass(one, other)


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
