from __future__ import annotations

import inspect
from typing import Any, Dict, Iterator, List, Tuple

from mmguard.config.head_classes import counts, has_open_vocabulary, names_more
from mmguard.config.parts import Part, classes_of, classes_path, datasets, says_classes
from mmguard.config.read import ReadConfig
from mmguard.findings.class_edits import name_classes
from mmguard.findings.edits import Edit
from mmguard.findings.finding import WARNING, Finding
from mmguard.findings.rule import ConfigRule, Example
from mmguard.findings.usual_edits import propose, set_heads
from mmguard.text import quantity, shorten


class SplitClasses(ConfigRule):
    """Training, validation and test data number their classes differently."""

    code = 'MG204'
    aliases = ('MG144',)
    summary = 'The classes of the train, val and test data differ, in number, names or order.'
    why = (
        'Labels are positions in the class list. A model that learned one list and is tested by another gets the '
        'wrong class, or an index beyond its channels; several lists within the training data contradict each other.'
    )
    title = '{number} here, {expected} at {place}{difference}.'
    title_order = 'The names of {place} in another order: label {label} is {here} here and {there} there.'
    example = Example(wrong="train: classes=('cat', 'dog'); val: ('dog', 'cat')", right="both: classes=('cat', 'dog')")
    limits = 'The lists of two types that the config does not name are not compared, nor are open vocabularies.'
    advice = (
        'Find out which list the files are labelled by (`mmguard scan CONFIG`), and write it as metainfo of every data '
        'set. If the splits are labelled differently, map the labels of one with the label_map of a guard.'
    )

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        known: List[Tuple[Part, List[str]]] = []
        for dataset in datasets(config):
            names = classes_of(dataset)
            if names is not None and not names_more(dataset):
                known.append((dataset, names))
        if not known or known[0][0].split != 'train' or has_open_vocabulary(config):
            return
        first, expected = known[0]
        for dataset, names in known[1:]:
            # Classes of a data set that the config does not name are its author's affair, unless it names others.
            if names == expected or not (says_classes(first) or says_classes(dataset) or _same_kind(first, dataset)):
                continue
            place, ways = classes_path(first), _one_list(config, first, dataset)
            if sorted(names) == sorted(expected):
                label = next(i for i, pair in enumerate(zip(names, expected)) if pair[0] != pair[1])
                words = dict(place=place, label=label, here=shorten(names[label]), there=shorten(expected[label]))
                yield self.report_at(classes_path(dataset), names, words, self.title_order, edits=ways)
                continue
            number, difference = quantity(len(names), 'class'), _difference(names, expected)
            words = dict(number=number, expected=len(expected), place=place, difference=difference)
            severity = None if len(names) != len(expected) else WARNING
            yield self.report_at(classes_path(dataset), names, words, severity=severity, edits=ways)


def _one_list(config: ReadConfig, first: Part, dataset: Part) -> List[Edit]:
    """Write the list of the training here; where both are written, also the one here in the training."""
    names, expected = classes_of(dataset) or [], classes_of(first) or []
    forgotten = says_classes(first) and not says_classes(dataset)
    # Annotation files name their categories: there the order decides nothing.
    certain = forgotten or (config.framework == 'mmdet' and sorted(names) == sorted(expected))
    here = propose(
        'Write the class list of the training here.',
        *name_classes(dataset, expected),
        question='' if certain else 'Are the files here labelled as those of the training?',
        notes=('MMDetection 2.x: correct voc_classes in class_names.py, too.',) if dataset.is_old else (),
    )
    if forgotten:
        return [here]
    arrived = says_classes(dataset) and not says_classes(first)
    heads = {count.path: len(names) for count in counts(config) if count.kind == 'all' and count.value != len(names)}
    numbers = set_heads(config, heads).config if heads else ()
    there = propose(
        'Write the class list from here in the training.',
        *(change for one in datasets(config) for change in name_classes(one, names)),
        *numbers,
        question='Are the files of the training labelled by the list here?',
    )
    return [there] if arrived else [here, there]  # the names of a type were not chosen by the user


def _same_kind(one: Part, other: Part) -> bool:
    """True if two data sets have one type, or the first a type made from the other's, which is left in this split."""
    return one.name == other.name or _is_made_of(one.cls, other.cls)


def _is_made_of(one: Any, other: Any) -> bool:
    return inspect.isclass(one) and inspect.isclass(other) and issubclass(one, other)


def _difference(names: List[str], expected: List[str]) -> str:
    known, meant = set(names), set(expected)
    here: Dict[str, None] = dict.fromkeys(n for n in names if n not in meant)
    there: Dict[str, None] = dict.fromkeys(n for n in expected if n not in known)
    parts = [f'only {where}: {", ".join(list(only)[:4])}' for where, only in (('here', here), ('there', there)) if only]
    return f' ({"; ".join(parts)})' if parts else ''
