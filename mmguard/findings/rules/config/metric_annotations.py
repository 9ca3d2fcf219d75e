from __future__ import annotations

import posixpath
from typing import Iterator, Optional

from mmguard.config.parts import Part, classes_of, datasets, metrics
from mmguard.config.read import ReadConfig
from mmguard.findings.edits import SAFE, Edit
from mmguard.findings.finding import WARNING, Finding
from mmguard.findings.rule import ConfigRule
from mmguard.text.words import short

METRICS = ('CocoMetric', 'LVISMetric', 'CocoPanopticMetric')


class MetricAnnotations(ConfigRule):
    """The metric opens its own copy of the ground truth."""

    code = 'MG229'
    summary = 'The metric takes its ground truth, or its class names, from elsewhere than the data set that it judges.'
    why = (
        'COCO metrics take the ground truth from their own ann_file. If that is still the one of the base config, '
        'images and category ids do not fit: evaluation fails, or gives numbers that mean nothing. '
        'VOCMetric names the rows of its table by the 20 classes of VOC where the folder is called VOC2007 or VOC2012.'
    )
    advice = 'Write the ann_file of the data set at the metric, too.'
    names = (
        'VOCMetric prints the names of VOC, {wrong} for {right}, because the folder of {path} is called {folder}. '
        'The figures are right, the names beside them are not; with more than 20 classes it fails.'
    )
    other_names = (
        "Write `type='XMLDataset'` in the data set: the same reader, and the metric takes the names of metainfo. Or "
        'give the folder a name without VOC2007 and VOC2012.'
    )

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        for metric in metrics(config):
            sets = [dataset for dataset in datasets(config) if dataset.split == metric.split]
            if metric.name == 'VOCMetric' and metric.config.get('metric', 'mAP') in ('mAP', ['mAP']):
                yield from filter(None, map(self._named_by_folder, sets))
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

    def _named_by_folder(self, dataset: Part) -> Optional[Finding]:
        """Whether VOCDataset says VOC2007 or VOC2012 by its folder, and the classes are others."""
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
        message = self.names.format(wrong=short(wrong), right=short(names[place]), path=dataset.path, folder=year)
        written = dataset.config.get('type')
        edits = []
        if isinstance(written, str) and dataset.name == 'VOCDataset':
            reader = written.replace('VOCDataset', 'XMLDataset')
            edits = [Edit(self.other_names, SAFE, '', ((dataset.at('type'), reader),))]
        return self.at(
            dataset.at('data_prefix.sub_data_root'), folder, message, self.other_names, severity=WARNING, edits=edits
        )
