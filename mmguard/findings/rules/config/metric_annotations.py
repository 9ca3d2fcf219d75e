from __future__ import annotations

import posixpath
from typing import Iterator, Optional

from mmguard.config.parts import Part, classes_of, datasets, metrics
from mmguard.config.read import ReadConfig
from mmguard.findings.finding import WARNING, Finding
from mmguard.findings.rule import ConfigRule, Example
from mmguard.findings.usual_edits import propose
from mmguard.text import shorten

METRICS = ('CocoMetric', 'LVISMetric', 'CocoPanopticMetric')


class MetricAnnotations(ConfigRule):
    """A metric with its own ground truth or class names."""

    code = 'MG229'
    summary = 'The metric takes its ground truth, or its class names, from elsewhere than the data set that it judges.'
    title = 'The metric reads another file than the data set: {place} reads {expected}.'
    title_names = (
        'VOCMetric prints the names of VOC, {wrong} for {right}, because the folder of {place} is called {folder}. The '
        'figures are right, the names are not; with more than 20 classes it fails.'
    )
    why = (
        'COCO metrics take the ground truth from their own ann_file. If that is still the one of the base config, '
        'images and category ids do not fit: evaluation fails, or gives numbers that mean nothing. '
        'VOCMetric names the rows of its table by the 20 classes of VOC where the folder is called VOC2007 or VOC2012.'
    )
    example = Example(
        wrong="dataset: ann_file='my_val.json'; CocoMetric: ann_file='data/coco/annotations/instances_val2017.json'",
        right="CocoMetric: ann_file='my_val.json'",
    )
    limits = 'Paths are compared, not files: a copy under another name looks like a mistake.'
    advice = (
        'Write the ann_file of the data set at the metric, too. If VOCMetric prints other names, write '
        "type='XMLDataset' in the data set (the same reader), or give the folder a name without VOC2007 and VOC2012."
    )

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        for metric in metrics(config):
            sets = [dataset for dataset in datasets(config) if dataset.split == metric.split]
            if metric.name == 'VOCMetric' and metric.config.get('metric', 'mAP') in ('mAP', ['mAP']):
                yield from filter(None, map(self._check_names, sets))
            file = metric.config.get('ann_file')
            if len(sets) != 1 or metric.name not in METRICS or not isinstance(file, str):
                continue
            dataset = sets[0]
            if dataset.is_a('CocoPanopticDataset') != (metric.name == 'CocoPanopticMetric'):
                continue  # the boxes of a panoptic model are evaluated on another file, on purpose
            root, own = dataset.config.get('data_root') or '', dataset.config.get('ann_file')
            if not isinstance(root, str) or not isinstance(own, str) or not own:
                continue
            expected, place = posixpath.join(root, own), metric.place('ann_file')
            if posixpath.normpath(expected) != posixpath.normpath(file):
                edit = propose('Judge by the annotations of the data set.', (place, expected))
                yield self.report_at(place, file, dict(place=dataset.path, expected=expected), edits=[edit])

    def _check_names(self, dataset: Part) -> Optional[Finding]:
        """Report that VOCDataset infers VOC2007 or VOC2012 from its folder although the classes differ."""
        prefix = dataset.config.get('data_prefix')
        folder = prefix.get('sub_data_root') if isinstance(prefix, dict) else None
        root, names = dataset.config.get('data_root') or '', list(classes_of(dataset) or ())
        if not dataset.is_a('VOCDataset') or not isinstance(folder, str) or not isinstance(root, str) or not names:
            return None
        year = next((year for year in ('VOC2007', 'VOC2012') if year in posixpath.join(root, folder)), None)
        own = list((getattr(dataset.cls, 'METAINFO', None) or {}).get('classes') or ())
        place = next((i for i, name in enumerate(names) if own[i : i + 1] != [name]), None)
        if year is None or not own or place is None:
            return None
        wrong = own[place] if place < len(own) else None
        words = dict(wrong=shorten(wrong), right=shorten(names[place]), place=dataset.path, folder=year)
        given, edits = dataset.config.get('type'), []
        if isinstance(given, str) and dataset.name == 'VOCDataset':
            note = 'It is the same reader; the metric takes the names of metainfo then.'
            reader = (dataset.place('type'), given.replace('VOCDataset', 'XMLDataset'))
            edits = [propose('Read the data with XMLDataset.', reader, notes=(note,))]
        return self.report_at(
            dataset.place('data_prefix.sub_data_root'), folder, words, self.title_names, WARNING, edits
        )
