from __future__ import annotations

from typing import Iterator

from mmguard.config.guards import unguarded_evaluation
from mmguard.config.read import ReadConfig
from mmguard.findings.finding import WARNING, Finding
from mmguard.findings.rule import ConfigRule
from mmguard.findings.usual_edits import guard_pipelines


class UnguardedEvaluation(ConfigRule):
    """F10: what training leaves out counts against the model."""

    code = 'MG230'
    summary = 'Training is guarded, and the labels that the model is judged by are not.'
    why = (
        'Metrics take every label for the truth: an invalid one is no class that a model could predict, so whatever '
        'it predicts there counts as a false positive, and IoU and AP fall without a word.'
    )
    advice = 'Put the guard of the training pipeline into this one, too.'
    severity = WARNING

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        for found in unguarded_evaluation(config):
            yield self.at(
                found.dataset.at('pipeline'),
                [transform.name for transform in found.pipeline],
                f'{found.metric.name} counts what is predicted at an invalid label as wrong.',
                edits=[guard_pipelines(config, [found.pipeline], found.guard)],
            )
