from __future__ import annotations

from typing import Iterator, Tuple

from mmguard.config.head_classes import Count, counts, data_counts, is_one_more, training_data
from mmguard.config.parts import Part, classes_path
from mmguard.config.read import ReadConfig
from mmguard.findings.edits import Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.finding import POSSIBLE, PROVEN, Finding
from mmguard.findings.rule import ConfigRule, Facts
from mmguard.findings.usual_edits import heads_or_list
from mmguard.findings.views import annotations_of


class BackgroundCounted(ConfigRule):
    """MMDetection 1.x counted the background."""

    code = 'MG202'
    blames_labels = True
    aliases = ('MG142',)
    summary = 'num_classes of a detection head counts the background.'
    why = (
        'MMDetection 1.x counted the background as class 0. Since 2.0 it is not counted and labels start at 0: with '
        'one class too many nothing crashes, but results are shifted by a class or a class never occurs.'
    )
    advice = 'Write the number of object classes.'

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        for count, expected, dataset in _one_more(config):
            yield self.at(
                count.path,
                count.value,
                f'{count.head.name} has one class more than the data set, which has {expected}: '
                f'{classes_path(dataset)}. The background is not counted since MMDetection 2.0.',
                f'Write num_classes={expected}; class 0 is the first object class.',
            )

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        if facts.config is not None:
            wanted = {count.path: expected for count, expected, _ in _one_more(facts.config)}
            yield from heads_or_list(facts, wanted, finding.value, counted_one_more=True)

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
