"""Rules about the installation: packages that are mixed, missing, or do not fit each other."""

from __future__ import annotations

from typing import Dict, Iterator, List, Optional, Tuple

from mmguard.compat.stack import INSTALL, ONEDL, OPENMMLAB, STACKS, find_stacks, install_command
from mmguard.findings.edits import Edit
from mmguard.findings.environment import DISTRIBUTIONS, EnvironmentFacts, build_version_key, format_module, is_within
from mmguard.findings.finding import ERROR, WARNING, Finding
from mmguard.findings.rule import EnvironmentRule, Example

#: Version chosen by pip without limits: newer than any other.
NEWEST = '99'


def find_installer(distribution: str) -> str:
    """Return the installer of a distribution; mim finds OpenMMLab's wheels of mmcv."""
    return 'mim install' if distribution in ('mmcv', 'mmcv-full') else 'pip install'


def find_mmcv_limits(environment: EnvironmentFacts) -> Tuple[str, str]:
    """Return the mmcv versions that all frameworks accept, as (low, high); empty: no limit."""
    lows = [low for low, _ in environment.accepts.values() if low]
    highs = [high for _, high in environment.accepts.values() if high]
    return max(lows, key=build_version_key, default=''), min(highs, key=build_version_key, default='')


def describe_limits(limits: Tuple[str, str]) -> str:
    """Describe version limits: ``'from 2.0.0rc4 up to, not including, 2.2.0'``."""
    low, high = limits
    return ' '.join([f'from {low}'] * bool(low) + [f'up to, not including, {high}'] * bool(high))


def find_command(module: str, stack: str, environment: EnvironmentFacts) -> Tuple[str, Tuple[str, str]]:
    """Return the command that installs a module, and the packages that it installs; for mmcv, the newest accepted
    version."""
    name = STACKS[stack][module][0]
    low, high = find_mmcv_limits(environment) if module == 'mmcv' else ('', '')
    if not (low or high):
        return INSTALL[stack][module], (name, NEWEST)
    limits = ','.join([f'>={low}'] * bool(low) + [f'<{high}'] * bool(high))
    # The number of the last release before the limit is unknown, so a version just below the limit takes its place.
    return f'{find_installer(name)} "{name}{limits}"', (name, f'{high}dev0' if high else NEWEST)


def reinstall_mmcv(environment: EnvironmentFacts) -> Edit:
    """Return an edit that reinstalls mmcv in a version that all frameworks accept, from the installed stack."""
    fork = list(find_stacks(environment.versions)) == [ONEDL]
    command, becomes = find_command('mmcv', ONEDL if fork else OPENMMLAB, environment)
    if fork:  # for the installed torch, without replacing it
        command = command.replace('pip install', 'pip install --no-build-isolation')
    installed = list(environment.find_installed('mmcv')) or [becomes[0]]
    return Edit(
        'Reinstall mmcv.',
        environment=(*((one, None) for one in installed), becomes),
        commands=(f'pip uninstall -y {" ".join(installed)}', command),
    )


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
        places = ('stack', *map(format_module, twice))
        yield self.report(shared if twice else apart, severity=severity, edits=ways, places=places)


def _use_one_stack(stack: str, environment: EnvironmentFacts) -> Edit:
    """Return an edit that reinstalls the installed modules from one stack."""
    installed = [name for names in find_stacks(environment.versions).values() for name in names]
    modules = [module for module in STACKS[stack] if module not in environment.missing]
    install = [install_command(module, [stack]) for module in modules]
    becomes = [(STACKS[stack][module][0], NEWEST) for module in modules]
    return Edit(
        f'Install only the packages of {stack}.',
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
        'Install it from the same stack (OpenMMLab or onedl) as the other packages; add --force-reinstall if pip lists '
        'it as installed. If no version fits, make a new environment with versions that docs/stacks.md lists.'
    )

    def look(self, environment: EnvironmentFacts) -> Iterator[Finding]:
        for module in environment.missing:
            for name, version in list(environment.find_installed(module).items())[:1]:
                command = f'pip install --force-reinstall --no-deps {name}=={version}'
                edit = Edit(f'Reinstall {name}.', environment=((name, version),), commands=(command,))
                evidence, places = f'{name} {version}, but no module {module}', (format_module(module),)
                yield self.report(evidence, dict(name=name), self.title_files, edits=[edit], places=places)
        for module in ('torch', 'numpy', 'mmengine', 'mmcv'):
            if module not in environment.missing or environment.find_installed(module):
                continue
            needed, severity = _find_needing(module, environment.missing)
            if needed is not None:
                words, ways = dict(module=module, needing=needed), list(_offer_ways(module, environment))
                yield self.report(
                    f'no module {module}', words, severity=severity, edits=ways, places=(format_module(module),)
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
        yield Edit(f'Install {module}.', environment=(becomes,), commands=(f'pip install {module}',))
        return
    for stack in find_stacks(environment.versions) or STACKS:
        command, becomes = find_command(module, stack, environment)
        yield Edit(f'Install the {module} of {stack}.', environment=(becomes,), commands=(command,))


#: Module whose import raises (empty: any), words of the message in lower case, from which NumPy on -> what to do.
KNOWN_CONFLICTS: Dict[Tuple[str, str, str], Edit] = {
    # https://numpy.org/devdocs/numpy_2_0_migration_guide.html
    ('', 'numpy', '2'): Edit(
        'Install NumPy 1, for which the package was compiled.',
        environment=(('numpy', '1.26.4'),),
        commands=('pip install "numpy<2"',),
    ),
    # https://pypi.org/project/opencv-python/
    ('cv2', 'libgl', ''): Edit(
        'Install the OpenCV for servers, which does not need libGL.',
        environment=(('opencv-python', None), ('opencv-contrib-python', None), ('opencv-python-headless', NEWEST)),
        commands=('pip uninstall -y opencv-python', 'pip install opencv-python-headless'),
    ),
    # https://github.com/pytorch/vision#installation
    ('torchvision', '', ''): Edit(
        'Uninstall torchvision, which mmguard does not need, or install the one for this torch.',
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
                for (of, said, numpy), edit in KNOWN_CONFLICTS.items()
                if of in ('', module) and said in error.lower() and (not numpy or environment.is_from('numpy', numpy))
            ]
            yield self.report(error, dict(module=module), edits=ways[:1], places=(format_module(module),))


#: First mmcv version that uses mmengine.
_FIRST = '2.0.0dev0'
#: Line of the ops in the table.
OPS = "mmcv's compiled ops"


class UnfitVersions(EnvironmentRule):
    """Versions that mmguard does not support."""

    code = 'MG507'
    aliases = ('MG512',)
    summary = 'Packages are installed in versions that mmguard does not support.'
    title = '{name} {version} is too old: mmguard needs {oldest} or newer.'
    why = 'mmguard is not tested with torch or numpy below its minimum versions.'
    example = Example(wrong='torch 1.10', right='pip install "torch>=1.13"')
    limits = (
        'It does not know versions that are too new, or pairs that do not work together: the import shows them (MG506).'
    )
    advice = (
        'Install a newer version. If that does not fit the rest, make a new environment with versions that '
        'docs/stacks.md lists.'
    )

    def look(self, environment: EnvironmentFacts) -> Iterator[Finding]:
        for name, versions in environment.tried.items():
            version = environment.get_version(name)
            if version and versions and is_within(version, '', versions[0]):
                command, becomes = f'pip install "{name}>={versions[0]}"', (name, versions[-1])
                edit = Edit(f'Install a newer {name}.', environment=(becomes,), commands=(command,))
                words, places = dict(name=name, version=version, oldest=versions[0]), (f'mmguard with {name}',)
                yield self.report(f'{name} {version}', words, edits=[edit], places=places)


class UnfitMmcv(EnvironmentRule):
    """An mmcv that a framework refuses, without ops, or with ops for another torch."""

    code = 'MG508'
    aliases = ('MG509',)
    summary = 'The installed mmcv has a version that a framework refuses, or lacks its compiled ops.'
    title = 'mmcv {version} is not accepted by {names}.'
    title_old = 'mmcv {version} belongs to mmseg 0.x and mmdet 2.x.'
    title_ops = 'mmcv has no compiled ops.'
    title_torch = 'mmcv was compiled for a different torch version.'
    why = (
        'mmseg and mmdet look at the version when they are imported, and end with an AssertionError (MMCV==...). '
        'Deformable convolutions, NMS, RoIAlign and mmdet need the ops, which are compiled for one torch and one CUDA.'
    )
    example = Example(wrong='mmcv 2.2.0 with mmdet 3.3.0', right='mim install "mmcv>=2.0.0rc4,<2.2.0"')
    limits = (
        'An mmcv within the limits that the frameworks state may still fail, for example if its ops were compiled for '
        'another GPU.'
    )
    advice = (
        'Reinstall mmcv within the limits shown: mim takes the wheel for the installed torch, or compiles it, which '
        'takes minutes. Without a wheel, or a version that all frameworks accept, make a new environment with '
        'versions that docs/stacks.md lists.'
    )

    def look(self, environment: EnvironmentFacts) -> Iterator[Finding]:
        version, ways = environment.get_version('mmcv'), [reinstall_mmcv(environment)]
        refusing = {
            name: limits for name, limits in environment.accepts.items() if version and not is_within(version, *limits)
        }
        is_old = bool(version) and not is_within(version, _FIRST)
        if refusing or is_old:
            said = [f'{name} accepts {describe_limits(limits)}' for name, limits in refusing.items()]
            broken = [format_module(name) for name in refusing if 'MMCV' in environment.errors.get(name, '')]
            title, words = self.title_old if is_old else self.title, dict(version=version, names=' and '.join(refusing))
            places = (*[format_module('mmcv')] * is_old, *(f'mmcv for {name}' for name in refusing), *broken)
            yield self.report('; '.join([f'mmcv {version}', *said]), words, title, edits=ways, places=places)
        if environment.ops is False:
            evidence = 'mmcv-lite has none' if 'mmcv-lite' in environment.versions else 'no mmcv/_ext in its folder'
            severity = ERROR if 'mmdet' not in environment.missing else WARNING
            yield self.report(evidence, title=self.title_ops, severity=severity, edits=ways, places=(OPS,))
        elif environment.ops and 'mmcv.ops' in environment.errors and 'mmcv' not in environment.errors:
            evidence = f'{environment.errors["mmcv.ops"]}; torch is {environment.get_version("torch") or "unknown"}'
            yield self.report(evidence, title=self.title_torch, edits=ways, places=(OPS,))
