from __future__ import annotations

from typing import Iterator

from mmguard.check.config import ReadConfig
from mmguard.check.finding import ConfigFinding
from mmguard.check.rule import Rule


class OldStyle(Rule):
    """A config of the generation before."""

    code = 'MG227'
    summary = 'The config is written for MMDetection 2.x or MMSegmentation 0.x.'
    why = 'The data sets stand under data=dict(train=...), which nobody reads any more: classes written there are lost.'
    advice = 'Write train_dataloader, val_dataloader and test_dataloader, each with dataset=dict(metainfo=...).'

    def find(self, config: ReadConfig) -> Iterator[ConfigFinding]:
        data = config.part('data')
        if isinstance(data.get('train'), (dict, list, tuple)):
            yield self.at('data.train', data['train'], 'The data sets are not read, here or in training.')
