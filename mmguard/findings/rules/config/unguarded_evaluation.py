from __future__ import annotations

from typing import Iterator

from mmguard.config.guards import LOSSES, guards_in
from mmguard.config.parts import Part, losses, metrics, pipelines
from mmguard.config.read import ReadConfig
from mmguard.findings.finding import WARNING, Finding
from mmguard.findings.rule import ConfigRule
from mmguard.findings.usual_edits import guard_pipelines

#: Metrics that take the labels from the sample -> the guard of such labels. The others open files of their own.
GUARDS = {'IoUMetric': 'GuardSegLabels', 'SemSegMetric': 'GuardSegLabels', 'VOCMetric': 'GuardInstanceLabels'}


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
        found = pipelines(config)
        in_training = any(guards_in(pipeline) for pipeline in found if pipeline[0].split == 'train')
        if not in_training and not any(loss.name in LOSSES for loss in losses(config)):
            return
        for metric in metrics(config):
            guard = next((GUARDS[name] for name in GUARDS if metric.is_a(name)), None)
            if guard is None or metric.config.get('format_only'):
                continue
            judged = [pipeline for pipeline in found if pipeline[0].split == metric.split]
            # A wrapper around the data set may hold the guard of all of them.
            if any(_wraps(pipeline[0].owner) and _has(pipeline, guard) for pipeline in judged):
                continue
            for pipeline in judged:
                dataset = pipeline[0].owner
                loads = any('Annotations' in transform.name for transform in pipeline)
                if dataset is not None and loads and not _has(pipeline, guard):
                    yield self.at(
                        dataset.at('pipeline'),
                        [transform.name for transform in pipeline],
                        f'{metric.name} counts what is predicted at an invalid label as wrong.',
                        edits=[guard_pipelines(config, [pipeline], guard)],
                    )


def _has(pipeline: list, guard: str) -> bool:
    return any(transform.name == guard for transform in guards_in(pipeline))


def _wraps(dataset: object) -> bool:
    return isinstance(dataset, Part) and ('dataset' in dataset.config or 'datasets' in dataset.config)
