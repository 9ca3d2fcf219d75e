from __future__ import annotations

from typing import Iterator

from mmguard.config.parts import datasets, heads
from mmguard.config.read import ReadConfig
from mmguard.findings.edits import ASKS, Edit
from mmguard.findings.finding import INFO, Finding
from mmguard.findings.rule import ConfigRule

DETR_LIKE = ('DETRHead', 'DINOHead', 'RTDETRHead', 'DFINEHead')


class EmptyImagesDetr(ConfigRule):
    """F12: a rank without a target."""

    code = 'MG221'
    summary = 'Images without targets are kept for a DETR-like head.'
    why = (
        'On a rank whose batch holds no object, denoising has nothing to do: some implementations (RT-DETR and those '
        'made from it) then return fewer losses than the other ranks, and distributed training hangs. MMDetection 3 '
        'returns zeros instead; its DETR and DINO are safe.'
    )
    advice = 'Write filter_cfg=dict(filter_empty_gt=True), unless the head returns every loss without targets, too.'
    severity = INFO
    on_request = True

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        head = next((head for head in heads(config) if head.is_a(*DETR_LIKE)), None)
        if head is None:
            return
        for dataset in datasets(config):
            filters = dataset.config.get('filter_cfg')
            usual = dataset.is_a('BaseVideoDataset')  # mmdet's videos leave out frames without an object
            keeps = not (filters.get('filter_empty_gt', usual) if isinstance(filters, dict) else usual)
            if dataset.split == 'train' and keeps:
                yield self.at(
                    dataset.at('filter_cfg'),
                    filters,
                    f'Images without targets reach {head.name}: see whether it returns the same losses without them.',
                    edits=[
                        Edit(
                            'Write `filter_cfg=dict(filter_empty_gt=True)`.',
                            ASKS,
                            'Does the head return fewer losses for a batch without targets?',
                            ((dataset.at('filter_cfg.filter_empty_gt'), True),)
                            if isinstance(filters, dict)
                            else ((dataset.at('filter_cfg'), {'filter_empty_gt': True}),),
                        )
                    ],
                )
