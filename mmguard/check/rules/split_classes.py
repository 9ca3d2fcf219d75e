from __future__ import annotations

from typing import Dict, Iterator, List, Tuple

from mmguard.check.config import ReadConfig
from mmguard.check.finding import WARNING, ConfigFinding
from mmguard.check.head_classes import has_open_vocabulary, names_more
from mmguard.check.parts import Part, classes_of, classes_path, datasets, says_classes
from mmguard.check.rule import Rule
from mmguard.words import counted


class SplitClasses(Rule):
    """Training, validation and test data number their classes differently."""

    code = 'MG204'
    summary = 'The classes of the train, val and test data differ, in number, names or order.'
    why = (
        'Labels are positions in the class list. A model that learned one list and is tested by another gets the '
        'wrong class, or an index beyond its channels; several lists within the training data contradict each other.'
    )
    advice = 'Give every data set the same metainfo.'

    def find(self, config: ReadConfig) -> Iterator[ConfigFinding]:
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
                    f'Write them in one order: metainfo=dict(classes={tuple(expected[:3])}...).',
                )
                continue
            yield self.at(
                classes_path(dataset),
                names,
                f'{counted(len(names), "class")} here, {len(expected)} at {classes_path(first)}'
                f'{_difference(names, expected)}.',
                'Give both the same metainfo.',
                None if len(names) != len(expected) else WARNING,
            )


def _same_kind(one: Part, other: Part) -> bool:
    return one.name == other.name


def _first_other(names: List[str], expected: List[str]) -> str:
    position = next(i for i, pair in enumerate(zip(names, expected)) if pair[0] != pair[1])
    return f'{position} is {names[position]!r} here and {expected[position]!r} there'


def _difference(names: List[str], expected: List[str]) -> str:
    here: Dict[str, None] = dict.fromkeys(n for n in names if n not in expected)
    there: Dict[str, None] = dict.fromkeys(n for n in expected if n not in names)
    parts = [f'only {where}: {", ".join(list(only)[:4])}' for where, only in (('here', here), ('there', there)) if only]
    return f' ({"; ".join(parts)})' if parts else ''
