from __future__ import annotations

from typing import Iterator

from mmguard.findings.edits import ASKS, Edit
from mmguard.findings.environment import EnvironmentFacts
from mmguard.findings.finding import WARNING, Finding
from mmguard.findings.rule import EnvironmentRule

#: The variable with which torch loads whole objects, as it did before.
ALL = 'TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD'


class ResumeFails(EnvironmentRule):
    """mmengine's checkpoints hold more than weights, and torch loads weights only."""

    code = 'MG511'
    summary = 'mmengine cannot load its own checkpoints under this torch.'
    why = (
        'From 2.6 on torch.load takes weights only, where nothing else is said '
        '(https://github.com/pytorch/pytorch/releases/tag/v2.6.0), and this mmengine says nothing: resume and '
        'load_from of its checkpoints end with "Weights only load failed".'
    )
    advice = f'For checkpoints that you trust: `export {ALL}=1`.'
    severity = WARNING

    def look(self, environment: EnvironmentFacts) -> Iterator[Finding]:
        loads_all = environment.loads_weights_only or environment.variables.get(ALL) in ('1', 'y', 'yes', 'true')
        if 'mmengine' in environment.missing or loads_all or not environment.is_from('torch', '2.6'):
            return
        yield self.found(
            self.summary,
            f'torch {environment.version("torch")} loads weights only by default, and mmengine does not ask for more',
            edits=[Edit(f'`export {ALL}=1`', ASKS, 'Do you trust your checkpoints?', environment=((f'${ALL}', '1'),))],
            places=('resuming a run',),
        )
