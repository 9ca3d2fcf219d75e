from __future__ import annotations

from typing import Iterator

from mmguard.compat.stack import STACKS, install_words, stacks_among
from mmguard.findings.edits import ASKS, Edit
from mmguard.findings.environment import EnvironmentFacts, line_of
from mmguard.findings.finding import ERROR, WARNING, Finding
from mmguard.findings.installing import NEWEST
from mmguard.findings.rule import EnvironmentRule


class MixedStacks(EnvironmentRule):
    """OpenMMLab's packages beside their onedl forks."""

    code = 'MG502'
    summary = 'Packages of OpenMMLab stand beside their onedl forks.'
    why = (
        'mmengine and onedl-mmengine (mmcv, mmseg, mmdet alike) write the same folder, and pip does not notice: of '
        'each file, the one installed last is there. Where no folder is shared, nobody has tested one stack with the '
        'other.'
    )
    advice = 'Uninstall all of them, then install those of one stack.'

    def look(self, environment: EnvironmentFacts) -> Iterator[Finding]:
        found = stacks_among(environment.versions)
        if len(found) < 2:
            return
        twice = [
            module
            for module in next(iter(STACKS.values()))
            if all(set(modules[module]) & set(environment.versions) for modules in STACKS.values())
        ]
        shared = f'both stacks write the same folder {", ".join(twice)}: of each file, the last installed is there'
        yield self.found(
            self.summary,
            shared if twice else 'parts of both stacks, which were never tested with each other',
            severity=ERROR if twice else WARNING,
            edits=[_one_stack(stack, environment) for stack in STACKS],
            places=('stack', *map(line_of, twice)),
        )


def _one_stack(stack: str, environment: EnvironmentFacts) -> Edit:
    """Of the modules that are there, from one stack."""
    installed = [name for names in stacks_among(environment.versions).values() for name in names]
    modules = [module for module in STACKS[stack] if module not in environment.missing]
    install = '; '.join(install_words(module, [stack]) for module in modules)
    becomes = [(STACKS[stack][module][0], NEWEST) for module in modules]
    return Edit(
        f'`pip uninstall -y {" ".join(installed)}`, then `{install}` ({stack})',
        ASKS,
        f'Are your configs and checkpoints made with {stack}?',
        environment=(*((name, None) for name in installed), *becomes),
    )
