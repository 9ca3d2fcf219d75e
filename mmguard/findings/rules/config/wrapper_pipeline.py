from __future__ import annotations

from typing import Iterator

from mmguard.config.changes import REMOVED
from mmguard.config.classes import takes
from mmguard.config.parts import Part, datasets
from mmguard.config.read import ReadConfig
from mmguard.findings.finding import Finding
from mmguard.findings.rule import ConfigRule, Example
from mmguard.findings.usual_edits import propose
from mmguard.findings.views import listing


class WrapperPipeline(ConfigRule):
    """A pipeline given to a wrapper of data sets, which takes none."""

    code = 'MG254'
    summary = 'A wrapper of data sets (RepeatDataset, ConcatDataset) is given a pipeline, which it does not take.'
    title = '{kind} takes no pipeline, but the data sets in it do: {places}.'
    why = (
        'The wrapper cannot be built: "unexpected keyword argument \'pipeline\'". The data sets inside have pipelines.'
    )
    example = Example(
        wrong="dict(type='RepeatDataset', pipeline=[...], dataset=dict(...))",
        right="dict(type='RepeatDataset', dataset=dict(..., pipeline=[...]))",
    )
    limits = 'A wrapper of your own that takes a pipeline is right, and is not reported.'
    advice = 'Write the pipeline in every data set inside of the wrapper.'
    # It names transforms of the pipeline that cannot be built.

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        for wrapper in datasets(config, wrappers=True):
            pipeline = wrapper.config.get('pipeline')
            if pipeline is None or wrapper.cls is None or takes(wrapper.cls, 'pipeline'):
                continue
            inner = [one.at('pipeline') for one in datasets(config) if _is_inside(one, wrapper)]
            words, place = dict(kind=wrapper.name, places=listing(inner)), wrapper.at('pipeline')
            changes = ((place, REMOVED), *((one, pipeline) for one in inner))
            line = f'pipeline of {wrapper.path} at {listing(inner)}'
            edit = propose('Move the pipeline into the data sets.', *changes, lines=(line,))
            steps = [step.get('type') for step in pipeline if isinstance(step, dict)]
            yield self.report_at(place, steps, words, edits=[edit])


def _is_inside(dataset: Part, wrapper: Part) -> bool:
    owner = dataset.owner
    while owner is not None and owner.path != wrapper.path:
        owner = owner.owner
    return owner is not None
