from __future__ import annotations

from typing import Iterator

from mmguard.config.changes import REMOVED
from mmguard.config.classes import takes
from mmguard.config.parts import Part, datasets
from mmguard.config.read import ReadConfig
from mmguard.findings.edits import SAFE, Edit
from mmguard.findings.finding import Finding
from mmguard.findings.rule import ConfigRule


class WrapperPipeline(ConfigRule):
    """A pipeline given to a wrapper of data sets, which takes none."""

    code = 'MG254'
    summary = 'A wrapper of data sets (RepeatDataset, ConcatDataset) is given a pipeline, which it does not take.'
    why = (
        'The wrapper cannot be built: "unexpected keyword argument \'pipeline\'". The data sets inside have pipelines.'
    )
    advice = 'Write the pipeline in the data sets inside of the wrapper.'
    # It names transforms of the pipeline that cannot be built.

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        for wrapper in datasets(config, wrappers=True):
            pipeline = wrapper.config.get('pipeline')
            if pipeline is None or wrapper.cls is None or takes(wrapper.cls, 'pipeline'):
                continue
            inner = [one for one in datasets(config) if _is_inside(one, wrapper)]
            changes = tuple((one.at('pipeline'), pipeline) for one in inner)
            places = ', '.join(one.at('pipeline') for one in inner)
            yield self.at(
                wrapper.at('pipeline'),
                [step.get('type') for step in pipeline if isinstance(step, dict)],
                f'{wrapper.name} takes no pipeline; its data sets do.',
                f'Write it at {places}.',
                edits=[Edit(f'Write it at {places}.', SAFE, '', ((wrapper.at('pipeline'), REMOVED), *changes))],
            )


def _is_inside(dataset: Part, wrapper: Part) -> bool:
    owner = dataset.owner
    while owner is not None and owner.path != wrapper.path:
        owner = owner.owner
    return owner is not None
