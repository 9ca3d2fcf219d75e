from __future__ import annotations

from typing import Iterator

from mmguard.check.config import ReadConfig
from mmguard.check.finding import ConfigFinding
from mmguard.check.parts import datasets, pipelines
from mmguard.check.rule import Rule


class ReduceZeroLabelTwice(Rule):
    """Data set and loader, or two splits, that do not agree."""

    code = 'MG210'
    summary = 'reduce_zero_label differs between data set and LoadAnnotations, or between splits.'
    why = (
        'The loader compares its own reduce_zero_label with that of the data set and stops the run where they differ. '
        'Where the splits differ, the model is tested against labels that are one off.'
    )
    advice = 'Write reduce_zero_label at the data set alone, the same in every split.'

    def find(self, config: ReadConfig) -> Iterator[ConfigFinding]:
        for pipeline in pipelines(config):
            for loader in (t for t in pipeline if t.name == 'LoadAnnotations' and t.scope == 'mmseg'):
                dataset, shift = loader.owner, loader.config.get('reduce_zero_label')
                of_data = None if dataset is None else dataset.get('reduce_zero_label')
                if isinstance(shift, bool) and isinstance(of_data, bool) and shift != of_data and dataset is not None:
                    default = '' if dataset.says('reduce_zero_label') else f', the default of {dataset.name}'
                    yield self.at(
                        loader.at('reduce_zero_label'),
                        shift,
                        f'{of_data} at {dataset.at("reduce_zero_label")}{default}: the loader refuses to load.',
                        f'Remove it here, and write reduce_zero_label={shift} at the data set if that is what the '
                        f'files need (True: 0 is unlabelled and classes count from 1).',
                    )
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
            yield self.at(
                dataset.at('reduce_zero_label'),
                shift,
                f'{first.get("reduce_zero_label")} at {first.at("reduce_zero_label")}: the same kind of files, read '
                f'with labels that are one off.',
                'Write the same in every split.',
            )
