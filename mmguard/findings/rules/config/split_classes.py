from __future__ import annotations

import inspect
from typing import Any, Dict, Iterator, List, Tuple

from mmguard.config.head_classes import counts, has_open_vocabulary, names_more
from mmguard.config.parts import Part, classes_of, classes_path, datasets, says_classes
from mmguard.config.read import ReadConfig
from mmguard.findings.edits import ASKS, SAFE, Edit
from mmguard.findings.finding import WARNING, Finding
from mmguard.findings.rule import ConfigRule
from mmguard.findings.usual_edits import named, set_heads
from mmguard.text.short import short
from mmguard.text.words import counted


class SplitClasses(ConfigRule):
    """Training, validation and test data number their classes differently."""

    code = 'MG204'
    aliases = ('MG144',)
    summary = 'The classes of the train, val and test data differ, in number, names or order.'
    why = (
        'Labels are positions in the class list. A model that learned one list and is tested by another gets the '
        'wrong class, or an index beyond its channels; several lists within the training data contradict each other.'
    )
    advice = 'Give every data set the same metainfo.'

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
            if sorted(names) == sorted(expected):
                yield self.at(
                    classes_path(dataset),
                    names,
                    f'The names of {classes_path(first)} in another order: label {_first_other(names, expected)}.',
                    edits=_one_list(config, first, dataset, 'Write them in one order'),
                )
                continue
            yield self.at(
                classes_path(dataset),
                names,
                f'{counted(len(names), "class")} here, {len(expected)} at {classes_path(first)}'
                f'{_difference(names, expected)}.',
                severity=None if len(names) != len(expected) else WARNING,
                edits=_one_list(config, first, dataset, 'Give both the same metainfo'),
            )


def _one_list(config: ReadConfig, first: Part, dataset: Part, do: str) -> List[Edit]:
    """The list of the training here; where both are written, the one here in the training, too."""
    names, expected = classes_of(dataset) or [], classes_of(first) or []
    forgotten = says_classes(first) and not says_classes(dataset)
    # Annotation files name their categories: there the order decides nothing.
    certain = forgotten or (config.framework == 'mmdet' and sorted(names) == sorted(expected))
    old = (
        ' (MMDetection 2.x and older: correct voc_classes in class_names.py, too)'
        if config.framework == 'mmdet'
        else ''
    )
    here = Edit(
        f'{do}, that of the training{old}.',
        SAFE if certain else ASKS,
        '' if certain else 'Are the files here labelled as those of the training?',
        tuple(named(dataset, expected)),
    )
    if forgotten:
        return [here]
    arrived = says_classes(dataset) and not says_classes(first)
    heads = {count.path: len(names) for count in counts(config) if count.kind == 'all' and count.value != len(names)}
    numbers = set_heads(config, heads) if heads else None
    there = Edit(
        f'{do} in the training.',
        ASKS,
        'Are the files of the training labelled by the list here?',
        (
            *(change for one in datasets(config) for change in named(one, names)),
            *(numbers.config if numbers else ()),
        ),
    )
    return [there] if arrived else [here, there]  # the names of a type are nobody's choice


def _same_kind(one: Part, other: Part) -> bool:
    """Whether one type, or a type of one's own made of the other, which is left in this split."""
    return one.name == other.name or _is_made_of(one.cls, other.cls)


def _is_made_of(one: Any, other: Any) -> bool:
    return inspect.isclass(one) and inspect.isclass(other) and issubclass(one, other)


def _first_other(names: List[str], expected: List[str]) -> str:
    position = next(i for i, pair in enumerate(zip(names, expected)) if pair[0] != pair[1])
    return f'{position} is {short(names[position])} here and {short(expected[position])} there'


def _difference(names: List[str], expected: List[str]) -> str:
    known, meant = set(names), set(expected)
    here: Dict[str, None] = dict.fromkeys(n for n in names if n not in meant)
    there: Dict[str, None] = dict.fromkeys(n for n in expected if n not in known)
    parts = [f'only {where}: {", ".join(list(only)[:4])}' for where, only in (('here', here), ('there', there)) if only]
    return f' ({"; ".join(parts)})' if parts else ''
