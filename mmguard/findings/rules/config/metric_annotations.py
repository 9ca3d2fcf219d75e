from __future__ import annotations

import posixpath
from typing import Iterator

from mmguard.config.parts import find_datasets, find_metrics
from mmguard.config.read import ReadConfig
from mmguard.findings.finding import Finding
from mmguard.findings.rule import ConfigRule, Example
from mmguard.findings.usual_edits import propose

ANNOTATION_METRICS = ('CocoMetric', 'LVISMetric', 'CocoPanopticMetric')


class MetricAnnotations(ConfigRule):
    code = 'MG229'
    summary = 'The metric takes its ground truth from a different file than the data set that it evaluates.'
    title = 'The metric and its data set read different files: {place} reads {expected}.'
    why = (
        'COCO metrics take the ground truth from their own ann_file. If it is still that of the base config, images '
        'and category ids do not match: evaluation fails, or its scores are meaningless.'
    )
    example = Example(
        wrong="dataset: ann_file='my_val.json'; CocoMetric: ann_file='data/coco/annotations/instances_val2017.json'",
        right="CocoMetric: ann_file='my_val.json'",
    )
    limits = 'Paths are compared, not files: a copy under another name looks like a mistake.'
    advice = 'Write the ann_file of the data set in the metric, too.'

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        for metric in find_metrics(config):
            sets = [dataset for dataset in find_datasets(config) if dataset.split == metric.split]
            file = metric.config.get('ann_file')
            if len(sets) != 1 or metric.name not in ANNOTATION_METRICS or not isinstance(file, str):
                continue
            dataset = sets[0]
            if dataset.is_a('CocoPanopticDataset') != (metric.name == 'CocoPanopticMetric'):
                continue  # the boxes of a panoptic model are evaluated on another file, on purpose
            root, own = dataset.config.get('data_root') or '', dataset.config.get('ann_file')
            if not isinstance(root, str) or not isinstance(own, str) or not own:
                continue
            expected, place = posixpath.join(root, own), metric.place('ann_file')
            if posixpath.normpath(expected) != posixpath.normpath(file):
                edit = propose('Evaluate with the annotations of the data set.', (place, expected))
                yield self.report_at(place, file, dict(place=dataset.path, expected=expected), edits=[edit])
