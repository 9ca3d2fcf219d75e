from __future__ import annotations

from mmguard.findings.facts import LabelFacts
from mmguard.findings.rules.labels.yolo.base import YoloRule
from mmguard.findings.yolo import DECLARED


class DataYaml(YoloRule):
    """A data.yaml that ultralytics does not take."""

    code = 'MG168'
    fault = DECLARED
    summary = 'The data.yaml is not as ultralytics reads it.'
    why = 'It stops before the first image, or counts other classes than the labels have.'
    advice = (
        'Write `names` as a table from 0 on (0: cat, 1: dog), leave `nc` out, name `train` and `val`; of keypoints '
        '`kpt_shape: [17, 3]`, and in `flip_idx` every keypoint once.'
    )

    def evidence(self, facts: LabelFacts) -> str:
        return '; '.join(self.files(facts)[:3])
