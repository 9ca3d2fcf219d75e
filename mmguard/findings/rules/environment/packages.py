"""Packages that are mixed, missing, or cannot be imported."""

from __future__ import annotations

from typing import Dict, Iterator, List, Optional, Tuple

from mmguard.compat.stack import STACKS, find_stacks, install_command
from mmguard.findings.edits import ASKS, SAFE, Edit
from mmguard.findings.environment import DISTRIBUTIONS, EnvironmentFacts, line_of
from mmguard.findings.finding import ERROR, WARNING, Finding
from mmguard.findings.installing import NEWEST, find_command
from mmguard.findings.rule import EnvironmentRule, Example


class MixedStacks(EnvironmentRule):
    """Packages of OpenMMLab together with their onedl forks."""

    code = 'MG502'
    summary = 'Packages of OpenMMLab are installed together with their onedl forks.'
    why = (
        'mmengine and onedl-mmengine (mmcv, mmseg, mmdet alike) write the same folder: the one installed last '
        'overwrites files of the other, and pip does not notice. Where no folder is shared, the stacks were never '
        'tested with each other.'
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
        shared = (
            f'both stacks write the same folder {", ".join(twice)}: each file is that of the package installed last'
        )
        apart = 'parts of both stacks, which were never tested with each other'
        ways, severity = [_use_one_stack(stack, environment) for stack in STACKS], ERROR if twice else WARNING
        places = ('stack', *map(line_of, twice))
        yield self.report(shared if twice else apart, severity=severity, edits=ways, places=places)


def _use_one_stack(stack: str, environment: EnvironmentFacts) -> Edit:
    """Reinstall the installed modules from one stack."""
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


class PackageMissing(EnvironmentRule):
    """A package that another one needs, or that pip lists, but Python does not find."""

    code = 'MG505'
    aliases = ('MG504',)
    summary = 'A package is missing.'
    title = 'A required package is missing: {module} (needed by {needing}).'
    title_files = '{name} is installed, but its files are missing.'
    why = (
        'mmguard needs torch and numpy, mmseg and mmdet need mmengine and mmcv: their import fails. Where only the '
        'files are missing, pip install says "Requirement already satisfied".'
    )
    example = Example(wrong='pip install mmsegmentation', right='pip install mmsegmentation mmengine; mim install mmcv')
    limits = (
        'It does not see other packages that a framework needs, nor files missing in part: the import does (MG506).'
    )
    advice = (
        'Install it from the same stack (OpenMMLab or onedl) as the other packages; add --force-reinstall if pip '
        'lists it. If no version fits, make a new environment with versions that docs/stacks.md lists.'
    )

    def look(self, environment: EnvironmentFacts) -> Iterator[Finding]:
        for module in environment.missing:
            for name, version in list(environment.find_installed(module).items())[:1]:
                command = f'pip install --force-reinstall --no-deps {name}=={version}'
                edit = Edit(f'Reinstall {name}.', SAFE, environment=((name, version),), commands=(command,))
                evidence, places = f'{name} {version}, but no module {module}', (line_of(module),)
                yield self.report(evidence, dict(name=name), self.title_files, edits=[edit], places=places)
        for module in ('torch', 'numpy', 'mmengine', 'mmcv'):
            if module not in environment.missing or environment.find_installed(module):
                continue
            needed, severity = _find_needing(module, environment.missing)
            if needed is not None:
                words, ways = dict(module=module, needing=needed), list(_offer_ways(module, environment))
                yield self.report(
                    f'no module {module}', words, severity=severity, edits=ways, places=(line_of(module),)
                )


def _find_needing(module: str, missing: List[str]) -> Tuple[Optional[str], str]:
    if module in ('torch', 'numpy'):
        return 'mmguard', ERROR
    needing = [name for name in ('mmseg', 'mmdet') if name not in missing]
    if needing:
        return ' and '.join(needing), ERROR
    if module == 'mmcv' and 'mmengine' not in missing:
        return 'GuardSegLabels and GuardInstanceLabels', WARNING
    return None, ''


def _offer_ways(module: str, environment: EnvironmentFacts) -> Iterator[Edit]:
    if module not in next(iter(STACKS.values())):
        becomes = (DISTRIBUTIONS[module][0], NEWEST)
        yield Edit(f'Install {module}.', SAFE, environment=(becomes,), commands=(f'pip install {module}',))
        return
    for stack in find_stacks(environment.versions) or STACKS:
        command, becomes = find_command(module, stack, environment)
        yield Edit(f'Install the {module} of {stack}.', SAFE, environment=(becomes,), commands=(command,))


#: Module whose import raises (empty: any), words of the message in lower case, from which NumPy on -> what to do.
KNOWN: Dict[Tuple[str, str, str], Edit] = {
    # https://numpy.org/devdocs/numpy_2_0_migration_guide.html
    ('', 'numpy', '2'): Edit(
        'Install NumPy 1, for which the package was compiled.',
        SAFE,
        environment=(('numpy', '1.26.4'),),
        commands=('pip install "numpy<2"',),
    ),
    # https://pypi.org/project/opencv-python/
    ('cv2', 'libgl', ''): Edit(
        'Install the OpenCV for servers, which does not need libGL.',
        SAFE,
        environment=(('opencv-python', None), ('opencv-contrib-python', None), ('opencv-python-headless', NEWEST)),
        commands=('pip uninstall -y opencv-python', 'pip install opencv-python-headless'),
    ),
    # https://github.com/pytorch/vision#installation
    ('torchvision', '', ''): Edit(
        'Uninstall torchvision, which mmguard does not need, or install the one for this torch.',
        SAFE,
        environment=(('torchvision', None),),
        commands=('pip uninstall torchvision',),
    ),
}


class CannotImport(EnvironmentRule):
    """An installed package that cannot be imported."""

    code = 'MG506'
    summary = 'A package cannot be imported.'
    title = '{module} cannot be imported.'
    why = (
        'Everything that uses it fails; mmengine continues without a framework that cannot be imported, and then does '
        'not know its types.'
    )
    example = Example(wrong='numpy 2.1 with a package compiled against NumPy 1', right='pip install "numpy<2"')
    limits = (
        'It imports the packages of its table; an import that fails only with a GPU or on another machine is not seen.'
    )
    advice = (
        'Read the exception. If it names another package, correct that one first; if not, reinstall this one. If that '
        'does not help, make a new environment with versions that docs/stacks.md lists.'
    )

    def look(self, environment: EnvironmentFacts) -> Iterator[Finding]:
        for module, error in environment.errors.items():
            if module not in DISTRIBUTIONS or 'MMCV==' in error:  # MG508 gives advice on the version of mmcv
                continue
            ways = [
                edit
                for (of, said, numpy), edit in KNOWN.items()
                if of in ('', module) and said in error.lower() and (not numpy or environment.is_from('numpy', numpy))
            ]
            yield self.report(error, dict(module=module), edits=ways[:1], places=(line_of(module),))
