from __future__ import annotations

import posixpath
from typing import Iterator

from mmguard.config.parts import datasets, metrics
from mmguard.config.read import ReadConfig
from mmguard.findings.edits import SAFE, Edit
from mmguard.findings.finding import Finding
from mmguard.findings.rule import ConfigRule

METRICS = ('CocoMetric', 'LVISMetric', 'CocoPanopticMetric')


class MetricAnnotations(ConfigRule):
    """The metric opens its own copy of the ground truth."""

    code = 'MG229'
    summary = 'The metric reads another annotation file than the data set that it judges.'
    why = (
        'COCO metrics take the ground truth from their own ann_file. If that is still the one of the base config, '
        'images and category ids do not fit: evaluation fails, or gives numbers that mean nothing.'
    )
    advice = 'Write the ann_file of the data set at the metric, too.'

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        for metric in metrics(config):
            sets = [dataset for dataset in datasets(config) if dataset.split == metric.split]
            file = metric.config.get('ann_file')
            if len(sets) != 1 or metric.name not in METRICS or not isinstance(file, str):
                continue
            dataset = sets[0]
            if dataset.is_a('CocoPanopticDataset') != (metric.name == 'CocoPanopticMetric'):
                continue  # the boxes of a panoptic model are judged by another file, on purpose
            root, own = dataset.config.get('data_root') or '', dataset.config.get('ann_file')
            if not isinstance(root, str) or not isinstance(own, str) or not own:
                continue
            expected = posixpath.join(root, own)
            if posixpath.normpath(expected) != posixpath.normpath(file):
                yield self.at(
                    metric.at('ann_file'),
                    file,
                    f'{dataset.path} reads {expected}.',
                    edits=[Edit(f'Write ann_file={expected!r}.', SAFE, '', ((metric.at('ann_file'), expected),))],
                )
