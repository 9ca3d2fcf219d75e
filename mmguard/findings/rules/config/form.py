"""Rules about configs for older versions, and about values of the wrong type."""

from __future__ import annotations

from typing import Iterator

from mmguard.config.read import ReadConfig
from mmguard.config.tree import name_type
from mmguard.findings.finding import Finding
from mmguard.findings.rule import ConfigRule, Example
from mmguard.text import quantity


class OldStyle(ConfigRule):
    code = 'MG227'
    summary = 'The config is written for MMDetection 2.x or MMSegmentation 0.x.'
    title = (
        'The installed versions do not read data.train: the config is written for MMDetection 2.x or MMSegmentation '
        '0.x.'
    )
    why = 'Since MMDetection 3 and MMSegmentation 1, data=dict(train=...) is not read: classes in it have no effect.'
    example = Example(wrong='data = dict(train=dict(classes=...))', right='train_dataloader = dict(dataset=dict(...))')
    limits = 'A program of your own that reads data.train is not detected.'
    advice = (
        'To train with the installed versions, write train_dataloader, val_dataloader and test_dataloader, each with '
        'dataset=dict(metainfo=...). To keep the config as it is, install the versions that it was written for.'
    )

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        train = config.part('data').get('train')
        if isinstance(train, (dict, list, tuple)):
            names = ', '.join(map(str, train)) if isinstance(train, dict) else quantity(len(train), 'data set')
            yield self.report(f'data.train holds {names}', places=('data.train',), value=train)


class WrongType(ConfigRule):
    code = 'MG231'
    summary = 'A config value has the wrong type, for example a string instead of a number.'
    title = 'Wrong type of {key}: expected {wanted}, got {kind}.'
    why = (
        "The frameworks check few types: with num_classes='19' a layer cannot be built, and train_dataloader=5 raises "
        'an error that does not name the key. Other rules ignore such a value.'
    )
    example = Example(wrong="num_classes='19'", right='num_classes=19')
    limits = 'Only keys that other rules read are checked.'
    advice = 'Write a value of the expected type.'

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        for one in config.wrong_types:
            words = dict(key=one.path.rpartition('.')[2], wanted=one.wanted, kind=name_type(one.value))
            yield self.report_at(one.path, one.value, words)
