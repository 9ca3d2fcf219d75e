from __future__ import annotations

from dataclasses import replace
from typing import Iterator, List

from mmguard.config.head_classes import classes_in
from mmguard.config.ignored import Ignored, find_ignored_labels, leading
from mmguard.config.read import ReadConfig
from mmguard.findings.edits import ASKS, SAFE, Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.finding import ERROR, LIKELY, POSSIBLE, WARNING, Finding
from mmguard.findings.rule import ConfigRule, Example, Facts
from mmguard.findings.usual_edits import propose, set_ignore_index


class IgnoredLabelsAgree(ConfigRule):
    """Parts of a config that ignore different labels."""

    code = 'MG208'
    aliases = ('MG114',)
    summary = 'Head, losses, metric and fill values do not ignore the same label.'
    title = '{value} is ignored here, but {first} in the head ({place}).'
    title_metric = 'The metric ignores {value}, but the head {first} ({place}).'
    title_reads = '{value} is taken for the ignored label, but the head ignores {first} ({place}).'
    title_fill = 'Pixels are filled with {value}, but the head ignores {first} ({place}): no class has that label.'
    title_fill_class = 'Pixels are filled with {value}, a class: the head ignores {first} ({place}).'
    why = (
        'What one part fills in to be ignored, another trains on: as a class, or, beyond the classes, until an index '
        'error or CUDA assert ends the run. A metric that ignores another label counts unlabelled pixels. In '
        "MMDetection it is the semantic head of panoptic models, whose default does not ignore the loader's 255."
    )
    example = Example(wrong='head: ignore_index=0; RandomCrop: seg_pad_val=255', right='head: ignore_index=255')
    limits = 'Fill values of transforms of your own are not known.'
    advice = (
        'Find out which label is unlabelled in the files (`mmguard scan CONFIG` counts them; 255 is usual), and write '
        'it as ignore_index in heads, losses and metric, and as the value that transforms fill in.'
    )

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        places = find_ignored_labels(config)
        first = leading(config, places)
        if first is None:  # ignore_index=None, for masked binary cross entropy; a detector without a semantic head
            return
        classes = classes_in(first.part)
        for place in places:
            if place.value == first.value or place is first:
                continue
            is_class = classes is not None and 0 <= place.value < classes
            titles = {'metric': self.title_metric, 'reads': self.title_reads, 'fill': self.title_fill}
            title = self.title_fill_class if place.role == 'fill' and is_class else titles.get(place.role, '')
            severe = place.role in ('loss', 'head') or (place.role == 'fill' and not is_class)
            value = f'{place.value}' if place.written else f'{place.value} (the default of {place.part.name})'
            words = dict(value=value, first=first.value, place=first.path)
            ways, severity = _one_label(config, place, first, is_class), ERROR if severe else WARNING
            yield self.report_at(place.path, place.value, words, title, severity, ways)

    def certainty_given(self, found: Finding, labels: LabelFacts) -> str:
        is_cause = found.severity == ERROR and (not labels.values or found.value in labels.values)
        return LIKELY if is_cause else POSSIBLE


def _one_label(config: ReadConfig, place: Ignored, first: Ignored, is_class: bool) -> List[Edit]:
    """Set the label of the head here, or the one from here everywhere."""
    filled = place.role in ('fill', 'reads')  # no label in a file changes its meaning
    asked = 'Is {} your void (unlabelled) value?'
    question = '' if filled else asked.format(first.value)
    here = propose('Write the ignored label of the head.', (place.path, first.value), question=question)
    there = set_ignore_index(Facts(config=config), place.value, ASKS, asked.format(place.value))
    if first.value < 0:  # no label is
        there = replace(there, applicability=SAFE, question='')
    if place.path == place.part.path:  # some know but one value
        return [there]
    classes = classes_in(first.part) or 0
    both = [here] if is_class or filled or place.value < 0 else [here, there]
    return [there] if first.value < classes and not is_class and place.value >= 0 else both
