from __future__ import annotations

from typing import Dict, Iterator, Optional

from mmguard.findings.edits import ASKS, Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.finding import LIKELY, Finding
from mmguard.findings.rule import DataRule, Example, Facts
from mmguard.findings.views import annotations_of, has_config
from mmguard.text import quantity

#: Numbers of outputs that frameworks have by default.
DEFAULTS = (20, 21, 80, 81, 90, 91, 365, 1203)
#: Outputs beyond the labels, at the least: one more is the background or "no object".
ENOUGH, HALF = 2, 0.5


class OutputsNeverTrained(DataRule):
    """A model with many more outputs than the data have categories."""

    code = 'MG161'
    severity = 'warning'
    kinds = ('instances',)
    needs = ('annotations', 'histogram')
    summary = 'The model has many more outputs than the file has categories.'
    title = 'The file has {categories}, but the model {num_classes} outputs: {more} of them are never trained.'
    why = (
        'num_classes was left at what the framework, or the checkpoint, has. Nothing crashes; a classification loss '
        'over so many empty outputs learns badly, and detections carry names of another data set.'
    )
    example = Example(
        wrong='MODEL.ROI_HEADS.NUM_CLASSES left at 80, three categories',
        right='MODEL.ROI_HEADS.NUM_CLASSES = 3',
    )
    limits = 'Other files of the same training may hold the other categories: it sees the ones that it is given.'
    advice = (
        'Count the categories of all files of the training together ({needed} outputs for this file), and write that '
        'number where the model reads it: num_classes, in detectron2 MODEL.RETINANET.NUM_CLASSES for RetinaNet and '
        'MODEL.ROI_HEADS.NUM_CLASSES for R-CNN. A checkpoint may bring its own.'
    )

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        found, needed = annotations_of(facts), self._count_needed(facts)
        if found.names_from != 'categories' or found.classes_counted or has_config(facts) or not found.categories:
            return None
        enough = max(needed, max(found.categories) + 1) if found.labelled_by == 'unknown' else needed
        more = facts.num_classes - enough
        far = more >= needed * HALF or facts.num_classes in DEFAULTS
        return LIKELY if more >= ENOUGH and far and not facts.values else None

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        if facts.labels is not None:
            needed = self._count_needed(facts.labels)
            question = 'Are these all categories of the training?'
            yield Edit(
                'Set num_classes of the model.',
                ASKS,
                question,
                options=(('num_classes', needed),),
                lines=(f'num_classes={needed}',),
            )

    def describe(self, facts: LabelFacts) -> Dict[str, object]:
        needed = self._count_needed(facts)
        categories = quantity(len(annotations_of(facts).categories), 'category')
        return {'categories': categories, 'needed': needed, 'more': facts.num_classes - needed}

    def evidence(self, facts: LabelFacts) -> str:
        names = list(annotations_of(facts).categories.values())
        few = ', '.join(map(repr, names[:6])) + (', ...' if len(names) > 6 else '')
        return f'num_classes={facts.num_classes}; categories: {few}; labels to {max(facts.histogram)}'

    def _count_needed(self, facts: LabelFacts) -> int:
        found = annotations_of(facts)
        return max(found.categories, default=0) + 1 if found.labelled_by == 'category id' else len(found.categories)
