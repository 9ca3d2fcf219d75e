"""Rules about installed packages that are mixed with forks, cannot be imported, or have incompatible versions."""

from __future__ import annotations

import re
from typing import Dict, Iterator, Tuple

from mmguard.compat.stack import INSTALL, ONEDL, OPENMMLAB, STACKS, find_stacks, install_command
from mmguard.facts.environment import DISTRIBUTIONS, EnvironmentFacts
from mmguard.findings.edits import Edit
from mmguard.findings.finding import ERROR, WARNING, Finding
from mmguard.findings.rule import EnvironmentRule, Example

#: Text shown in place of a version that pip chooses.
NEWEST = 'newest'


class MixedStacks(EnvironmentRule):
    code = 'MG502'
    summary = 'Packages of OpenMMLab are installed together with their onedl forks.'
    why = (
        'A package and its fork (mmengine and onedl-mmengine) install into the same folder: the one installed last '
        'overwrites files of the other, and pip does not notice. Even in separate folders, packages and forks were '
        'never tested with each other.'
    )
    example = Example(wrong='mmengine and onedl-mmsegmentation', right='onedl-mmengine and onedl-mmsegmentation')
    limits = 'A fork that was installed under the name of the original package is not detected.'
    advice = (
        'Uninstall all of these packages, then install either the originals or the forks, as your configs and '
        'checkpoints require. Or create a new environment with versions from docs/stacks.md.'
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
        shared = f'a package and its fork share a folder ({", ".join(twice)}): the one installed last overwrote files'
        apart = 'packages of OpenMMLab and onedl forks are installed, which were never tested together'
        ways, severity = [_use_one_stack(stack, environment) for stack in STACKS], ERROR if twice else WARNING
        yield self.report(shared if twice else apart, severity=severity, edits=ways)


def _use_one_stack(stack: str, environment: EnvironmentFacts) -> Edit:
    """Return an edit that reinstalls the installed modules from one stack: OpenMMLab, or its onedl forks."""
    installed = [name for names in find_stacks(environment.versions).values() for name in names]
    modules = [module for module in STACKS[stack] if module not in environment.missing]
    install = [install_command(module, [stack]) for module in modules]
    becomes = {STACKS[stack][module][0]: NEWEST for module in modules}
    return Edit(
        f'Install only the packages of {stack}.',
        f'Are your configs and checkpoints made with {stack}?',
        environment={**dict.fromkeys(installed), **becomes},
        commands=(f'pip uninstall -y {" ".join(installed)}', *install),
    )


#: (module whose import fails or '' for any, lower-case part of the message, prefix of NumPy's version) -> edit.
KNOWN_CONFLICTS: Dict[Tuple[str, str, str], Edit] = {
    # https://numpy.org/devdocs/numpy_2_0_migration_guide.html
    ('', 'numpy', '2.'): Edit(
        'Install NumPy 1, which the package was compiled against.',
        environment={'numpy': '1.26.4'},
        commands=('pip install "numpy<2"',),
    ),
    # https://pypi.org/project/opencv-python/
    ('cv2', 'libgl', ''): Edit(
        'Install opencv-python-headless, which does not need libGL.',
        environment={'opencv-python': None, 'opencv-contrib-python': None, 'opencv-python-headless': NEWEST},
        commands=('pip uninstall -y opencv-python', 'pip install opencv-python-headless'),
    ),
    # https://github.com/pytorch/vision#installation
    ('torchvision', '', ''): Edit(
        'Uninstall torchvision (mmguard does not need it), or install the version for this torch.',
        environment={'torchvision': None},
        commands=('pip uninstall torchvision',),
    ),
}


class CannotImport(EnvironmentRule):
    code = 'MG506'
    summary = 'A package cannot be imported.'
    title = '{module} cannot be imported.'
    why = (
        'Code that uses the package fails. mmengine continues without a framework that cannot be imported, and then '
        'does not find the types of that framework.'
    )
    example = Example(wrong='numpy 2.1 with a package compiled against NumPy 1', right='pip install "numpy<2"')
    limits = 'Only a fixed list of packages is imported; failures only on a GPU or another machine are not detected.'
    advice = (
        'If the exception names another package, repair that package first; otherwise reinstall this package. If that '
        'does not help, create a new environment with versions from docs/stacks.md.'
    )

    def look(self, environment: EnvironmentFacts) -> Iterator[Finding]:
        for module, error in environment.errors.items():
            if module not in DISTRIBUTIONS or 'MMCV==' in error:  # MG508 gives advice on the version of mmcv
                continue
            numpy = environment.get_version('numpy')
            ways = [
                edit
                for (of, said, version), edit in KNOWN_CONFLICTS.items()
                if of in ('', module) and said in error.lower() and numpy.startswith(version)
            ]
            yield self.report(error, dict(module=module), edits=ways[:1], places=(module,))


class UnfitMmcv(EnvironmentRule):
    code = 'MG508'
    aliases = ('MG509',)
    summary = 'The installed mmcv is incompatible with a framework, or lacks its compiled ops.'
    title = 'mmcv {version} is incompatible with {names}.'
    title_ops = 'mmcv has no compiled ops.'
    title_torch = 'mmcv was compiled for a different torch version.'
    why = (
        'mmseg and mmdet check the version of mmcv at import and raise an AssertionError (MMCV==...). Deformable '
        'convolutions, NMS, RoIAlign and mmdet need the compiled ops, which work only with the versions of torch and '
        'CUDA that they were compiled for.'
    )
    example = Example(wrong='mmcv 2.2.0 with mmdet 3.3.0', right='mim install "mmcv>=2.0.0rc4,<2.2.0"')
    limits = 'An mmcv that the frameworks accept may still fail, for example if its ops were compiled for another GPU.'
    advice = (
        'Reinstall mmcv within the version limits shown; if mmcv has no wheel for your torch, mim compiles mmcv. If no '
        'version is accepted by all frameworks, create a new environment with versions from docs/stacks.md.'
    )

    def look(self, environment: EnvironmentFacts) -> Iterator[Finding]:
        ways, errors = [_reinstall_mmcv(environment)], environment.errors
        refusing = {module: error for module, error in errors.items() if 'MMCV==' in error}
        if refusing:
            words = dict(version=environment.get_version('mmcv'), names=' and '.join(refusing))
            evidence = '; '.join(dict.fromkeys(refusing.values()))
            yield self.report(evidence, words, edits=ways, places=tuple(refusing))
        if environment.ops is False:
            evidence = 'mmcv-lite has no ops' if 'mmcv-lite' in environment.versions else 'mmcv/_ext is not installed'
            severity = ERROR if 'mmdet' not in environment.missing else WARNING
            yield self.report(evidence, title=self.title_ops, severity=severity, edits=ways, places=('mmcv.ops',))
        elif environment.ops and 'mmcv.ops' in errors and 'mmcv' not in errors:
            evidence = f'{errors["mmcv.ops"]}; torch is {environment.get_version("torch") or "unknown"}'
            yield self.report(evidence, title=self.title_torch, edits=ways, places=('mmcv.ops',))


def _reinstall_mmcv(environment: EnvironmentFacts) -> Edit:
    """Return an edit that reinstalls mmcv in a version that the frameworks of the installed stack accept."""
    fork = list(find_stacks(environment.versions)) == [ONEDL]
    command, name = INSTALL[ONEDL if fork else OPENMMLAB]['mmcv'], STACKS[ONEDL if fork else OPENMMLAB]['mmcv'][0]
    if fork:  # for the installed torch, without replacing it
        command = command.replace('pip install', 'pip install --no-build-isolation')
    installed = list(environment.find_installed('mmcv')) or [name]
    return Edit(
        'Reinstall mmcv.',
        environment={**dict.fromkeys(installed), name: NEWEST},
        commands=(f'pip uninstall -y {" ".join(installed)}', command),
    )


#: First version of torch whose ``torch.load`` reads only tensors by default.
READS_ONLY_TENSORS = (2, 6)


class CheckpointsRefused(EnvironmentRule):
    code = 'MG515'
    severity = WARNING
    summary = 'The installed torch does not load the checkpoints of the installed mmengine.'
    title = 'torch {torch} does not load the checkpoints of mmengine {mmengine}.'
    why = (
        'Since torch 2.6, torch.load reads only tensors by default, but checkpoints of mmengine also contain the log '
        'of the run: resuming and testing end with "Weights only load failed".'
    )
    example = Example(
        wrong='python tools/train.py my_config.py --resume',
        right='TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD=1 python tools/train.py my_config.py --resume',
    )
    limits = 'Only the source of mmengine is read, not your checkpoints: files with only weights still load.'
    advice = (
        'Before you resume from or test a checkpoint that you trust, set `TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD=1`. '
        'Training from the start works without it.'
    )

    def look(self, environment: EnvironmentFacts) -> Iterator[Finding]:
        torch = environment.get_version('torch')
        number = tuple(map(int, re.findall('[0-9]+', torch)[:2]))
        if environment.reads_objects is False and number >= READS_ONLY_TENSORS:
            words = dict(torch=torch, mmengine=environment.get_version('mmengine'))
            evidence = 'mmengine/runner/checkpoint.py calls torch.load without weights_only'
            yield self.report(evidence, words, places=('mmengine',))
