from __future__ import annotations

from dataclasses import replace
from typing import Any, Iterator, Mapping, Optional

from mmguard.findings.edits import ASKS, SAFE, Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.finding import LIKELY, PROVEN, Finding
from mmguard.findings.rule import DataRule, Facts
from mmguard.findings.usual_edits import set_num_classes
from mmguard.labels.numbering import IDS, POSITIONS, titles


class MoreClassesThanHead(DataRule):
    """Data sets number the names in their class list, whatever the head."""

    code = 'MG108'
    kinds = ('pixels', 'instances')
    summary = 'The data set lists {classes} classes, the head knows {num_classes}. Too many for it: {extra}.'
    why = (
        "mmdet's data sets number the names in their class list. The first label that the head does not know is "
        'trained as background, in silence.'
    )
    advice = (
        "Either write `num_classes={classes}` in every head and guard, or list only the head's classes, in its order, "
        'in the dataset: `metainfo=dict(classes=(...))`; annotations of other classes are then left out. Without a '
        'guard label {num_classes} is trained as background in silence.'
    )
    images = (
        'Write `num_classes={classes}` in the head, the guards and the data preprocessor. Folders are numbered in the '
        'order of their names: one folder more shifts the labels of all behind it.'
    )
    pixels = (
        "Either write `num_classes={classes}` in every head and guard, or list only the head's classes in the dataset: "
        '`metainfo=dict(classes=(...))`; the pixels of other classes are then ignored.'
    )

    otherwise = (
        'Compare the class list with what each head counts, and look which of the two the files are numbered by.'
    )

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        labels = facts.labels
        if labels is None:
            return
        listed = len(labels.class_names)
        if labels.annotations is not None and labels.annotations.labelled_by == 'unknown':
            yield from _by_numbering(facts, labels.annotations.categories, listed)
            return
        sure = labels.kind == 'instances' or max(labels.values) == listed - 1
        question = '' if sure else 'Are the files numbered by this list?'
        yield set_num_classes(facts, listed, SAFE if sure else ASKS, question)

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        listed = len(facts.class_names)
        if not facts.num_classes <= min(facts.values) <= max(facts.values) < listed:
            return None
        if facts.kind == 'instances':
            return PROVEN
        # A list of names is no proof that the files are numbered by it.
        return PROVEN if max(facts.values) == listed - 1 else LIKELY

    def advise(self, facts: LabelFacts) -> str:
        if facts.of_images:
            return self.images
        return self.advice if facts.kind == 'instances' else self.pixels


def _by_numbering(facts: Facts, categories: Mapping[Any, str], listed: int) -> Iterator[Edit]:
    """A way for who renumbers the categories, and one for who takes their ids as labels: each has its own number."""
    enough = max(categories, default=0) + 1
    ways = [(listed, POSITIONS, f'Does what you train with renumber the categories ({titles(POSITIONS)})?')]
    if enough != listed and enough < 1000:
        ways.append((enough, IDS, f'Does it take category_id as the label ({titles(IDS)})?'))
    for number, numbering, question in ways:
        options = (('num_classes', number), ('labels', numbering))
        yield replace(set_num_classes(facts, number, ASKS, question), options=options)
