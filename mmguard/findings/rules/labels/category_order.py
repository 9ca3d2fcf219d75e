"""Categories whose order differs from that of the classes, or of their ids."""

from __future__ import annotations

from typing import Dict, Iterator, List, Optional, Tuple

from mmguard.facts.labels import LabelFacts
from mmguard.findings.class_edits import set_classes
from mmguard.findings.edits import Edit
from mmguard.findings.file_edits import rewrite
from mmguard.findings.finding import ERROR, LIKELY, POSSIBLE, PROVEN, WARNING, Finding
from mmguard.findings.rule import AnnotationRule, Example, Facts
from mmguard.findings.views import find_class_lists, get_annotations, has_config, is_trained_on, join_items
from mmguard.text import shorten


class OrderDiffers(AnnotationRule):
    """Config classes in a different order than the file's categories."""

    code = 'MG141'
    follows = ('MG161',)
    summary = 'The classes of the config are in a different order from the categories of the file.'
    title_texts = (
        'The file lists its category ids sorted as strings, {ids}: their places differ from their order as numbers.'
    )
    title_part = (
        'The file lists {number} of {num_classes} categories, and they are renumbered by their places in it: id {id} '
        'becomes label {label}. In a file with other categories, it becomes another label.'
    )
    title_joined = 'Files that are trained together list different categories: one label is several classes.'
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
        'List the same categories in the same order, that of the training, in all annotation files and in '
        '`metainfo=dict(classes=(...))`. If you train without mmdet, name the framework: `--framework NAME`.'
    )

    def look(self, facts: Facts, labels: LabelFacts) -> Iterator[Finding]:
        displaced, ids = self._find_displaced(labels), list(get_annotations(labels).categories)
        is_sorted_as_texts = ids != sorted(ids) and ids == sorted(ids, key=str)  # 1, 10, 2
        evidence = f'category ids in the file: {join_items(ids)}'
        if displaced is not None:
            path, names, ordered = displaced
            wrong = [
                f'label {i} is {shorten(b)} in the file, {shorten(a)} in {path}'
                for i, (a, b) in enumerate(zip(names, ordered))
                if a != b
            ]
            texts = '; the file lists its ids sorted as strings: 1, 10, 2' if is_sorted_as_texts else ''
            yield self.report_in(facts, PROVEN, join_items(wrong, 3) + texts)
        elif self._find_joined(labels):
            evidence, follow = join_items(self._find_joined(labels), 3), (*self.follows, 'MG135')
            yield self.report_in(facts, PROVEN, evidence, title=self.title_joined, follows=follow)
        elif is_part_of_a_list(labels):
            words = {'number': len(ids), 'id': ids[-1], 'label': len(ids) - 1}
            yield self.report_in(facts, LIKELY, evidence, words, self.title_part, WARNING)
        elif get_annotations(labels).labelled_by == 'unknown' and is_sorted_as_texts:
            yield self.report_in(facts, POSSIBLE, evidence, {'ids': join_items(ids, 4)}, self.title_texts, WARNING)

    def offer(self, facts: Facts, labels: LabelFacts) -> Iterator[Edit]:
        displaced = self._find_displaced(labels)
        if displaced is None and self._find_joined(labels):
            yield from rewrite(self, facts, 'List the classes of the config in every file.', classes=labels.class_names)
        if displaced is None or facts.config is None:
            return
        _, names, ordered = displaced
        if any(is_trained_on(split.labels) for split in (facts, *facts.others) if split.labels is not None):
            yield set_classes(facts, ordered)  # otherwise the training decides the order
        # Disagreeing files all get the order of the config.
        yield from rewrite(self, facts, 'List the categories in the order of the config.', classes=names)

    def _find_displaced(self, labels: LabelFacts) -> Optional[Tuple[str, List[str], List[str]]]:
        """Return path of the classes, the classes, and these in the file's order; ``None`` if the order is the same."""
        found = get_annotations(labels)
        if found.names_from != 'categories' or not has_config(labels) or found.labelled_by == 'class list':
            return None
        known = [str(name) for name in found.categories.values()]
        lists = find_class_lists(labels)
        if labels.class_names:
            lists = {path: names for path, names in lists.items() if names == labels.class_names}
            lists = lists or {'metainfo.classes': labels.class_names}
        for path, names in lists.items():
            listed = set(names)
            ordered = [name for name in known if name in listed]
            if sorted(ordered) == sorted(names) and ordered != names:
                return path, names, ordered
            there, here = (
                zip(*((a, b) for _, a, b in labels.coco.renamed))
                if len(found.sources) > 1 and labels.coco.renamed
                else ((), ())
            )
            if there and sorted(there) == sorted(here) and set(here) <= listed:
                other = dict(zip(here, there))  # one of the files that are trained together
                return path, names, [other.get(name, name) for name in names]
        return None

    def _find_joined(self, labels: LabelFacts) -> List[str]:
        """Name the labels that are another class in one of several files, which are numbered one by one."""
        found = get_annotations(labels)
        if len(found.sources) < 2 or (found.names_from, found.labelled_by) != ('categories', 'file order'):
            return []
        return [
            f'label {label} is {shorten(a)} in a file, {shorten(b)} in the list' for label, a, b in labels.coco.renamed
        ]


def is_part_of_a_list(labels: LabelFacts) -> bool:
    """True if the ids of a file, renumbered by its framework, are a subset of those counted by num_classes."""
    found = get_annotations(labels)
    ids = sorted(found.categories)
    if (
        found.names_from != 'categories'
        or found.labelled_by != 'file order'
        or found.classes_counted
        or has_config(labels)
    ):
        return False
    is_own_list = any(ids == list(range(first, first + len(ids))) for first in (0, 1))
    return not is_own_list and len(ids) < labels.num_classes and 0 < max(ids, default=0) <= labels.num_classes


class FilesDiffer(AnnotationRule):
    """Annotation files of one scan that number the same names differently."""

    code = 'MG158'
    kinds = ('instances',)
    summary = 'Two annotation files of one scan number the same names differently.'
    title = 'The same names have different labels in {other}: {which}.'
    why = 'A loader numbers each file on its own: a label is one class in training and another one in validation.'
    example = Example(wrong='train.json: 1 cat, 2 dog; val.json: 1 dog, 2 cat', right='both: 1 cat, 2 dog')
    limits = 'A loader that looks up names, as one with a class list of its own, is not affected.'
    advice = (
        'Give each name the same id and the same place in "categories" of all files, and their annotations with them. '
        'Renumber all splits in one go, not one of them.'
    )

    def look(self, facts: Facts, labels: LabelFacts) -> Iterator[Finding]:
        for other, categories in labels.coco.other_categories.items():
            yield from self._compare(facts, labels, other, categories)

    def _compare(self, facts: Facts, labels: LabelFacts, other: str, categories: Dict[int, str]) -> Iterator[Finding]:
        found = get_annotations(labels)
        both = (found.categories, categories)
        ids = _list_moved(*({name: number for number, name in one.items()} for one in both))
        places = _list_moved(*({name: at for at, name in enumerate(one.values())} for one in both))
        by = {'category id': [('id', ids)], 'file order': [('label', places)]}
        # RF-DETR looks up ids of train.
        labelled_by = 'category id' if labels.coco.framework == 'rf-detr' else found.labelled_by
        for word, moved in by.get(labelled_by, [('id', ids), ('label', places)]):
            if moved:
                which = join_items((f'{shorten(name)}: {word} {here}, there {there}' for name, here, there in moved), 3)
                is_sure = word == 'id' or found.labelled_by == 'file order'
                certainty, severity = (PROVEN, ERROR) if is_sure else (POSSIBLE, WARNING)
                words = {'other': other, 'which': which}
                yield self.report_in(facts, certainty, which, words, severity=severity, files=found.sources)
                return


def _list_moved(here: Dict[str, int], there: Dict[str, int]) -> List[Tuple[str, int, int]]:
    return [(name, here[name], there[name]) for name in here if there.get(name, here[name]) != here[name]]
