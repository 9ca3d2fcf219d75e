from __future__ import annotations

from mmguard.findings.facts import LabelFacts
from mmguard.findings.rule import Example
from mmguard.findings.rules.labels.yolo.base import YoloRule
from mmguard.findings.yolo import DECLARED


class DataYaml(YoloRule):
    """A data.yaml that ultralytics does not take."""

    code = 'MG168'
    fault = DECLARED
    summary = 'The data.yaml is not as ultralytics reads it.'
    why = 'It stops before the first image, or counts other classes than the labels have.'
    example = Example(wrong='nc: 3, names: [cat, dog]', right='names: {0: cat, 1: dog}')
    limits = 'It judges only what the file says, not what is in its folders.'
    advice = (
        'Write `names` as a table from 0 on (0: cat, 1: dog), without `nc`, and name `train` and `val`. For keypoints '
        'write `kpt_shape: [17, 3]`, and in `flip_idx` every keypoint once.'
    )

    def evidence(self, facts: LabelFacts) -> str:
        return '; '.join(self.files(facts)[:3])
