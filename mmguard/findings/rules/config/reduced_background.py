from __future__ import annotations

from typing import Iterator, List

from mmguard.config.classes import default_of
from mmguard.config.parts import Part, classes_of, datasets, metainfo_of, says_classes
from mmguard.config.read import ReadConfig
from mmguard.findings.edits import ASKS, Edit
from mmguard.findings.finding import Finding
from mmguard.findings.rule import ConfigRule, Facts
from mmguard.findings.usual_edits import reduce_zero_label, without_first
from mmguard.text.words import short

BACKGROUND = ('background', 'bg', 'backgrounds', 'back_ground', 'unlabeled', 'unlabelled', 'void', 'ignore', '背景')


class ReducedBackground(ConfigRule):
    """The shift takes label 0 away, and the class list counts it."""

    code = 'MG211'
    summary = 'reduce_zero_label=True, and the class list starts with the background.'
    why = (
        'reduce_zero_label makes 0 the ignored label and moves every other label down by one. If 0 is the background '
        'and the background is a class, it is never trained, all classes are one off and the last one never occurs.'
    )
    advice = (
        'Write reduce_zero_label=False in the data set, and in LoadAnnotations where it says it, too; or take the '
        'background out of the list (and out of num_classes).'
    )

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        for dataset in datasets(config):
            names = classes_of(dataset)
            if not names or _knows_its_files(dataset, names[0]) or dataset.get('reduce_zero_label') is not True:
                continue
            first = names[0].strip().strip('_').lower().replace(' ', '_')
            if first in BACKGROUND:
                default = '' if dataset.says('reduce_zero_label') else f' (the default of {dataset.name})'
                yield self.at(
                    dataset.at('reduce_zero_label'),
                    True,
                    f'Label 0 becomes the ignored label{default}, but class 0 is {short(names[0])}: it is never '
                    f'trained, the others are one off and {short(names[-1])} never occurs.',
                    edits=_ways(config, names[0]),
                )


def _knows_its_files(dataset: Part, first: str) -> bool:
    """LoveDA stores its background as 1, and 0 is no data: also where some of its classes are chosen."""
    stock = str(getattr(dataset.cls, '__module__', '')).startswith('mmseg.')
    chosen = says_classes(dataset) and first not in (metainfo_of(dataset).get('classes') or ())
    return stock and not chosen and default_of(dataset.cls, 'reduce_zero_label') is True


def _ways(config: ReadConfig, first: str) -> List[Edit]:
    keep = reduce_zero_label(
        Facts(config=config), False, ASKS, f'Is {short(first)} 0 in the files, and to be predicted?'
    )
    leave = without_first(config, f'Is {short(first)} 0 in the files, and not to be predicted?')
    return [keep] if leave is None else [keep, leave]
