from __future__ import annotations

from dataclasses import replace
from typing import Iterator

from mmguard.config.head_classes import classes_in
from mmguard.config.ignored import ignored_labels
from mmguard.config.read import ReadConfig
from mmguard.findings.edits import ASKS, Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.finding import WARNING, Finding
from mmguard.findings.rule import ConfigRule, Facts
from mmguard.findings.usual_edits import set_ignore_index, without_first
from mmguard.findings.views import knows_classes
from mmguard.text.words import counted


class IgnoredClass(ConfigRule):
    """ignore_index that is one of the classes."""

    code = 'MG209'
    looks_at = ('config', 'labels')
    aliases = ('MG113',)
    summary = 'ignore_index is a valid class.'
    why = (
        'Ignoring removes the pixels of a class, not its channel: nothing ever teaches the model that class, yet its '
        'score stays in every softmax, and at test time it may be predicted anywhere.'
    )
    advice = 'Ignore a label outside the classes (255), or take the class out of num_classes and of the class list.'
    severity = WARNING

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        for place in ignored_labels(config):
            classes = classes_in(place.part if place.role == 'head' else place.part.owner)
            if place.role in ('head', 'loss') and classes is not None and 0 <= place.value < classes:
                yield self._inside(place.path, place.value, classes)

    def _inside(self, path: str, ignored: int, classes: int) -> Finding:
        return self.at(path, ignored, f'{ignored} is one of the {counted(classes, "class")}: 0 to {classes - 1}.')

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        ignored = finding.value
        yield set_ignore_index(facts, 255, ASKS, f'Shall class {ignored} be trained?')
        question = 'Is 0 what nobody labelled, and no class?'
        if ignored == 0 and facts.config is not None:
            found = without_first(facts.config, question)
            if found is not None:
                yield found
        elif ignored == 0 and facts.labels is not None:
            classes = facts.labels.num_classes - 1
            said = (('reduce_zero_label', True), ('ignore_index', 255), ('num_classes', classes))
            lines = tuple(f'{name}={value}' for name, value in said)
            yield Edit('Ignore the label 0, and take it out of the classes.', ASKS, question, options=said, lines=lines)

    def find(self, facts: Facts) -> Iterator[Finding]:
        yield from super().find(facts)
        labels = facts.labels
        if facts.config is None and labels is not None and labels.kind == 'pixels' and knows_classes(labels):
            ignored = labels.ignore_index
            if ignored is not None and 0 <= ignored < labels.num_classes:
                message = (
                    f'{ignored} is one of the {counted(labels.num_classes, "class")}: 0 to {labels.num_classes - 1}.'
                )
                found = self.at('ignore_index', ignored, message)
                yield replace(found, likelihood=self.weigh(found, labels))

    def weigh(self, found: Finding, labels: LabelFacts) -> float:
        return 0.4 if labels.values else 0.87
