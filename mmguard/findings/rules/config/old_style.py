from __future__ import annotations

from typing import Iterator

from mmguard.config.read import ReadConfig
from mmguard.findings.finding import Finding
from mmguard.findings.rule import ConfigRule


class OldStyle(ConfigRule):
    """A config of the generation before."""

    code = 'MG227'
    summary = 'The config is written for MMDetection 2.x or MMSegmentation 0.x.'
    why = 'The data sets stand under data=dict(train=...), which nobody reads any more: classes set there do nothing.'
    advice = 'Write train_dataloader, val_dataloader and test_dataloader, each with dataset=dict(metainfo=...).'

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        data = config.part('data')
        if isinstance(data.get('train'), (dict, list, tuple)):
            yield self.at('data.train', data['train'], 'The data sets are not read in training by what is installed.')
