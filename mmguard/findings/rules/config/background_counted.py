from __future__ import annotations

from typing import Iterator, Tuple

from mmguard.config.head_classes import Count, counts, data_counts, is_one_more, training_data
from mmguard.config.parts import Part, classes_path
from mmguard.config.read import ReadConfig
from mmguard.findings.class_edits import match_heads_and_list
from mmguard.findings.edits import Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.finding import POSSIBLE, PROVEN, Finding
from mmguard.findings.rule import ConfigRule, Example, Facts
from mmguard.findings.views import annotations_of


class BackgroundCounted(ConfigRule):
    """A detection head that counts the background."""

    code = 'MG202'
    blames_labels = True
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
        for count, expected, dataset in _one_more(config):
            words = dict(head=count.head.name, expected=expected, source=classes_path(dataset))
            yield self.report_at(count.path, count.value, words)

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        if facts.config is not None:
            wanted = {count.path: expected for count, expected, _ in _one_more(facts.config)}
            yield from match_heads_and_list(facts, wanted, finding.value, counted_one_more=True)

    def certainty_given(self, found: Finding, labels: LabelFacts) -> str:
        # The annotations know as many categories as the heads: then a name is missing in the list.
        known = annotations_of(labels)
        return POSSIBLE if known.left_out_names and len(known.categories) == found.value else PROVEN


def _one_more(config: ReadConfig) -> Iterator[Tuple[Count, int, Part]]:
    data = [(dataset, data_counts(dataset)) for dataset in training_data(config)]
    for count in counts(config) if config.framework == 'mmdet' else ():
        for dataset, numbers in data:
            expected = numbers.get('things', numbers.get('all'))
            if expected is not None and count.kind == 'all' and is_one_more(count, expected):
                yield count, expected, dataset
                break
