from __future__ import annotations

from mmguard.findings.facts import LabelFacts
from mmguard.findings.rules.labels.yolo.base import YoloRule, yolo_of
from mmguard.findings.yolo import NO_IMAGE, NO_LABEL
from mmguard.text.words import counted


class LabelFilesWithoutImage(YoloRule):
    """Labels that nobody reads, for their image is not there."""

    code = 'MG167'
    fault = NO_IMAGE
    severity = 'warning'
    certainty = 0.7
    summary = 'Label files have no image of their name.'
    why = (
        'Training goes through the images: such a label file is never read. Where an image of nearly the same name has '
        'no label file, it is trained as if nothing were in it.'
    )
    advice = (
        'Names must agree letter by letter (case, leading zeros, .jpg.txt), in folders that differ in `images` and '
        '`labels` alone: images/train/a.jpg, labels/train/a.txt. Rename them, copy the images, or delete '
        'the label files.'
    )

    def severity_of(self, facts: LabelFacts) -> str:
        found = yolo_of(facts)
        return 'error' if found.images and found.counts.get(NO_LABEL, 0) == found.images else self.severity

    def evidence(self, facts: LabelFacts) -> str:
        lacking = yolo_of(facts).counts.get(NO_LABEL, 0)
        others = f'; {counted(lacking, "image")} without a label file' if lacking else ''
        return f'{self.count(facts):,} of {counted(facts.files, "label file")}{others}'
