from __future__ import annotations

from mmguard.findings.facts import LabelFacts
from mmguard.findings.finding import POSSIBLE
from mmguard.findings.rule import Example
from mmguard.findings.rules.labels.yolo.base import YoloRule, yolo_of
from mmguard.findings.views import share
from mmguard.findings.yolo import NO_IMAGE, NO_LABEL
from mmguard.text import quantity

#: Of COCO's own images 1 % have no object.
MANY = 0.5


class ImagesWithoutLabelFile(YoloRule):
    """Images that are trained as background, for they have no label file."""

    code = 'MG169'
    aliases = ('MG167',)
    fault = NO_LABEL
    severity = 'info'
    usual_certainty = POSSIBLE
    summary = 'Images have no label file: they are trained as background.'
    why = 'That is right if nothing is in them. Objects of a missing label file are learnt as background.'
    example = Example(wrong='images/train/7.jpg without labels/train/7.txt', right='labels/train/7.txt, perhaps empty')
    limits = 'Whether an image shows an object is not looked at.'
    advice = (
        'Look at a few of them. If an object is in them, label it; if not, an empty label file says so: `touch '
        'labels/7.txt`. If label files have no image, rename them: names agree letter by letter (case, leading zeros, '
        '.jpg.txt), in folders that differ only in `images` and `labels`: images/train/a.jpg, labels/train/a.txt.'
    )

    def severity_of(self, facts: LabelFacts) -> str:
        found = yolo_of(facts)
        if found.counts.get(NO_IMAGE) and self.count(facts) == found.images:
            return 'error'
        amiss = found.counts.get(NO_IMAGE, 0) or share(self.count(facts), found.images) >= MANY
        return 'warning' if amiss else self.severity

    def evidence(self, facts: LabelFacts) -> str:
        found = yolo_of(facts)
        unpaired = found.counts.get(NO_IMAGE, 0)
        names = ', '.join(found.faults.get(NO_IMAGE, [])[:3])
        others = f'; {quantity(unpaired, "label file")} without an image, e.g. {names}' if unpaired else ''
        return f'{self.count(facts):,} of {found.images:,} images{others}'
