from __future__ import annotations

from typing import Iterator

from mmguard.compat.stack import STACKS, find_stacks, install_command
from mmguard.findings.edits import ASKS, Edit
from mmguard.findings.environment import EnvironmentFacts, line_of
from mmguard.findings.finding import ERROR, WARNING, Finding
from mmguard.findings.installing import NEWEST
from mmguard.findings.rule import EnvironmentRule, Example


class MixedStacks(EnvironmentRule):
    """Packages of OpenMMLab together with their onedl forks."""

    code = 'MG502'
    summary = 'Packages of OpenMMLab are installed together with their onedl forks.'
    why = (
        'mmengine and onedl-mmengine (mmcv, mmseg, mmdet alike) write the same folder, and pip does not notice: of '
        'each file, the one installed last is there. Where no folder is shared, the stacks were never tested with '
        'each other.'
    )
    example = Example(wrong='mmengine and onedl-mmsegmentation', right='onedl-mmengine and onedl-mmsegmentation')
    limits = 'A fork that was installed under the name of the original is not seen.'
    advice = (
        'Uninstall all of them, then install those of the stack that your configs and checkpoints are made with; or '
        'make a new environment with versions that docs/stacks.md lists.'
    )

    def look(self, environment: EnvironmentFacts) -> Iterator[Finding]:
        found = find_stacks(environment.versions)
        if len(found) < 2:
            return
        twice = [
            module
            for module in next(iter(STACKS.values()))
            if all(set(modules[module]) & set(environment.versions) for modules in STACKS.values())
        ]
        shared = f'both stacks write the same folder {", ".join(twice)}: of each file, the last installed is there'
        apart = 'parts of both stacks, which were never tested with each other'
        ways, severity = [_one_stack(stack, environment) for stack in STACKS], ERROR if twice else WARNING
        places = ('stack', *map(line_of, twice))
        yield self.report(shared if twice else apart, severity=severity, edits=ways, places=places)


def _one_stack(stack: str, environment: EnvironmentFacts) -> Edit:
    """Install the modules that are there, from one stack."""
    installed = [name for names in find_stacks(environment.versions).values() for name in names]
    modules = [module for module in STACKS[stack] if module not in environment.missing]
    install = [install_command(module, [stack]) for module in modules]
    becomes = [(STACKS[stack][module][0], NEWEST) for module in modules]
    return Edit(
        f'Install only the packages of {stack}.',
        ASKS,
        f'Are your configs and checkpoints made with {stack}?',
        environment=(*((name, None) for name in installed), *becomes),
        commands=(f'pip uninstall -y {" ".join(installed)}', *install),
    )
