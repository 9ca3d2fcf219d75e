from __future__ import annotations

from typing import Iterator, List

from mmguard.config.parts import datasets, pipelines
from mmguard.config.read import ReadConfig
from mmguard.findings.edits import ASKS, Edit
from mmguard.findings.finding import Finding
from mmguard.findings.rule import ConfigRule, Example, Facts
from mmguard.findings.usual_edits import reduce_zero_label


class ReduceZeroLabelTwice(ConfigRule):
    """Data set and loader, or two splits, that do not agree about reduce_zero_label."""

    code = 'MG210'
    summary = 'reduce_zero_label differs between data set and LoadAnnotations, or between splits.'
    title = 'reduce_zero_label is {here} here, but {there} at {place}: the labels of the splits are one off.'
    title_loader = 'LoadAnnotations has reduce_zero_label={here}, but {place} is {there}: it refuses to load.'
    why = (
        'The loader compares its own reduce_zero_label with that of the data set and stops the run where they differ. '
        'Where the splits differ, the model is tested against labels that are one off.'
    )
    example = Example(wrong='train: reduce_zero_label=True; val: False', right='train and val: reduce_zero_label=True')
    limits = 'Splits whose files are numbered differently need different values: that is asked by its edits.'
    advice = (
        'Look whether 0 is unlabelled in the files and classes count from 1 (`mmguard scan CONFIG` counts the values). '
        'If so, write reduce_zero_label=True in the data sets of all splits, if not False; leave it out of the loaders.'
    )

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        for pipeline in pipelines(config):
            for loader in (t for t in pipeline if t.name == 'LoadAnnotations' and t.scope == 'mmseg'):
                dataset, shift = loader.owner, loader.config.get('reduce_zero_label')
                of_data = None if dataset is None else dataset.get('reduce_zero_label')
                if isinstance(shift, bool) and isinstance(of_data, bool) and shift != of_data and dataset is not None:
                    said, place = dataset.says('reduce_zero_label'), dataset.at('reduce_zero_label')
                    there = f'{of_data}' if said else f'{of_data} (the default of {dataset.name})'
                    words, ways = dict(here=shift, there=there, place=place), _both(config, of_data if said else shift)
                    yield self.report_at(loader.at('reduce_zero_label'), shift, words, self.title_loader, edits=ways)
        if config.scope != 'mmseg':
            return
        first = None
        for dataset in datasets(config):
            shift = dataset.get('reduce_zero_label')
            if not isinstance(shift, bool):
                continue
            first = first or (dataset if dataset.split == 'train' else None)
            if first is None or first.name != dataset.name or shift == first.get('reduce_zero_label'):
                continue
            there, place = first.get('reduce_zero_label'), first.at('reduce_zero_label')
            words, ways = dict(here=shift, there=there, place=place), _both(config, there is True)
            yield self.report_at(dataset.at('reduce_zero_label'), shift, words, edits=ways)


def _both(config: ReadConfig, likelier: bool) -> List[Edit]:
    asked = {
        True: 'Is 0 unlabelled in the files of every split, and do classes count from 1?',
        False: 'Is 0 a class in the files of every split?',
    }
    return [reduce_zero_label(Facts(config=config), shift, ASKS, asked[shift]) for shift in (likelier, not likelier)]
