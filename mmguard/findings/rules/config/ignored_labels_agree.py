from __future__ import annotations

from dataclasses import replace
from typing import Iterator, List

from mmguard.config.head_classes import classes_in
from mmguard.config.ignored import Ignored, ignored_labels, leading
from mmguard.config.read import ReadConfig
from mmguard.findings.edits import ASKS, SAFE, Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.finding import ERROR, LIKELY, POSSIBLE, WARNING, Finding
from mmguard.findings.rule import ConfigRule, Facts
from mmguard.findings.usual_edits import set_ignore_index


class IgnoredLabelsAgree(ConfigRule):
    """One label is ignored, and every part must know which."""

    code = 'MG208'
    aliases = ('MG114',)
    summary = 'Head, losses, metric and fill values do not ignore the same label.'
    why = (
        'What one part fills in to be ignored, another trains on: as a class, or, beyond the classes, until an index '
        'error or CUDA assert ends the run. A metric that ignores another label counts pixels that nobody labelled. In '
        "MMDetection it is the semantic head of panoptic models, whose default does not ignore the loader's 255."
    )
    advice = 'Write the same ignore_index everywhere, 255 unless there is a reason.'

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        places = ignored_labels(config)
        first = leading(config, places)
        if first is None:  # ignore_index=None, for masked binary cross entropy; a detector without a semantic head
            return
        classes = classes_in(first.part)
        for place in places:
            if place.value == first.value or place is first:
                continue
            of = f'the head ignores {first.value} ({first.path})'
            is_class = classes is not None and 0 <= place.value < classes
            if place.role == 'fill':
                becomes = f'class {place.value}' if is_class else 'a label that the head does not have'
                message = f'Fills pixels with {place.value}, but {of}: they are trained as {becomes}.'
            elif place.role == 'metric':
                message = f'Leaves {place.value} out of the evaluation, but {of}.'
            elif place.role == 'reads':
                message = f'Takes {place.value} for the ignored label, but {of}.'
            else:
                message = f'Ignores {place.value}, but {of}.'
            severe = place.role in ('loss', 'head') or (place.role == 'fill' and not is_class)
            key = place.path.rsplit('.', 1)[-1]
            default = '' if place.written else f' {place.value} is the default of {place.part.name}.'
            yield self.at(
                place.path,
                place.value,
                message + default,
                severity=ERROR if severe else WARNING,
                edits=_one_label(config, place, first, is_class, f'Write {key}={first.value}.'),
            )

    def certainty_given(self, found: Finding, labels: LabelFacts) -> str:
        is_cause = found.severity == ERROR and (not labels.values or found.value in labels.values)
        return LIKELY if is_cause else POSSIBLE


def _one_label(config: ReadConfig, place: Ignored, first: Ignored, is_class: bool, text: str) -> List[Edit]:
    """The label of the head here, or the one from here everywhere."""
    filled = place.role in ('fill', 'reads')  # no label in a file changes its meaning
    asked = f'Is {first.value} the label of what nobody labelled, and not {place.value}?'
    here = Edit(text, SAFE if filled else ASKS, '' if filled else asked, ((place.path, first.value),))
    asked = f'Is {place.value} the label of what nobody labelled, and not {first.value}?'
    there = set_ignore_index(Facts(config=config), place.value, ASKS, asked)
    if first.value < 0:  # no label is
        there = replace(there, applicability=SAFE, question='')
    if place.path == place.part.path:  # some know but one value
        return [there]
    classes = classes_in(first.part) or 0
    both = [here] if is_class or filled or place.value < 0 else [here, there]
    return [there] if first.value < classes and not is_class and place.value >= 0 else both
