from __future__ import annotations

from typing import Iterator

from mmguard.check.config import ReadConfig
from mmguard.check.finding import ConfigFinding
from mmguard.check.head_classes import counts, data_counts, training_data
from mmguard.check.parts import classes_path
from mmguard.check.rule import Rule


class BackgroundCounted(Rule):
    """MMDetection 1.x counted the background."""

    code = 'MG202'
    summary = 'num_classes of a detection head counts the background.'
    why = (
        'MMDetection 1.x counted the background as class 0. Since 2.0 it is not counted and labels start at 0: with '
        'one class too many nothing crashes, but results are shifted by a class or a class never occurs.'
    )
    advice = 'Write the number of object classes.'

    def find(self, config: ReadConfig) -> Iterator[ConfigFinding]:
        if config.scope != 'mmdet':
            return
        data = [(dataset, data_counts(dataset)) for dataset in training_data(config)]
        for count in counts(config):
            for dataset, numbers in data:
                expected = numbers.get('things', numbers.get('all'))
                if expected is not None and count.kind == 'all' and count.value == expected + 1:
                    yield self.at(
                        count.path,
                        count.value,
                        f'{count.head.name} has one class more than the data set, which has {expected}: '
                        f'{classes_path(dataset)}. The background is not counted since MMDetection 2.0.',
                        f'Write num_classes={expected}; class 0 is the first object class.',
                    )
                    break
