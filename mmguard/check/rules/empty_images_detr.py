from __future__ import annotations

from typing import Iterator

from mmguard.check.config import ReadConfig
from mmguard.check.finding import INFO, ConfigFinding
from mmguard.check.parts import datasets, heads
from mmguard.check.rule import Rule

DETR_LIKE = ('DETRHead', 'DINOHead', 'RTDETRHead', 'DFINEHead')


class EmptyImagesDetr(Rule):
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

    def find(self, config: ReadConfig) -> Iterator[ConfigFinding]:
        head = next((head for head in heads(config) if head.is_a(*DETR_LIKE)), None)
        if head is None:
            return
        for dataset in datasets(config):
            filters = dataset.config.get('filter_cfg')
            keeps = not isinstance(filters, dict) or not filters.get('filter_empty_gt', False)
            if dataset.split == 'train' and keeps:
                yield self.at(
                    dataset.at('filter_cfg'),
                    filters,
                    f'Images without targets reach {head.name}: see whether it returns the same losses without them.',
                )
