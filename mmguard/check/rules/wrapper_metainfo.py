from __future__ import annotations

from typing import Iterator

from mmguard.check.config import ReadConfig
from mmguard.check.finding import ConfigFinding
from mmguard.check.parts import datasets
from mmguard.check.rule import Rule


class WrapperMetainfo(Rule):
    """Classes given to RepeatDataset, ConcatDataset, ..."""

    code = 'MG203'
    summary = 'metainfo (or classes) stands at a data set that wraps another one.'
    why = (
        'RepeatDataset, ConcatDataset, ClassBalancedDataset and MultiImageMixDataset take no class list: building '
        'fails, or the wrapped data set keeps its own classes and the labels do not fit the head.'
    )
    advice = 'Write metainfo inside the wrapped data set.'

    def find(self, config: ReadConfig) -> Iterator[ConfigFinding]:
        for wrapper in datasets(config, wrappers=True):
            inner = 'dataset' if 'dataset' in wrapper.config else 'datasets[i]'
            for key in ('metainfo', 'classes'):
                if wrapper.config.get(key) is not None:
                    yield self.at(
                        wrapper.at(key),
                        wrapper.config[key],
                        f'{wrapper.name} wraps a data set and takes no {key}: the classes do not arrive.',
                        f'Move it to {wrapper.at(inner)}.metainfo=dict(classes=...).',
                    )
