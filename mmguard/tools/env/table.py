"""Lines of what is installed, with what is wrong and what to do, as plain text: rich may be what is broken."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Iterator, List, Sequence

from mmguard.compat.stack import stacks_among
from mmguard.findings import Finding
from mmguard.findings.environment import DISTRIBUTIONS, EnvironmentFacts, is_within, line_of, version_key
from mmguard.findings.finding import SEVERITIES
from mmguard.findings.installing import describe_limits
from mmguard.findings.rules.environment.mmcv_installation import LINE as OPS
from mmguard.findings.wording import finding_text
from mmguard.text.visible import visible

#: A terminal breaks lines where it ends.
_UNBROKEN = 1 << 20
OK = 'ok'
#: Shown only where they are installed.
_OPTIONAL = ('nnunetv2', 'torchvision')
#: What everything needs, and mmguard itself: of the others it is no fault that they are missing.
_NEEDED = ('torch', 'numpy', 'mmguard')


def show(lines: List[Line], findings: Sequence[Finding], verbose: bool = False) -> None:
    """Print the lines and the findings; ``verbose``: with all edits and notes."""
    width = max(len(line.name) for line in lines)
    for line in lines:
        codes = f'  ({", ".join(line.codes)})' if line.codes else ''
        print(visible(f'{line.level:<7}  {line.name:<{width}}  {line.found}{codes}'))
    for finding in findings:
        print(visible(f'\n{finding_text(finding, _UNBROKEN, verbose)}'))


@dataclass
class Line:
    """A line of ``mmguard env``: what it is about, what was found, the worst severity of its findings, their codes."""

    name: str
    found: str
    level: str = OK
    codes: List[str] = field(default_factory=list)


def table(environment: EnvironmentFacts, findings: Sequence[Finding]) -> List[Line]:
    """All lines, with what was found wrong with each."""
    lines = list(_lines(environment))
    for line in lines:
        about = [finding for finding in findings if line.name in finding.places]
        line.codes = [finding.code for finding in about]
        line.level = worst(about)
    return lines


def worst(findings: Sequence[Finding]) -> str:
    """The worst severity among findings; ``'ok'`` where there is none."""
    return min((finding.severity for finding in findings), key=SEVERITIES.index, default=OK)


def _lines(environment: EnvironmentFacts) -> Iterator[Line]:
    yield Line('python', f'{environment.python} on {environment.system}')
    yield Line('stack', _stack(environment))
    for module in DISTRIBUTIONS:
        if module not in _OPTIONAL or environment.installed(module) or module in environment.errors:
            yield Line(line_of(module), _package(module, environment))
    if environment.ops is not None:
        fails = 'mmcv.ops' in environment.errors and 'mmcv' not in environment.errors
        yield Line(OPS, 'not there' if not environment.ops else 'cannot be loaded' if fails else 'there')
    mmcv = environment.version('mmcv')
    for name, limits in environment.accepts.items() if mmcv else ():
        yield Line(f'mmcv for {name}', f'{mmcv}; accepted: {describe_limits(limits)}')
    if 'torch' not in environment.missing:
        yield Line('CUDA', _describe_cuda(environment))
    for name, versions in environment.tried.items():
        if environment.version(name):
            yield Line(f'mmguard with {name}', _among(environment.version(name), versions))


def _describe_cuda(environment: EnvironmentFacts) -> str:
    """Return what torch was built for, the driver and the GPUs."""
    built = 'the CPU' if environment.torch_cuda is None else f'CUDA {environment.torch_cuda}'
    driver = f'driver {environment.driver}, up to CUDA {environment.driver_cuda}' if environment.driver else ''
    gpus = f'; {", ".join(environment.gpus)}' if environment.gpus else ''
    unusable = ', which torch cannot use' if environment.cuda_available is False and gpus else ''
    return f'torch for {built}; {driver or "no NVIDIA driver"}{gpus}{unusable}'


def _stack(environment: EnvironmentFacts) -> str:
    found = stacks_among(environment.versions)
    if not found:
        return f'{"nnU-Net" if environment.version("nnunetv2") else "plain PyTorch"}, no mmengine'
    named = '; '.join(f'{stack}: {", ".join(names)}' for stack, names in found.items())
    return named if len(found) == 1 else f'mixed; {named}'


def _package(module: str, environment: EnvironmentFacts) -> str:
    found = ', '.join(f'{name} {version}' for name, version in environment.installed(module).items())
    if module not in environment.missing:
        return found or 'version unknown (not installed by pip)'
    if found:
        return f'{found}, but its files are missing'
    return f'not installed{"" if module in _NEEDED else "; needed only if you train with it"}'


def _among(version: str, versions: Sequence[str]) -> str:
    key = version_key(version)
    if any(version_key(one) == key for one in versions):
        return f'{version} was tried'
    if is_within(version, '', versions[0]):
        return f'{version} is not supported'
    newer = [one for one in versions if version_key(one) > key]
    before = versions[len(versions) - len(newer) - 1]
    place = f'between {before} and {newer[0]}, which were' if newer else f'newer than {before}, the last that was'
    return f'{version} was not tried; it is {place}'
