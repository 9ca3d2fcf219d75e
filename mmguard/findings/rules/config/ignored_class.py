from __future__ import annotations

from dataclasses import replace
from typing import Iterator

from mmguard.config.head_classes import classes_in
from mmguard.config.ignored import find_ignored_labels
from mmguard.config.read import ReadConfig
from mmguard.findings.class_edits import drop_first_class
from mmguard.findings.edits import ASKS, Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.finding import ERROR, LIKELY, POSSIBLE, WARNING, Finding
from mmguard.findings.rule import ConfigRule, Example, Facts
from mmguard.findings.usual_edits import set_ignore_index
from mmguard.findings.views import knows_classes
from mmguard.text import quantity


class IgnoredClass(ConfigRule):
    """An ignore_index that is one of the classes."""

    code = 'MG209'
    looks_at = ('config', 'labels')
    aliases = ('MG113',)
    summary = 'ignore_index is a valid class.'
    title = 'ignore_index={ignored} is one of the {classes}: 0 to {last}.'
    why = (
        'Ignoring removes the pixels of a class, not its channel: nothing ever teaches the model that class, yet its '
        'score stays in every softmax, and at test time it may be predicted anywhere.'
    )
    example = Example(wrong='num_classes=3, ignore_index=0', right='num_classes=3, ignore_index=255')
    limits = 'It cannot tell whether the class is ignored on purpose: that is the question of its edits.'
    advice = (
        'If the class is to be trained, ignore a label outside the classes (255). If it is what is unlabelled, take it '
        'out of num_classes and of the class list.'
    )
    severity = WARNING

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        places = find_ignored_labels(config)
        for place in places:
            classes = classes_in(place.part if place.role == 'head' else place.part.owner)
            if place.role in ('head', 'loss') and classes is not None and 0 <= place.value < classes:
                # What others fill in or ignore is then a class, or beyond the classes.
                others = [one for one in places if one.value != place.value and one.role in ('head', 'loss', 'fill')]
                yield self._inside(place.path, place.value, classes, ERROR if others else WARNING)

    def _inside(self, path: str, ignored: int, classes: int, severity: str = WARNING) -> Finding:
        words = dict(ignored=ignored, classes=quantity(classes, 'class'), last=classes - 1)
        return self.report_at(path, ignored, words, severity=severity)

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        ignored = finding.value
        yield set_ignore_index(facts, 255, ASKS, f'Shall class {ignored} be trained?')
        question = 'Is 0 your void (unlabelled) value?'
        if ignored == 0 and facts.config is not None:
            found = drop_first_class(facts.config, question)
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
                found = self._inside('ignore_index', ignored, labels.num_classes)
                yield replace(found, certainty=self.certainty_given(found, labels))

    def certainty_given(self, found: Finding, labels: LabelFacts) -> str:
        return POSSIBLE if labels.values else LIKELY
