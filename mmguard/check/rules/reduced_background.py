from __future__ import annotations

from typing import Iterator

from mmguard.check.config import ReadConfig
from mmguard.check.finding import ConfigFinding
from mmguard.check.parts import classes_of, datasets, says_classes
from mmguard.check.rule import Rule

BACKGROUND = ('background', 'bg', 'backgrounds', 'back_ground', 'unlabeled', 'unlabelled', 'void', 'ignore', '背景')


class ReducedBackground(Rule):
    """The shift takes label 0 away, and the class list counts it."""

    code = 'MG211'
    summary = 'reduce_zero_label=True, and the class list starts with the background.'
    why = (
        'reduce_zero_label makes 0 the ignored label and moves every other label down by one. If 0 is the background '
        'and the background is a class, it is never trained, all classes are one off and the last one never occurs.'
    )
    advice = 'Write reduce_zero_label=False, or take the background out of the list (and out of num_classes).'

    def find(self, config: ReadConfig) -> Iterator[ConfigFinding]:
        for dataset in datasets(config):
            names = classes_of(dataset)
            # LoveDA counts a background as 1, and 0 is no data: stock data sets know their files.
            stock = not says_classes(dataset) and str(getattr(dataset.cls, '__module__', '')).startswith('mmseg.')
            if not names or stock or dataset.get('reduce_zero_label') is not True:
                continue
            first = names[0].strip().strip('_').lower().replace(' ', '_')
            if first in BACKGROUND:
                default = '' if dataset.says('reduce_zero_label') else f' (the default of {dataset.name})'
                yield self.at(
                    dataset.at('reduce_zero_label'),
                    True,
                    f'Label 0 becomes the ignored label{default}, but class 0 is {names[0]!r}: it is never trained, '
                    f'the others are one off and {names[-1]!r} never occurs.',
                    f'Write reduce_zero_label=False; or remove {names[0]!r} from the classes and write num_classes='
                    f'{len(names) - 1}, if the background is not to be predicted.',
                )
