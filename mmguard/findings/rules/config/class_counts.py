"""Heads whose number of classes differs from the data set's."""

from __future__ import annotations

from typing import Iterator, Tuple

from mmguard.config.agreement import (
    Count,
    count_data_classes,
    find_class_counts,
    find_mismatched_counts,
    find_training_datasets,
)
from mmguard.config.parts import Part, get_classes_path
from mmguard.config.read import ReadConfig
from mmguard.facts.labels import LabelFacts
from mmguard.findings.class_edits import match_heads_and_list
from mmguard.findings.edits import Edit
from mmguard.findings.finding import POSSIBLE, PROVEN, Finding
from mmguard.findings.rule import ConfigRule, Example, Facts
from mmguard.findings.views import get_annotations
from mmguard.text import quantity

#: Kind of classes that a head counts -> text.
NOUNS = {'all': ('class', None), 'things': ('thing', None), 'stuff': ('kind of stuff', 'kinds of stuff')}


class HeadNumClasses(ConfigRule):
    """A head whose number of classes differs from the data set's."""

    code = 'MG201'
    about_labels = True
    aliases = ('MG143',)
    summary = 'num_classes of a head is not the number of classes of the data set.'
    title = '{head} has {given}, but the data set has {expected}: {source}.'
    title_top = (
        '{head} has {given}, but the data set has {expected}: {source}. No head reads the num_classes at the top.'
    )
    why = (
        'A label beyond the channels of a head ends the run (CUDA error: device-side assert triggered), or is '
        'silently trained as background; surplus channels are never trained. Every head has its own num_classes: '
        'decode, auxiliary, bbox, mask, semantic, panoptic and fusion heads, and each stage of a cascade.'
    )
    example = Example(wrong='num_classes=19 in the head, for 11 classes', right='num_classes=11 in the head')
    limits = 'It compares the heads with the class list; `mmguard scan` compares the list with the files.'
    advice = (
        'Run `mmguard scan CONFIG` to see which classes the files contain. Write them as metainfo=dict(classes=...) '
        'in the data sets of all splits (inside of wrappers), and their number in every head and in its class_weight.'
    )

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        for count, expected, dataset in find_mismatched_counts(config):
            given = quantity(count.value, *NOUNS[count.kind])
            words = dict(head=count.head.name, given=given, expected=expected, source=get_classes_path(dataset))
            title = self.title_top if config.data.get('num_classes') == expected else self.title
            yield self.report_at(count.path, count.value, words, title)

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        if facts.config is not None:
            wanted = {count.path: expected for count, expected, _ in find_mismatched_counts(facts.config)}
            yield from match_heads_and_list(facts, wanted, finding.value)


class BackgroundCounted(ConfigRule):
    """A detection head that counts the background."""

    code = 'MG202'
    about_labels = True
    aliases = ('MG142',)
    summary = 'num_classes of a detection head counts the background.'
    title = (
        '{head} has one class more than the data set, which has {expected}: {source}. The background is not a class.'
    )
    why = (
        'MMDetection 1.x counted the background as class 0. Since 2.0 it is not counted and labels start at 0: with '
        'one class too many nothing crashes, but results are shifted by a class or a class never occurs.'
    )
    example = Example(wrong='num_classes=21 in the bbox_head, for 20 object classes', right='num_classes=20')
    limits = 'A name that is missing in the class list looks the same: `mmguard scan CONFIG` tells them apart.'
    advice = (
        'Compare the class list with the annotation files (`mmguard scan CONFIG`). If it names every object class, '
        'write its length as num_classes of the heads; if a name is missing, add it to metainfo.classes.'
    )

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        for count, expected, dataset in _find_one_more(config):
            words = dict(head=count.head.name, expected=expected, source=get_classes_path(dataset))
            yield self.report_at(count.path, count.value, words)

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        if facts.config is not None:
            wanted = {count.path: expected for count, expected, _ in _find_one_more(facts.config)}
            yield from match_heads_and_list(facts, wanted, finding.value, counted_one_more=True)

    def certainty_given(self, finding: Finding, labels: LabelFacts) -> str:
        # The annotations have as many categories as the heads: a name is missing in the list.
        known = get_annotations(labels)
        return POSSIBLE if known.left_out_names and len(known.categories) == finding.value else PROVEN


def _find_one_more(config: ReadConfig) -> Iterator[Tuple[Count, int, Part]]:
    data = [(dataset, count_data_classes(dataset)) for dataset in find_training_datasets(config)]
    for count in find_class_counts(config) if config.framework == 'mmdet' else ():
        for dataset, numbers in data:
            expected = numbers.get('things', numbers.get('all'))
            if expected is not None and count.kind == 'all' and count.value == expected + 1:
                yield count, expected, dataset
                break
