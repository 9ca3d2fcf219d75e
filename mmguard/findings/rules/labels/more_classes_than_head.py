from __future__ import annotations

from dataclasses import replace
from typing import Any, Iterator, Mapping, Optional

from mmguard.findings.edits import ASKS, SAFE, Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.finding import LIKELY, PROVEN, Finding
from mmguard.findings.rule import DataRule, Example, Facts
from mmguard.findings.usual_edits import set_num_classes
from mmguard.labels.numbering import IDS, POSITIONS, framework_titles


class MoreClassesThanHead(DataRule):
    """Data sets number the names in their class list, whatever the head."""

    code = 'MG108'
    kinds = ('pixels', 'instances')
    summary = 'The data set lists more classes than the head has.'
    title = 'The data set lists {classes} classes, but the head has {num_classes}. Too many for it: {extra}.'
    why = (
        'Data sets number the names in their class list. In mmdet the first label that the head does not know is '
        'trained as background, silently; in mmseg it ends the run.'
    )
    example = Example(
        wrong="num_classes=2 in the head, metainfo=dict(classes=('cat', 'dog', 'cow')) in the data set",
        right='num_classes=3 in the head',
    )
    limits = 'It does not know which of the two is meant, nor whether label maps are numbered by this list.'
    advice = (
        'If all {classes} are to be learnt, write `num_classes={classes}` in every head and guard. If not, list only '
        "the head's classes, in its order: `metainfo=dict(classes=(...))`; labels of other classes are left out or "
        'ignored then. If label maps are numbered by another list, write that one. Where folders are the classes, move '
        'those out that are not.'
    )

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        labels = facts.labels
        if labels is None:
            return
        listed = len(labels.class_names)
        if labels.annotations is not None and labels.annotations.labelled_by == 'unknown':
            yield from _count_by_numbering(facts, labels.annotations.categories, listed)
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
        # A list of names does not prove that the files are numbered by it.
        return PROVEN if max(facts.values) == listed - 1 else LIKELY


def _count_by_numbering(facts: Facts, categories: Mapping[Any, str], listed: int) -> Iterator[Edit]:
    """Yield an edit for programs that renumber the categories, and one for those that take their ids as labels."""
    enough = max(categories, default=0) + 1
    ways = [(listed, POSITIONS, f'Does what you train with renumber the categories ({framework_titles(POSITIONS)})?')]
    if enough != listed and enough < 1000:
        ways.append((enough, IDS, f'Does it take category_id as the label ({framework_titles(IDS)})?'))
    for number, numbering, question in ways:
        options = (('num_classes', number), ('labels', numbering))
        yield replace(set_num_classes(facts, number, ASKS, question), options=options)
