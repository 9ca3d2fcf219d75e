from __future__ import annotations

from typing import Iterator, List

from mmguard.config.parts import Part, heads
from mmguard.config.read import ReadConfig
from mmguard.findings.finding import WARNING, Finding
from mmguard.findings.rule import ConfigRule, Example
from mmguard.findings.usual_edits import propose


class UnusedParameters(ConfigRule):
    """A backbone stage that no head uses."""

    code = 'MG226'
    summary = 'No head reads the last stage of the backbone, and find_unused_parameters is not set.'
    title = 'The backbone has {outputs} outputs, but the heads read {read}: what comes after gets no gradient.'
    why = (
        'Its parameters get no gradient. On one GPU nothing happens; DistributedDataParallel waits for them and ends '
        'with "Expected to have finished reduction in the prior iteration".'
    )
    example = Example(wrong='out_indices=(0, 1, 2, 3); in_index=2', right='find_unused_parameters = True')
    limits = 'It looks at models of mmseg without a neck; branches that are skipped in some iterations are not seen.'
    advice = (
        'If the stage is not needed, leave it out of the backbone (num_stages, out_indices). If it is to stay, write '
        'find_unused_parameters=True.'
    )
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
            # Only a wrapper in the config itself is checked.
            where = 'model_wrapper_cfg.' if config.part('model_wrapper_cfg') else ''
            changes = (f'{where}find_unused_parameters', True)
            edit = propose('Let DistributedDataParallel find unused parameters.', changes)
            words = dict(outputs=len(outputs), read=sorted(set(read)))
            given = config.data.get('find_unused_parameters', False)
            yield self.report_at('find_unused_parameters', given, words, edits=[edit])


def _wrapper_finds(config: ReadConfig) -> bool:
    return bool(config.part('model_wrapper_cfg').get('find_unused_parameters'))
