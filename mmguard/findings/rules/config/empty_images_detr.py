from __future__ import annotations

from typing import Iterator

from mmguard.config.parts import datasets, heads
from mmguard.config.read import ReadConfig
from mmguard.findings.finding import INFO, Finding
from mmguard.findings.rule import ConfigRule, Example
from mmguard.findings.usual_edits import propose

DETR_LIKE = ('DETRHead', 'DINOHead', 'RTDETRHead', 'DFINEHead')


class EmptyImagesDetr(ConfigRule):
    """Images without targets in a data set for a DETR-like head."""

    code = 'MG221'
    summary = 'Images without targets are kept for a DETR-like head.'
    title = 'Images without targets reach {head}: it may return fewer losses for a batch of them.'
    why = (
        'On a rank whose batch holds no object, denoising has nothing to do: some implementations (RT-DETR and those '
        'made from it) then return fewer losses than the other ranks, and distributed training hangs. MMDetection 3 '
        'returns zeros instead; its DETR and DINO are safe.'
    )
    example = Example(wrong="dict(type='CocoDataset', ...)", right='..., filter_cfg=dict(filter_empty_gt=True)')
    limits = 'It reads no annotations: there may be no image without a target.'
    advice = (
        'See whether the head returns the same losses for a batch without targets. If it returns fewer, write '
        'filter_cfg=dict(filter_empty_gt=True) in the training data sets; if not, nothing is to be done.'
    )
    severity = INFO
    on_request = True

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        head = next((head for head in heads(config) if head.is_a(*DETR_LIKE)), None)
        if head is None:
            return
        for dataset in datasets(config):
            place, filters = dataset.at('filter_cfg'), dataset.config.get('filter_cfg')
            usual = dataset.is_a('BaseVideoDataset')  # mmdet's videos leave out frames without an object
            keeps = not (filters.get('filter_empty_gt', usual) if isinstance(filters, dict) else usual)
            if dataset.split == 'train' and keeps:
                edit = propose(
                    'Leave out images without targets.',
                    (f'{place}.filter_empty_gt', True)
                    if isinstance(filters, dict)
                    else (place, {'filter_empty_gt': True}),
                    question='Does the head return fewer losses for a batch without targets?',
                    if_not='Nothing needs to change.',
                )
                yield self.report_at(place, filters, dict(head=head.name), edits=[edit])
