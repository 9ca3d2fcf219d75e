from __future__ import annotations

from typing import Iterator

from mmguard.config.guards import find_unguarded_evaluation
from mmguard.config.read import ReadConfig
from mmguard.findings.finding import WARNING, Finding
from mmguard.findings.rule import ConfigRule, Example
from mmguard.findings.usual_edits import guard_pipelines


class UnguardedEvaluation(ConfigRule):
    """Labels that training leaves out and the metric counts against the model (F10)."""

    code = 'MG230'
    summary = 'Training is guarded, and the labels that the model is judged by are not.'
    title = '{metric} counts what is predicted at an invalid label as wrong.'
    why = (
        'Metrics take every label for the truth: no model can predict an invalid one, so whatever '
        'it predicts there counts as a false positive, and IoU and AP fall without a word.'
    )
    example = Example(
        wrong="train: [..., dict(type='GuardSegLabels', num_classes=19)]; val without it",
        right="train and val: [..., dict(type='GuardSegLabels', num_classes=19)]",
    )
    limits = 'Metrics that open annotation files of their own cannot be guarded, and are not looked at.'
    advice = 'Put the guard of the training pipeline into the pipelines of val and test, too.'
    severity = WARNING

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        for found in find_unguarded_evaluation(config):
            place, names = found.dataset.at('pipeline'), [transform.name for transform in found.pipeline]
            ways = [guard_pipelines(config, [found.pipeline], found.guard)]
            yield self.report_at(place, names, dict(metric=found.metric.name), edits=ways)
