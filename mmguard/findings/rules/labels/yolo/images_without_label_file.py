from __future__ import annotations

from mmguard.findings.facts import LabelFacts
from mmguard.findings.finding import POSSIBLE
from mmguard.findings.rules.labels.yolo.base import YoloRule, yolo_of
from mmguard.findings.views import share
from mmguard.findings.yolo import NO_IMAGE, NO_LABEL
from mmguard.text.words import counted

#: Of COCO's own images 1 % have no object.
MANY = 0.5


class ImagesWithoutLabelFile(YoloRule):
    """Images that are trained as background, for they have no label file."""

    code = 'MG169'
    aliases = ('MG167',)
    fault = NO_LABEL
    severity = 'info'
    blames_labels = False
    usual_certainty = POSSIBLE
    summary = 'Images have no label file: they are trained as background.'
    why = 'So they should be where nothing is in them. What a missing label file was to label is learnt as background.'
    advice = (
        'Look at a few of them. Is something in them that ought to be found, label it; an empty label file '
        'says that nothing is: `touch labels/7.txt`.'
    )
    unpaired = (
        'Names must agree letter by letter (case, leading zeros, .jpg.txt), in folders that differ only in `images` '
        'and `labels`: images/train/a.jpg, labels/train/a.txt. Rename the label files that have no image.'
    )

    def severity_of(self, facts: LabelFacts) -> str:
        found = yolo_of(facts)
        if found.counts.get(NO_IMAGE) and self.count(facts) == found.images:
            return 'error'
        amiss = found.counts.get(NO_IMAGE, 0) or share(self.count(facts), found.images) >= MANY
        return 'warning' if amiss else self.severity

    def advise(self, facts: LabelFacts) -> str:
        return self.unpaired if yolo_of(facts).counts.get(NO_IMAGE) else self.advice

    def evidence(self, facts: LabelFacts) -> str:
        found = yolo_of(facts)
        alone = found.counts.get(NO_IMAGE, 0)
        names = ', '.join(found.faults.get(NO_IMAGE, [])[:3])
        others = f'; {counted(alone, "label file")} without an image, e.g. {names}' if alone else ''
        return f'{self.count(facts):,} of {found.images:,} images{others}'
