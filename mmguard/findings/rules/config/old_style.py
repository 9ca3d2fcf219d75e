from __future__ import annotations

from typing import Iterator

from mmguard.config.read import ReadConfig
from mmguard.findings.finding import Finding
from mmguard.findings.rule import ConfigRule, Example


class OldStyle(ConfigRule):
    """A config of the generation before."""

    code = 'MG227'
    summary = 'The config is written for MMDetection 2.x or MMSegmentation 0.x.'
    title = (
        'What is installed does not read data.train: the config is written for MMDetection 2.x or MMSegmentation 0.x.'
    )
    why = 'Since MMDetection 3 and MMSegmentation 1 data=dict(train=...) is not read: classes set there do nothing.'
    example = Example(wrong='data = dict(train=dict(classes=...))', right='train_dataloader = dict(dataset=dict(...))')
    limits = 'A program of your own that reads data.train itself is not seen.'
    advice = (
        'To train with what is installed, write train_dataloader, val_dataloader and test_dataloader, each with '
        'dataset=dict(metainfo=...). To keep the config as it is, install the versions that it was written for.'
    )

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        data = config.part('data')
        if isinstance(data.get('train'), (dict, list, tuple)):
            yield self.report_at('data.train', data['train'])
