from __future__ import annotations

from dataclasses import replace
from typing import Iterator, Sequence

from mmguard.findings.facts import LabelFacts
from mmguard.findings.finding import Finding
from mmguard.findings.rule import Example, Facts
from mmguard.findings.rules.labels.yolo.base import YoloRule, yolo_of
from mmguard.findings.yolo import DECLARED, NO_LABEL
from mmguard.text import quantity


class DataYaml(YoloRule):
    """A data.yaml that ultralytics does not take, or that leads it to folders without labels."""

    code = 'MG168'
    fault = DECLARED
    summary = 'The data.yaml is not as ultralytics reads it.'
    title_elsewhere = 'The label files are in other folders than those in which ultralytics looks for them.'
    why = 'It stops before the first image, counts other classes than the labels have, or trains without labels.'
    example = Example(wrong='nc: 3, names: [cat, dog]', right='names: {0: cat, 1: dog}')
    limits = 'It judges only what the file says, and the folders next to those that it names.'
    advice = (
        'Label files belong in the folder of the images with its last `images` replaced by `labels` '
        '(data/images/a.jpg, data/labels/a.txt), or next to the images where no folder is called `images`: rename the '
        'folder, or move the files. In the data.yaml name `train` and `val`, write `names` as a table from 0 on (0: '
        'cat, 1: dog), without `nc`, and for keypoints `kpt_shape: [17, 3]`, with every keypoint once in `flip_idx`; '
        'other keys are not read.'
    )

    def count(self, facts: LabelFacts) -> int:
        return super().count(facts) + len(yolo_of(facts).elsewhere)

    def choose_title(self, facts: LabelFacts) -> str:
        return self.summary if super().count(facts) else self.title_elsewhere

    def find(self, facts: Facts) -> Iterator[Finding]:
        elsewhere = yolo_of(facts.labels).elsewhere if facts.labels is not None else ()
        for found in super().find(facts):
            yield replace(found, places=tuple(elsewhere))

    def find_superseded(self, facts: LabelFacts) -> Sequence[str]:
        found = yolo_of(facts)
        moved = sum(number for _, _, number in found.elsewhere.values())
        return ('MG169', 'MG174') if moved and moved == found.counts.get(NO_LABEL) else ()

    def evidence(self, facts: LabelFacts) -> str:
        texts = [
            f'{quantity(number, "label file")} of {folder} in {place}, it looks in {expected}'
            for folder, (expected, place, number) in yolo_of(facts).elsewhere.items()
        ]
        return '; '.join([*self.files(facts), *texts][:3])
