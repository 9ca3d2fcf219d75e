from __future__ import annotations

from typing import Any, Iterator, List

from mmguard.config.changes import REMOVED, Changes
from mmguard.config.parts import Part, classes_of, datasets, says_classes
from mmguard.config.read import ReadConfig
from mmguard.findings.edits import ASKS, SAFE, Edit
from mmguard.findings.finding import Finding
from mmguard.findings.rule import ConfigRule
from mmguard.findings.usual_edits import with_list


class WrapperMetainfo(ConfigRule):
    """Classes given to RepeatDataset, ConcatDataset, ..."""

    code = 'MG203'
    blames_labels = True
    summary = 'metainfo (or classes) stands at a data set that wraps another one.'
    why = (
        'RepeatDataset, ConcatDataset, ClassBalancedDataset and MultiImageMixDataset take no class list: building '
        'fails, or the wrapped data set keeps its own classes and the labels do not fit the head.'
    )
    advice = 'Write metainfo inside the wrapped data set.'

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        for wrapper in datasets(config, wrappers=True):
            inner = 'dataset' if 'dataset' in wrapper.config else 'datasets[i]'
            there = 'classes=...' if wrapper.is_old else 'metainfo=dict(classes=...).'
            for key in ('metainfo', 'classes'):
                if wrapper.config.get(key) is not None:
                    yield self.at(
                        wrapper.at(key),
                        wrapper.config[key],
                        f'{wrapper.name} wraps a data set and takes no {key}: the classes do not arrive.',
                        edits=_moved(
                            config,
                            wrapper,
                            key,
                            f'Move it to {wrapper.at(inner)}.{there}',
                        ),
                    )


def _moved(config: ReadConfig, wrapper: Part, key: str, text: str) -> List[Edit]:
    """Into every wrapped data set; heads that have another number follow in a second way."""
    value: Any = wrapper.config[key]
    metainfo = value if isinstance(value, dict) else {'classes': (value,) if isinstance(value, str) else value}
    inner = [dataset for dataset in datasets(config) if dataset.path.startswith(wrapper.path)]
    other = any(says_classes(dataset) and classes_of(dataset) != list(metainfo.get('classes', ())) for dataset in inner)
    changes: Changes = tuple(
        (dataset.at('metainfo'), {**(dataset.config.get('metainfo') or {}), **metainfo}) for dataset in inner
    )
    if wrapper.is_old:
        changes = tuple((dataset.at('classes'), tuple(metainfo['classes'])) for dataset in inner)
    question = 'Which of the two lists is right?' if other else ''
    move = Edit(text, ASKS if other else SAFE, question, ((wrapper.at(key), REMOVED), *changes))
    return with_list(config, move, metainfo.get('classes'))
