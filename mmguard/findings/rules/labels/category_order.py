"""Categories whose order differs from that of the classes, or of their ids."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Optional, Tuple

from mmguard.findings.class_edits import set_classes
from mmguard.findings.edits import SAFE, Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.file_edits import rewrite
from mmguard.findings.finding import LIKELY, POSSIBLE, PROVEN, WARNING
from mmguard.findings.rule import AnnotationRule, Example, Facts
from mmguard.findings.views import annotations_of, class_lists, has_config, is_trained_on, listing
from mmguard.text import shorten


class OrderDiffers(AnnotationRule):
    """Config classes in a different order than the file's categories."""

    code = 'MG141'
    summary = 'The classes of the config are in a different order from the categories of the file.'
    title_texts = (
        'The file lists its category ids sorted as strings, {ids}: their places differ from their order as numbers.'
    )
    title_part = (
        'The file lists {number} of {num_classes} categories, and they are renumbered by their places in it: id {id} '
        'becomes label {label}. In a file with other categories, it becomes another label.'
    )
    why = (
        "mmdet's CocoDataset numbers categories in the order of the file, whatever the order of classes: the results "
        'are right, but carry the names of other classes. detectron2 and YOLOX number by id.'
    )
    example = Example(
        wrong="metainfo=dict(classes=('dog', 'cat')) for categories cat, dog",
        right="metainfo=dict(classes=('cat', 'dog'))",
    )
    limits = 'It compares names and order; it does not know which order a checkpoint was trained with.'
    advice = (
        'List the same categories in the same order, that of the training, in all annotation files, and write the '
        'classes of the config in this order: `metainfo=dict(classes=(...))`. To sort a file: '
        '`data["categories"].sort(key=lambda one: int(one["id"]))`. If you train without mmdet, name the framework: '
        '`--framework NAME`.'
    )

    def offer(self, facts: Facts, labels: LabelFacts) -> Iterator[Edit]:
        displaced = self._find_displaced(labels)
        if displaced is None or facts.config is None:
            return
        _, names, ordered = displaced
        if any(is_trained_on(split.labels) for split in (facts, *facts.others) if split.labels is not None):
            yield set_classes(facts, ordered, SAFE)  # otherwise the training decides the order
        # Disagreeing files all get the order of the config.
        yield from rewrite(self, facts, 'List the categories in the order of the config.', SAFE, classes=names)

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        if self._find_displaced(facts):
            return PROVEN
        if is_part_of_a_list(facts):
            return LIKELY
        return POSSIBLE if annotations_of(facts).labelled_by == 'unknown' and _is_sorted_as_texts(facts) else None

    def severity_of(self, facts: LabelFacts) -> str:
        return self.severity if self._find_displaced(facts) else WARNING

    def choose_title(self, facts: LabelFacts) -> str:
        if self._find_displaced(facts):
            return self.summary
        return self.title_part if is_part_of_a_list(facts) else self.title_texts

    def describe(self, facts: LabelFacts) -> Dict[str, Any]:
        ids = list(annotations_of(facts).categories) or [0]
        return {'ids': listing(ids, 4), 'number': len(ids), 'id': ids[-1], 'label': len(ids) - 1}

    def evidence(self, facts: LabelFacts) -> str:
        displaced = self._find_displaced(facts)
        if displaced is None:
            return f'category ids in the file: {listing(list(annotations_of(facts).categories))}'
        path, names, ordered = displaced
        wrong = [
            f'label {i} is {shorten(b)} in the file, {shorten(a)} in {path}'
            for i, (a, b) in enumerate(zip(names, ordered))
        ]
        texts = '; the file lists its ids sorted as strings: 1, 10, 2' if _is_sorted_as_texts(facts) else ''
        return listing([text for text, a, b in zip(wrong, names, ordered) if a != b], 3) + texts

    def _find_displaced(self, facts: LabelFacts) -> Optional[Tuple[str, List[str], List[str]]]:
        """Return the path of the classes, the classes, and the same classes in file order."""
        found = annotations_of(facts)
        if found.names_from != 'categories' or not has_config(facts):
            return None
        known = [str(name) for name in annotations_of(facts).categories.values()]
        if annotations_of(facts).labelled_by == 'class list':
            return None
        lists = class_lists(facts)
        if facts.class_names:
            lists = {path: names for path, names in lists.items() if names == facts.class_names}
            lists = lists or {'metainfo.classes': facts.class_names}
        for path, names in lists.items():
            listed = set(names)
            ordered = [name for name in known if name in listed]
            if sorted(ordered) == sorted(names) and ordered != names:
                return path, names, ordered
            there, here = (
                zip(*((a, b) for _, a, b in found.renamed)) if len(found.sources) > 1 and found.renamed else ((), ())
            )
            if there and sorted(there) == sorted(here) and set(here) <= listed:
                other = dict(zip(here, there))  # one of the files that are trained together
                return path, names, [other.get(name, name) for name in names]
        return None


def is_part_of_a_list(facts: LabelFacts) -> bool:
    """True if the ids of a file, renumbered by its framework, are a subset of those counted by num_classes."""
    found = annotations_of(facts)
    ids = sorted(found.categories)
    if (
        found.names_from != 'categories'
        or found.labelled_by != 'file order'
        or found.classes_counted
        or has_config(facts)
    ):
        return False
    is_own_list = any(ids == list(range(first, first + len(ids))) for first in (0, 1))
    return not is_own_list and len(ids) < facts.num_classes and 0 < max(ids, default=0) <= facts.num_classes


def _is_sorted_as_texts(facts: LabelFacts) -> bool:
    """True if the file sorts numbers as text: 1, 10, 2."""
    ids = list(annotations_of(facts).categories)
    return ids != sorted(ids) and ids == sorted(ids, key=str)
