"""Ignored labels: disagreements, ignored classes, and losses that train on ignored labels."""

from __future__ import annotations

from dataclasses import replace
from typing import Iterator, List

from mmguard.config.agreement import IgnoredLabel, count_classes, find_disagreeing_labels, find_ignored_labels
from mmguard.config.parts import find_datasets
from mmguard.config.read import ReadConfig
from mmguard.facts.config import find_label_map
from mmguard.facts.labels import LabelFacts
from mmguard.findings.class_edits import drop_first_class
from mmguard.findings.edits import Edit
from mmguard.findings.finding import ERROR, LIKELY, POSSIBLE, WARNING, Finding
from mmguard.findings.rule import ConfigRule, Example, Facts
from mmguard.findings.usual_edits import propose, set_ignore_index
from mmguard.findings.views import has_num_classes
from mmguard.labels.spaces import VOID
from mmguard.language import Message
from mmguard.text import quantity


class IgnoredLabelsAgree(ConfigRule):
    """Parts of a config that ignore different labels."""

    code = 'MG208'
    about_labels = True
    aliases = ('MG114',)
    summary = 'Head, losses, metric and fill values do not ignore the same label.'
    title = '{value} is ignored here, but {first} in the head ({place}).'
    title_head = 'The head ignores label {value}, but the guard and all other parts ignore {first} ({place}).'
    title_metric = 'The metric ignores label {value}, but the head ignores label {first} ({place}).'
    title_reads = '{value} is taken for the ignored label, but the head ignores {first} ({place}).'
    title_fill = (
        'Pixels are filled with {value}, which is neither a class nor the label that the head ignores ({first}, '
        '{place}).'
    )
    title_fill_class = 'Pixels are filled with {value}, which is a class: the head ignores {first} ({place}).'
    why = (
        'A label that one part fills in for ignored pixels is a class for another part, or is beyond the classes: an '
        'index error or CUDA assert ends the run. A metric that ignores another label counts unlabeled pixels.'
    )
    example = Example(wrong='head: ignore_index=0; RandomCrop: seg_pad_val=255', right='head: ignore_index=255')
    limits = 'Fill values of transforms of your own are not known.'
    advice = (
        'Find out which value means unlabeled in the files (`mmguard scan CONFIG` counts them; 255 is usual). Write '
        'it as ignore_index in heads, losses and metric, and as the fill value of the transforms.'
    )

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        dropped = any(_find_dropped(config))  # MG380 says it
        for place, first in () if dropped else find_disagreeing_labels(config):
            classes = count_classes(first.part if first.role == 'head' else place.part)
            is_class = classes is not None and 0 <= place.value < classes
            titles = {'metric': self.title_metric, 'reads': self.title_reads, 'fill': self.title_fill}
            titles.update({} if first.role == 'head' else {'head': self.title_head})
            title = self.title_fill_class if place.role == 'fill' and is_class else titles.get(place.role, '')
            severe = place.role in ('loss', 'head') or (place.role == 'fill' and not is_class)
            value = (
                f'{place.value}'
                if place.written
                else Message('{value} (the default of {name})', value=place.value, name=place.part.name)
            )
            words = dict(value=value, first=first.value, place=first.path)
            ways, severity = _unify_labels(config, place, first, classes or 0), ERROR if severe else WARNING
            yield self.report_at(place.path, place.value, words, title, severity, ways)

    def certainty_given(self, finding: Finding, labels: LabelFacts) -> str:
        is_cause = finding.severity == ERROR and (not labels.values or finding.value in labels.values)
        return LIKELY if is_cause else POSSIBLE


def _unify_labels(config: ReadConfig, place: IgnoredLabel, first: IgnoredLabel, classes: int) -> List[Edit]:
    """Return an edit that sets the leading ignored label here, and one that sets this label everywhere."""
    is_class = 0 <= place.value < classes
    filled = place.role in ('fill', 'reads')  # no label in a file changes its meaning
    asked = 'Is {value} your void (unlabeled) value?'
    question = '' if filled else Message(asked, value=first.value)
    title = 'Write the ignored label of the head.' if first.role == 'head' else 'Write the ignored label of the guard.'
    here = propose(title, (place.path, first.value), question=question)
    there = set_ignore_index(Facts(config=config), place.value, Message(asked, value=place.value))
    if first.value < 0:  # no label is
        there = replace(there, question='')
    both = [here] if is_class or filled or place.value < 0 else [here, there]
    return [there] if first.value < classes and not is_class and place.value >= 0 else both


class DroppedNotIgnored(ConfigRule):
    """Classes that a data set of mmseg leaves out, where a label other than 255 is ignored."""

    code = 'MG380'
    about_labels = True
    summary = 'mmseg loads the classes that metainfo.classes leaves out as 255, but another label is ignored.'
    title = 'The classes that metainfo.classes leaves out are loaded as 255, but {value} is ignored here.'
    why = (
        'A data set that names some classes of its METAINFO maps the others to 255 (0.x: to -1, which is 255 in 8 '
        'bits), whatever is ignored elsewhere: these pixels are out of range, and the run ends with an index error.'
    )
    example = Example(wrong="metainfo=dict(classes=('road', 'car')), ignore_index=100", right='ignore_index=255')
    limits = 'It knows label maps that a data set class makes, not those of your own transforms.'
    advice = 'Write ignore_index=255 in the heads, the losses and the metric.'

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        for place in _find_dropped(config):
            edit = set_ignore_index(Facts(config=config), VOID)
            yield self.report_at(place.path, place.value, {'value': place.value}, edits=[edit])


def _find_dropped(config: ReadConfig) -> Iterator[IgnoredLabel]:
    """Yield heads and losses that do not ignore the 255 of classes that a training set leaves out."""
    sets = (one for one in find_datasets(config) if one.split == 'train')
    if any(VOID in find_label_map(one).values() for one in sets):
        yield from (one for one in find_ignored_labels(config) if one.role in ('head', 'loss') and one.value != VOID)


class IgnoredClass(ConfigRule):
    """An ignore_index that is one of the classes."""

    code = 'MG209'
    follows = ('MG208',)
    about_labels = True
    looks_at = ('config', 'labels')
    aliases = ('MG113',)
    summary = 'ignore_index is a valid class.'
    title = 'ignore_index={ignored} is one of the {classes}: 0 to {last}.'
    why = (
        'Ignoring removes the pixels of a class, not its channel: nothing ever teaches the model that class, yet its '
        'score stays in every softmax, and at test time it may be predicted anywhere.'
    )
    example = Example(wrong='num_classes=3, ignore_index=0', right='num_classes=3, ignore_index=255')
    limits = 'It cannot tell whether the class is ignored on purpose: its edits ask.'
    advice = (
        'If the class should be trained, ignore a label outside the classes (255). If it means unlabeled, remove it '
        'from num_classes and from the class list.'
    )
    severity = WARNING

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        places = find_ignored_labels(config)
        for place in places:
            classes = count_classes(place.part if place.role == 'head' else place.part.owner)
            if place.role in ('head', 'loss') and classes is not None and 0 <= place.value < classes:
                # Pixels with the value that these parts fill in or ignore are then trained, or are out of range.
                others = [one for one in places if one.value != place.value and one.role in ('head', 'loss', 'fill')]
                yield self._report_class(place.path, place.value, classes, ERROR if others else WARNING)

    def _report_class(self, path: str, ignored: int, classes: int, severity: str = WARNING) -> Finding:
        words = dict(ignored=ignored, classes=quantity(classes, 'class'), last=classes - 1)
        return self.report_at(path, ignored, words, severity=severity)

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        ignored = finding.value
        yield set_ignore_index(facts, 255, Message('Should class {ignored} be trained?', ignored=ignored))
        question = 'Is 0 your void (unlabeled) value?'
        if ignored == 0 and facts.config is not None:
            found = drop_first_class(facts.config, question)
            if found is not None:
                yield found
        elif ignored == 0 and facts.labels is not None:
            classes = facts.labels.num_classes - 1
            said = (('reduce_zero_label', True), ('ignore_index', 255), ('num_classes', classes))
            lines = tuple(f'{name}={value}' for name, value in said)
            yield Edit('Ignore the label 0, and remove it from the classes.', question, options=said, lines=lines)

    def find(self, facts: Facts) -> Iterator[Finding]:
        yield from super().find(facts)
        labels = facts.labels
        if facts.config is None and labels is not None and labels.kind == 'pixels' and has_num_classes(labels):
            ignored = labels.ignore_index
            if ignored is not None and 0 <= ignored < labels.num_classes:
                found = self._report_class('ignore_index', ignored, labels.num_classes)
                yield replace(found, certainty=self.certainty_given(found, labels))

    def certainty_given(self, finding: Finding, labels: LabelFacts) -> str:
        return POSSIBLE if labels.values else LIKELY
