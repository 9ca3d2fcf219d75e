from __future__ import annotations

from typing import Iterator

from mmguard.config.parts import find_datasets, find_transforms
from mmguard.config.read import ReadConfig
from mmguard.facts.labels import LabelFacts
from mmguard.findings.finding import LIKELY, POSSIBLE, WARNING, Finding
from mmguard.findings.rule import ConfigRule, Example
from mmguard.findings.usual_edits import propose
from mmguard.findings.views import get_annotations


class NegativeCrop(ConfigRule):
    code = 'MG233'
    follows = ('MG146',)
    severity = WARNING
    summary = 'filter_empty_gt=False keeps images without an object, but RandomCrop rejects them.'
    why = (
        'With allow_negative_crop=False, its default in MMDetection, RandomCrop does not return a crop without a box; '
        'the data set draws another image then. Images without an object are never trained, without a message.'
    )
    example = Example(
        wrong="filter_cfg=dict(filter_empty_gt=False); dict(type='RandomCrop', crop_size=(512, 512))",
        right="dict(type='RandomCrop', crop_size=(512, 512), allow_negative_crop=True)",
    )
    limits = 'It knows RandomCrop of MMDetection, not transforms of your own.'
    advice = 'Write allow_negative_crop=True in RandomCrop, or leave such images out: filter_empty_gt=True.'

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        kept = any(
            False
            in (dataset.config.get('filter_empty_gt'), (dataset.config.get('filter_cfg') or {}).get('filter_empty_gt'))
            for dataset in find_datasets(config)
            if dataset.split == 'train'
        )
        for crop in find_transforms(config) if kept and config.framework == 'mmdet' else ():
            if crop.split == 'train' and crop.name == 'RandomCrop' and not crop.config.get('allow_negative_crop'):
                place = crop.place('allow_negative_crop')
                yield self.report_at(place, False, edits=[propose('Keep crops without an object.', (place, True))])

    def certainty_given(self, finding: Finding, labels: LabelFacts) -> str:
        return LIKELY if get_annotations(labels).images_without_target else POSSIBLE
