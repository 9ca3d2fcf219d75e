from __future__ import annotations

from typing import Iterator

from mmguard.check.config import ReadConfig
from mmguard.check.finding import ConfigFinding
from mmguard.check.parts import classes_of, datasets
from mmguard.check.rule import Rule


class ClassList(Rule):
    """A class list that is no list, or under a name that nobody reads."""

    code = 'MG205'
    summary = 'The class list is a string, holds a name twice, or stands under a key that nobody reads.'
    why = (
        "classes=('person') is a string, not a tuple: each letter becomes a class. CLASSES and PALETTE were the names "
        'in MMDetection 2.x; now they are not read and the data set keeps its own classes.'
    )
    advice = "Write metainfo=dict(classes=('person',)); the comma makes the tuple."

    def find(self, config: ReadConfig) -> Iterator[ConfigFinding]:
        for dataset in datasets(config):
            if dataset.config.get('classes') is not None and dataset.cls is not None:
                yield self.at(
                    dataset.at('classes'),
                    dataset.config['classes'],
                    f'{dataset.name} takes no classes since MMDetection 3 and MMSegmentation 1: building it fails.',
                    'Write metainfo=dict(classes=...) instead.',
                )
            metainfo = dataset.config.get('metainfo')
            if not isinstance(metainfo, dict):
                continue
            at = dataset.at('metainfo')
            for key in ('CLASSES', 'PALETTE'):
                if key in metainfo and key.lower() not in metainfo:
                    yield self.at(
                        f'{at}.{key}',
                        metainfo[key],
                        f'Nobody reads {key}: {dataset.name} goes on with its own {key.lower()}.',
                        f'Write {key.lower()} in small letters.',
                    )
            classes = metainfo.get('classes')
            if isinstance(classes, str) and classes_of(dataset) is None and not _is_file_name(classes):
                yield self.at(
                    f'{at}.classes',
                    classes,
                    f'A string, not a tuple: its {len(classes)} letters are taken for classes.',
                    f'Write classes=({classes!r},), with the comma.',
                )
            elif isinstance(classes, (list, tuple)):
                twice = sorted({str(name) for name in classes if list(classes).count(name) > 1})
                if twice:
                    yield self.at(
                        f'{at}.classes',
                        classes,
                        f'{", ".join(map(repr, twice))} stands in the list more than once: its labels are ambiguous.',
                        'Name every class once.',
                    )


def _is_file_name(text: str) -> bool:
    return '/' in text or text.endswith(('.txt', '.csv', '.json'))
