from __future__ import annotations

from typing import Dict, Iterator, List, Optional, Sequence, Tuple

from mmguard.config.classes import BACKGROUND
from mmguard.findings.class_edits import learn
from mmguard.findings.edits import ASKS, SAFE, Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.file_edits import rewrite
from mmguard.findings.finding import PROVEN, Finding
from mmguard.findings.rule import DataRule, Example, Facts
from mmguard.findings.views import (
    annotations_of,
    class_lists,
    config_of,
    is_trained_on,
    listing,
    nearest,
    normalize_name,
)
from mmguard.text import shorten


class NamesNotInFile(DataRule):
    """Class names of the config that the annotation file does not know."""

    code = 'MG140'
    shows_values = False
    kinds = ('pixels', 'instances')
    needs = ('annotations',)
    summary = 'Class names of the config that the annotations do not have.'
    title = 'The config names classes that the annotations do not have: {missing}.'
    title_string = 'classes is a string, {shown}: every letter of it counts as a class.'
    why = (
        'mmdet looks categories up by name. What it does not find is left out silently, and the labels after it move '
        'down; if nothing is found, "need at least one array to concatenate", or a training on background only.'
    )
    example = Example(
        wrong="metainfo=dict(classes=('person', 'bike')) for categories person, bicycle",
        right="metainfo=dict(classes=('person', 'bicycle'))",
    )
    limits = (
        'A class may be missing in a small set of VOC files: there only names that look like a misspelling are '
        'reported.'
    )
    advice = (
        'Compare the class list with the names in the annotations: {known}. Write a misspelt name as there, and a list '
        "of one with its comma: `classes=('a',)`. Without metainfo the names of the data set type are used: write "
        'yours, and count them in num_classes. Add a class that one file lacks to its "categories", or drop it '
        'everywhere.'
    )

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        return PROVEN if self._missing(facts)[0] else None

    def find_superseded(self, facts: LabelFacts) -> Sequence[str]:
        # Only a list that did not arrive fits no head, and not the other lists.
        others = super().find_superseded(facts)
        return others if self._is_of_the_type(facts) else [code for code in others if not code.startswith('MG2')]

    def choose_title(self, facts: LabelFacts) -> str:
        return self.title_string if self._spelt(facts) else self.title

    def describe(self, facts: LabelFacts) -> Dict[str, str]:
        return {
            'missing': listing(map(repr, self._missing(facts)[0])),
            'known': listing(map(repr, self._names_in_file(facts))),
            'shown': shorten(''.join(self._spelt(facts))),
        }

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        labels = facts.labels
        if labels is None or facts.config is None:
            return
        missing, names = self._missing(labels)
        if self._spelt(labels):
            yield learn(facts, [''.join(self._spelt(labels))], SAFE)
        elif self._lacks(labels) and not self._comes_with_type(labels):
            elsewhere = [split.labels for split in facts.others if split.labels is not None]
            sure = any(set(missing) <= set(annotations_of(other).categories.values()) for other in elsewhere)
            question = '' if sure else f'Does this file only lack objects of {listing(map(repr, missing))}?'
            title = f'Add {listing(map(repr, missing))} to "categories", each at its place.'
            yield from rewrite(self, facts, title, SAFE if sure else ASKS, question, classes=names)
            if is_trained_on(labels):  # what else is to be learnt, no other file says
                question = f'Are {listing(map(repr, self._names_in_file(labels)))} all that is to be learnt?'
                yield learn(facts, self._names_in_file(labels), ASKS, question)
        else:
            meant, known = self._match_names(labels), self._names_in_file(labels)
            written = [meant.get(name) or name for name in names]
            if annotations_of(labels).names_from == 'categories' or not meant:
                chosen = set(written)
                written = [name for name in known if name in chosen] if meant else self._names_of_split(facts) or known
            certain = meant or self._is_of_the_type(labels) or labels.num_classes == len(written)
            asked = '' if certain else f'Are {listing(map(repr, written))} the classes?'
            edit = learn(facts, written, ASKS if asked else SAFE, asked)
            yield edit

    def evidence(self, facts: LabelFacts) -> str:
        missing, names = self._missing(facts)
        path = next((path for path, listed in class_lists(facts).items() if listed == names), 'metainfo.classes')
        empty = len(missing) == len(names) and not any(facts.histogram.values())
        left = (
            '; not one object is left, and no image where `filter_empty_gt` leaves out those without' if empty else ''
        )
        return f'{len(missing)} of {len(names)} names in {path}: {listing(map(repr, missing))}{left}'

    def _names_in_file(self, facts: LabelFacts) -> List[str]:
        found = annotations_of(facts)
        if found.names_from != 'objects':
            return [str(name) for name in found.categories.values()]
        # XML files have no list of categories: what they name, they know.
        named = [name for name, number in found.instances_of.items() if number]
        return list(dict.fromkeys([*named, *found.left_out_names]))

    def _missing(self, facts: LabelFacts) -> Tuple[List[str], List[str]]:
        """Return the names without a category, of the list that lacks most, and that list."""
        known = self._names_in_file(facts)
        found = annotations_of(facts)
        if not found.names_from or not known:
            return [], []
        lists = [facts.class_names] if facts.class_names else list(class_lists(facts).values())
        there = set(known)
        lacks = [([str(name) for name in names if name not in there], list(map(str, names))) for names in lists]
        missing, names = max(lacks, key=lambda pair: len(pair[0]) / len(pair[1]), default=([], []))
        if found.names_from == 'objects' and len(missing) < len(names):
            # A class may be missing in a small set of XML files; a name that is left out and nearly its own may not.
            left_out = list(found.left_out_names)
            alike = {normalize_name(name) for name in left_out}
            close = nearest([name for name in missing if normalize_name(name) not in alike], left_out, 0.7)
            missing = [name for name in missing if close.get(name, name)]
        spelt = self._spelt(facts)
        return (spelt, spelt) if spelt and not missing else (missing, names)

    def _names_of_split(self, facts: Facts) -> List[str]:
        """Return the classes of another split that are those of these files: their order is the user's."""
        known = set(self._names_in_file(facts.labels)) if facts.labels else set()
        lists = (split.labels.class_names for split in facts.others if split.labels)
        return next((list(names) for names in lists if known and set(names) == known), [])

    def _spelt(self, facts: LabelFacts) -> List[str]:
        """Return the letters of a class list that is a string, if there is one."""
        for names in [facts.class_names, *class_lists(facts).values()]:
            letters = len(names) > 1 and all(len(name) == 1 for name in names)
            # Classes may well be called a, b and c: in a file that knows them.
            if letters and (
                ''.join(names) in self._names_in_file(facts) or not set(names) & set(self._names_in_file(facts))
            ):
                return list(names)
        return []

    def _match_names(self, facts: LabelFacts) -> Dict[str, str]:
        """Map each missing name to the one of the file that it seems to be, or to nothing."""
        missing, names = self._missing(facts)
        known = self._names_in_file(facts)
        alike = {normalize_name(name): name for name in known}
        listed = set(names)
        close = nearest(missing, [name for name in known if name not in listed], 0.7)
        meant = {name: alike.get(normalize_name(name), found) for name, found in close.items()}
        # Of another list altogether what sounds alike is chance.
        return meant if 2 * sum(map(bool, meant.values())) >= len(missing) else {}

    def _lacks(self, facts: LabelFacts) -> bool:
        """True if all names of the file are listed, and some listed names are not in the file."""
        missing, names = self._missing(facts)
        known = self._names_in_file(facts)
        counted = any(normalize_name(name) in map(normalize_name, BACKGROUND) for name in missing)
        return (
            bool(known)
            and set(known) <= set(names)
            and annotations_of(facts).names_from == 'categories'
            and not counted
        )

    def _is_of_the_type(self, facts: LabelFacts) -> bool:
        """True if the names come with the type of the data set, because the config gives none."""
        missing, names = self._missing(facts)
        return len(missing) == len(names) and self._comes_with_type(facts)

    def _comes_with_type(self, facts: LabelFacts) -> bool:
        names = self._missing(facts)[1]
        lists = config_of(facts).dataset_classes
        path = next((path for path, listed in lists.items() if list(listed) == names), '')
        return 'METAINFO' in path
