from __future__ import annotations

from typing import Iterator, List

from mmguard.config.parts import Part, heads
from mmguard.config.read import ReadConfig
from mmguard.findings.edits import SAFE, Edit
from mmguard.findings.finding import WARNING, Finding
from mmguard.findings.rule import ConfigRule


class UnusedParameters(ConfigRule):
    """Stages of the backbone that no head reads."""

    code = 'MG226'
    summary = 'No head reads the last stage of the backbone, and find_unused_parameters is not set.'
    why = (
        'Its parameters get no gradient. On one GPU nothing happens; DistributedDataParallel waits for them and ends '
        'with "Expected to have finished reduction in the prior iteration".'
    )
    advice = 'Write find_unused_parameters=True, or leave the stage out (num_stages, out_indices).'
    severity = WARNING

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        model = config.part('model')
        backbone = model.get('backbone')
        if config.scope != 'mmseg' or model.get('neck') or not isinstance(backbone, dict):
            return
        if config.data.get('find_unused_parameters') or _wrapper_finds(config):
            return
        outputs = Part('model.backbone', backbone, config.scope).get('out_indices')
        if not isinstance(outputs, (list, tuple)) or len(outputs) < 2 or not backbone.get('out_indices'):
            return
        read: List[int] = []
        readers = [head for head in heads(config) if head.key in ('decode_head', 'auxiliary_head')]
        for head in readers:
            index = head.get('in_index', -1)
            indices = index if isinstance(index, (list, tuple)) else [index]
            if not all(isinstance(i, int) for i in indices):
                return
            read += [i % len(outputs) for i in indices]
        if read and max(read) < len(outputs) - 1:
            # A wrapper that is written out is asked alone.
            where = 'model_wrapper_cfg.' if config.part('model_wrapper_cfg') else ''
            yield self.at(
                'find_unused_parameters',
                config.data.get('find_unused_parameters', False),
                f'The backbone has {len(outputs)} outputs (model.backbone.out_indices), the heads read '
                f'{sorted(set(read))}: what comes after gets no gradient.',
                edits=[Edit(self.advice, SAFE, '', ((f'{where}find_unused_parameters', True),))],
            )


def _wrapper_finds(config: ReadConfig) -> bool:
    return bool(config.part('model_wrapper_cfg').get('find_unused_parameters'))
