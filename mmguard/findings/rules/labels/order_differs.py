from __future__ import annotations

import re
from typing import Dict, Iterator, List, Optional, Tuple

from mmguard.findings.edits import SAFE, Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.file_edits import rewrite
from mmguard.findings.finding import POSSIBLE, PROVEN, WARNING, Finding
from mmguard.findings.rule import DataRule, Facts
from mmguard.findings.usual_edits import set_classes
from mmguard.findings.views import annotations_of, class_lists, has_config, is_trained_on, listing
from mmguard.text.short import short


class OrderDiffers(DataRule):
    """The classes of the config in another order than the categories of the file."""

    code = 'MG141'
    shows_values = False
    kinds = ('pixels', 'instances')
    needs = ('annotations',)
    summary = 'The classes of the config stand in another order than the categories of the file.'
    why = (
        "mmdet's CocoDataset numbers categories in the order of the file, whatever the order of classes: the results "
        'are right, but carry the names of other classes.'
    )
    advice = 'Write them in the order of the file: `metainfo=dict(classes=({names},))`.'

    as_texts = (
        'The file lists its categories in the order of their ids as texts: {ids}. By their places (mmdet) they get '
        'other labels than by their numbers (detectron2, YOLOX).'
    )
    as_texts_advice = (
        'Say who trains, `--framework NAME`. For mmdet write metainfo.classes in the order of the file; or sort: '
        '`data["categories"].sort(key=lambda one: int(one["id"]))`, in every annotation file alike.'
    )
    otherwise = (
        'The annotation files list their categories in different orders, or not the same ones: `data["categories"]` is '
        'to be the same in all of them. Take that of the training, and write the class list of the config so.'
    )

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        displaced = None if facts.labels is None else self._displaced(facts.labels)
        if displaced is None or facts.config is None:
            return
        _, names, ordered = displaced
        if any(is_trained_on(split.labels) for split in (facts, *facts.others) if split.labels is not None):
            yield set_classes(facts, ordered, SAFE)  # else it is the training that says in which order
        # Files that disagree are all given the order of the config.
        yield from rewrite(self, facts, 'List the categories in the order of the config.', SAFE, classes=names)

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        if self._displaced(facts):
            return PROVEN
        return POSSIBLE if annotations_of(facts).labelled_by == 'unknown' and _sorted_as_texts(facts) else None

    def severity_of(self, facts: LabelFacts) -> str:
        return self.severity if self._displaced(facts) else WARNING

    def summarise(self, facts: LabelFacts) -> str:
        return self.summary if self._displaced(facts) else self.as_texts

    def advise(self, facts: LabelFacts) -> str:
        return self.advice if self._displaced(facts) else self.as_texts_advice

    def words(self, facts: LabelFacts) -> Dict[str, str]:
        displaced = self._displaced(facts)
        ids = listing(list(annotations_of(facts).categories), 4)
        return {'names': ', '.join(map(repr, displaced[2])) if displaced else '', 'ids': ids}

    def evidence(self, facts: LabelFacts) -> str:
        displaced = self._displaced(facts)
        if displaced is None:
            return f'category ids in the file: {listing(list(annotations_of(facts).categories))}'
        path, names, ordered = displaced
        wrong = [
            f'label {i} is {short(b)} in the file, {short(a)} in {path}' for i, (a, b) in enumerate(zip(names, ordered))
        ]
        texts = '; the file lists its ids as texts are sorted: 1, 10, 2' if _sorted_as_texts(facts) else ''
        if ordered == sorted(ordered) and _by_number(names):
            texts = '; the file lists its names as texts are sorted, the config by the numbers in them'
        return listing([text for text, a, b in zip(wrong, names, ordered) if a != b], 3) + texts

    def _displaced(self, facts: LabelFacts) -> Optional[Tuple[str, List[str], List[str]]]:
        """Path, classes there, the same in the order of the file."""
        found = annotations_of(facts)
        if found.format != 'coco' or not has_config(facts):
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


def _by_number(names: List[str]) -> bool:
    """Whether names that differ in a number stand in its order."""
    parts = [re.fullmatch(r'(.*?)(\d+)(.*)', name) for name in names]
    keys = [(part[1], int(part[2]), part[3]) for part in parts if part]
    return len(keys) == len(names) and keys == sorted(keys)


def _sorted_as_texts(facts: LabelFacts) -> bool:
    """Whether the file lists 1, 10, 2."""
    ids = list(annotations_of(facts).categories)
    return ids != sorted(ids) and ids == sorted(ids, key=str)
