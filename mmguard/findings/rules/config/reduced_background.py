from __future__ import annotations

from typing import Iterator, List

from mmguard.config.classes import default_of
from mmguard.config.parts import Part, classes_of, datasets, metainfo_of, says_classes
from mmguard.config.read import ReadConfig
from mmguard.findings.class_edits import drop_first_class
from mmguard.findings.edits import ASKS, Edit
from mmguard.findings.finding import Finding
from mmguard.findings.rule import ConfigRule, Example, Facts
from mmguard.findings.usual_edits import reduce_zero_label
from mmguard.text import shorten

BACKGROUND = ('background', 'bg', 'backgrounds', 'back_ground', 'unlabeled', 'unlabelled', 'void', 'ignore', '背景')


class ReducedBackground(ConfigRule):
    """A class list with the background, whose label 0 the shift takes away."""

    code = 'MG211'
    summary = 'reduce_zero_label=True, and the class list starts with the background.'
    title = (
        'reduce_zero_label is True{default}: label 0 is ignored, but class 0 is {first}. It is never trained, the '
        'others are one off and {last} never occurs.'
    )
    why = (
        'reduce_zero_label makes 0 the ignored label and moves every other label down by one. If 0 is the background '
        'and the background is a class, it is never trained, all classes are one off and the last one never occurs.'
    )
    example = Example(
        wrong="reduce_zero_label=True, metainfo=dict(classes=('background', 'road'))",
        right="reduce_zero_label=False, metainfo=dict(classes=('background', 'road'))",
    )
    limits = 'It goes by the name of the first class; files that store the background as 1 are right as they are.'
    advice = (
        'If 0 in the files is the background and it is to be predicted, write reduce_zero_label=False in the data sets '
        'and loaders. If it is not to be predicted, take it out of the class list and count one class less.'
    )

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        for dataset in datasets(config):
            names, place = classes_of(dataset), dataset.at('reduce_zero_label')
            if not names or _fits_its_files(dataset, names[0]) or dataset.get('reduce_zero_label') is not True:
                continue
            if names[0].strip().strip('_').lower().replace(' ', '_') in BACKGROUND:
                default = '' if dataset.says('reduce_zero_label') else f' (the default of {dataset.name})'
                words = dict(default=default, first=shorten(names[0]), last=shorten(names[-1]))
                yield self.report_at(place, True, words, edits=_ways(config, names[0]))


def _fits_its_files(dataset: Part, first: str) -> bool:
    """Return True if the shift is right for the class: LoveDA stores its background as 1, 0 has no data."""
    stock = str(getattr(dataset.cls, '__module__', '')).startswith('mmseg.')
    chosen = says_classes(dataset) and first not in (metainfo_of(dataset).get('classes') or ())
    return stock and not chosen and default_of(dataset.cls, 'reduce_zero_label') is True


def _ways(config: ReadConfig, first: str) -> List[Edit]:
    keep = reduce_zero_label(
        Facts(config=config), False, ASKS, f'Is {shorten(first)} 0 in the files, and to be predicted?'
    )
    leave = drop_first_class(config, f'Is {shorten(first)} 0 in the files, and not to be predicted?')
    return [keep] if leave is None else [keep, leave]
