from __future__ import annotations

from typing import Iterator, List

from mmguard.config.parts import datasets, pipelines
from mmguard.config.read import ReadConfig
from mmguard.findings.edits import ASKS, Edit
from mmguard.findings.finding import Finding
from mmguard.findings.rule import ConfigRule, Facts
from mmguard.findings.usual_edits import reduce_zero_label


class ReduceZeroLabelTwice(ConfigRule):
    """Data set and loader, or two splits, that do not agree."""

    code = 'MG210'
    summary = 'reduce_zero_label differs between data set and LoadAnnotations, or between splits.'
    why = (
        'The loader compares its own reduce_zero_label with that of the data set and stops the run where they differ. '
        'Where the splits differ, the model is tested against labels that are one off.'
    )
    advice = 'Write reduce_zero_label at the data set alone, the same in every split.'

    def look(self, config: ReadConfig) -> Iterator[Finding]:
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
                        edits=_both(config, of_data if dataset.says('reduce_zero_label') else shift),
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
                edits=_both(config, first.get('reduce_zero_label') is True),
            )


def _both(config: ReadConfig, likelier: bool) -> List[Edit]:
    asked = {
        True: 'Is 0 unlabelled in the files of every split, and do classes count from 1?',
        False: 'Is 0 a class in the files of every split?',
    }
    return [reduce_zero_label(Facts(config=config), shift, ASKS, asked[shift]) for shift in (likelier, not likelier)]
