from __future__ import annotations

from mmguard.findings.facts import LabelFacts
from mmguard.findings.rules.labels.yolo.base import YoloRule, yolo_of
from mmguard.findings.views import share
from mmguard.findings.yolo import NO_IMAGE, NO_LABEL

#: Of COCO's own images 1 % have no object.
MANY = 0.5


class ImagesWithoutLabelFile(YoloRule):
    """Images that are trained as background, for they have no label file."""

    code = 'MG169'
    fault = NO_LABEL
    severity = 'info'
    blames_labels = False
    certainty = 0.3
    summary = 'Images have no label file: they are trained as background.'
    why = 'So they should be where nothing is in them. What a missing label file was to label is learnt as background.'
    advice = (
        'Look at a few of them. Is something in them that ought to be found, label it; an empty label file '
        'says that nothing is: `touch labels/7.txt`.'
    )

    def severity_of(self, facts: LabelFacts) -> str:
        found = yolo_of(facts)
        amiss = found.counts.get(NO_IMAGE, 0) or share(self.count(facts), found.images) >= MANY
        return 'warning' if amiss else self.severity

    def evidence(self, facts: LabelFacts) -> str:
        return f'{self.count(facts):,} of {yolo_of(facts).images:,} images'
