"""Facts about the installation, from metadata, sources and imports tried in a child process; and their table."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

from mmguard.compat.stack import find_module_folder, find_stacks, list_distributions
from mmguard.files.regular import read_regular
from mmguard.findings import Finding
from mmguard.findings.environment import DISTRIBUTIONS, EnvironmentFacts, build_version_key, format_module, is_within
from mmguard.findings.finding import SEVERITIES
from mmguard.findings.messages import format_finding
from mmguard.findings.rules.environment import OPS, describe_limits
from mmguard.text import visible
from mmguard.tools.child import build_python_command

#: Lower limit (included) and upper limit (excluded); empty: no limit.
Limits = Tuple[str, str]
#: Rows of versions (``torch``, ``numpy``, ``python``) with the result of the tests.
TRIED_FILE = Path(__file__).with_name('tried.json')
#: Import order; compiled modules come last in each package.
IMPORTS = (
    'numpy',
    'torch',
    'cv2',
    'mmengine',
    'mmcv',
    'mmcv.ops',
    'mmseg',
    'mmdet',
    'torchvision',
    'nnunetv2',
    'mmguard',
)
IMPORT_TIMEOUT = 180
_CHILD_CODE = """
import importlib, json, sys, warnings
warnings.simplefilter('ignore')
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
        error = ''
    except BaseException as caught:
        error = type(caught).__name__ + ': ' + str(caught)
    print('@mmguard', json.dumps([name, error]), flush=True)
if 'torch' in sys.modules and sys.modules['torch'].version.cuda:
    print('@mmguard', json.dumps(['cuda', str(sys.modules['torch'].cuda.is_available())]), flush=True)
"""


def read_accepted_mmcv(folder: Optional[Path]) -> Optional[Limits]:
    """Return the limits of mmcv that a framework's ``__init__.py`` checks on import; ``None`` if it has none."""
    text = _read_text(folder, '__init__.py')
    said = re.findall(r"^(?:MMCV|mmcv)_(MIN|MAX|minimum|maximum)\w*\s*=\s*'([^']+)'", text, re.MULTILINE)
    limits = {key[:3].lower(): version for key, version in said}
    return (limits['min'], limits['max']) if len(limits) == 2 else None


def read_declared_mmcv(module: str) -> Optional[Limits]:
    """Return the limits of mmcv in a framework's metadata, else ``None``: onedl's do not check it on import."""
    for name in list_distributions(module):
        try:
            requirements = metadata.requires(name) or []
        except Exception:  # missing, or metadata that is broken
            continue
        for requirement in requirements:
            limits = parse_limits(requirement)
            if limits is not None:
                return limits
    return None


def parse_limits(requirement: str) -> Optional[Limits]:
    """Return the version limits of a requirement if it is one of mmcv with limits; else ``None``.

    Example:
        >>> parse_limits('onedl-mmcv>=2.0.0; extra == "mminstall"')
        ('2.0.0', '')
        >>> parse_limits("mmcv <2.2.0,>=2.0.0rc4 ; extra == 'mim'")
        ('2.0.0rc4', '2.2.0')
        >>> parse_limits('numpy>=1.20')
    """
    named = re.match(r'[\w.-]*\w', requirement)
    if named is None or named.group() not in list_distributions('mmcv'):
        return None
    limits = dict(re.findall(r'(>=|<)\s*([\w.]+)', requirement.partition(';')[0]))
    return (limits.get('>=', ''), limits.get('<', '')) if limits else None


def read_matrix() -> List[Dict[str, Any]]:
    """Return the rows of ``make matrix`` in which every test passed or was skipped."""
    return [row for row in json.loads(read_regular(TRIED_FILE)) if not row['failed']]


def gather(try_imports: bool = True) -> EnvironmentFacts:
    """Collect facts about this installation, and import every package once in a child process."""
    facts = EnvironmentFacts(python=platform.python_version(), system=platform.platform())
    for module, distributions in DISTRIBUTIONS.items():
        for name in distributions:
            version = _read_version(name)
            if version is not None:
                facts.versions[name] = version
        if find_module_folder(module) is None:
            facts.missing.append(module)
    facts.torch_cuda = _find_torch_cuda()
    _ask_driver(facts)
    mmcv = find_module_folder('mmcv')
    if mmcv is not None:
        facts.ops = any(mmcv.glob('_ext*')) or any(mmcv.glob('_ext/*'))
    for module in ('mmseg', 'mmdet'):
        limits = read_accepted_mmcv(find_module_folder(module)) or read_declared_mmcv(module)
        if limits is not None:
            facts.accepts[module] = limits
    facts.tried = {
        name: sorted({row[name] for row in read_matrix()}, key=build_version_key) for name in ('torch', 'numpy')
    }
    if try_imports:
        names = [n for n in IMPORTS if n.split('.')[0] not in facts.missing and (n != 'mmcv.ops' or facts.ops)]
        facts.errors, facts.cuda_available = import_errors(names)
    return facts


def _read_version(distribution: str) -> Optional[str]:
    try:
        return metadata.version(distribution)
    except Exception:  # missing, or metadata that is broken
        return None


def _read_text(folder: Optional[Path], name: str) -> str:
    try:
        return '' if folder is None else read_regular(folder / name).decode(errors='replace')
    except OSError:
        return ''


def _find_torch_cuda() -> Optional[str]:
    found = re.search(
        r"^cuda\b[^=\n]*=\s*'([\d.]+)'", _read_text(find_module_folder('torch'), 'version.py'), re.MULTILINE
    )
    return found.group(1) if found else None


def _ask_driver(facts: EnvironmentFacts) -> None:
    program = shutil.which('nvidia-smi')
    # If PATH has '.', or on Windows, it may be a program in the working directory.
    if program is None or not os.path.isabs(program) or os.path.samefile(os.path.dirname(program), os.curdir):
        return
    for arguments in ([], ['--query-gpu=driver_version,name', '--format=csv,noheader']):
        try:
            done = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=30)
        except (OSError, subprocess.SubprocessError):
            return
        if done.returncode:
            continue
        if not arguments:
            found = re.search(r'CUDA Version:\s*([\d.]+)', done.stdout)
            facts.driver_cuda = found.group(1) if found else None
            continue
        for line in done.stdout.splitlines():
            driver, _, name = line.partition(', ')
            facts.driver, facts.gpus = driver.strip(), [*facts.gpus, name.strip()]


def import_errors(names: Sequence[str]) -> Tuple[Dict[str, str], Optional[bool]]:
    """Import modules in a child process, so that a crash or hang does no harm.

    Return name -> why the module cannot be imported, and whether torch can use a GPU (``None``: unknown).
    """
    errors: Dict[str, str] = {}
    available: Optional[bool] = None
    left = list(names)
    # Asking the driver by NVML starts no CUDA.
    env = {**os.environ, 'PYTORCH_NVML_BASED_CUDA_CHECK': '1'}
    while left:
        try:
            done = subprocess.run(
                [*build_python_command(_CHILD_CODE), *left],
                capture_output=True,
                text=True,
                timeout=IMPORT_TIMEOUT,
                env=env,
            )
            output, how = (
                done.stdout,
                f'the interpreter ended (exit code {done.returncode}) {_get_last_line(done.stderr)}',
            )
        except subprocess.TimeoutExpired as error:
            output = error.stdout.decode() if isinstance(error.stdout, bytes) else error.stdout or ''
            how = f'still not imported after {IMPORT_TIMEOUT} s'
        for line in output.splitlines():
            if not line.startswith('@mmguard '):  # output of a package
                continue
            name, result = json.loads(line[len('@mmguard ') :])
            if name == 'cuda':
                available = result == 'True'
                continue
            left.remove(name)
            if result:
                errors[name] = ' '.join(result.split())
        if left:  # the child ended while it imported the first of these
            errors[left.pop(0)] = how.strip()
    return errors, available


def _get_last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1][:200] if lines else ''


#: Width at which no line is broken: a terminal wraps long lines itself.
_UNBROKEN = 1 << 20
OK = 'ok'
#: Modules that are shown only if they are installed.
_OPTIONAL = ('nnunetv2', 'torchvision')
#: Required packages, and mmguard itself: only these must be installed.
_NEEDED = ('torch', 'numpy', 'mmguard')


def show(lines: List[EnvironmentLine], findings: Sequence[Finding], verbose: bool = False) -> None:
    """Print the lines and the findings; ``verbose``: with all edits and notes."""
    width = max(len(line.name) for line in lines)
    for line in lines:
        codes = f'  ({", ".join(line.codes)})' if line.codes else ''
        print(visible(f'{line.level:<7}  {line.name:<{width}}  {line.found}{codes}'))
    for finding in findings:
        print(visible(f'\n{format_finding(finding, _UNBROKEN, verbose)}'))


@dataclass
class EnvironmentLine:
    """A line of ``mmguard env``: its subject and content, the worst severity of its findings, and their codes."""

    name: str
    found: str
    level: str = OK
    codes: List[str] = field(default_factory=list)


def build_table(environment: EnvironmentFacts, findings: Sequence[Finding]) -> List[EnvironmentLine]:
    """Return all lines, with their findings."""
    lines = list(_build_lines(environment))
    for line in lines:
        about = [finding for finding in findings if line.name in finding.places]
        line.codes = [finding.code for finding in about]
        line.level = find_worst(about)
    return lines


def find_worst(findings: Sequence[Finding]) -> str:
    """Return the worst severity among findings; ``'ok'`` without findings."""
    return min((finding.severity for finding in findings), key=SEVERITIES.index, default=OK)


def _build_lines(environment: EnvironmentFacts) -> Iterator[EnvironmentLine]:
    yield EnvironmentLine('python', f'{environment.python} on {environment.system}')
    yield EnvironmentLine('stack', _stack(environment))
    for module in DISTRIBUTIONS:
        if module not in _OPTIONAL or environment.find_installed(module) or module in environment.errors:
            yield EnvironmentLine(format_module(module), _describe_package(module, environment))
    if environment.ops is not None:
        fails = 'mmcv.ops' in environment.errors and 'mmcv' not in environment.errors
        yield EnvironmentLine(OPS, 'missing' if not environment.ops else 'cannot be loaded' if fails else 'found')
    mmcv = environment.get_version('mmcv')
    for name, limits in environment.accepts.items() if mmcv else ():
        yield EnvironmentLine(f'mmcv for {name}', f'{mmcv}; accepted: {describe_limits(limits)}')
    if 'torch' not in environment.missing:
        yield EnvironmentLine('CUDA', _describe_cuda(environment))
    for name, versions in environment.tried.items():
        if environment.get_version(name):
            yield EnvironmentLine(f'mmguard with {name}', _find_among(environment.get_version(name), versions))


def _describe_cuda(environment: EnvironmentFacts) -> str:
    """Describe the CUDA version of torch, the driver and the GPUs."""
    built = 'the CPU' if environment.torch_cuda is None else f'CUDA {environment.torch_cuda}'
    driver = f'driver {environment.driver}, up to CUDA {environment.driver_cuda}' if environment.driver else ''
    gpus = f'; {", ".join(environment.gpus)}' if environment.gpus else ''
    unusable = ', which torch cannot use' if environment.cuda_available is False and gpus else ''
    return f'torch for {built}; {driver or "no NVIDIA driver"}{gpus}{unusable}'


def _stack(environment: EnvironmentFacts) -> str:
    found = find_stacks(environment.versions)
    if not found:
        return f'{"nnU-Net" if environment.get_version("nnunetv2") else "plain PyTorch"}, no mmengine'
    named = '; '.join(f'{stack}: {", ".join(names)}' for stack, names in found.items())
    return named if len(found) == 1 else f'mixed; {named}'


def _describe_package(module: str, environment: EnvironmentFacts) -> str:
    found = ', '.join(f'{name} {version}' for name, version in environment.find_installed(module).items())
    if module not in environment.missing:
        return found or 'version unknown (not installed by pip)'
    if found:
        return f'{found}, but its files are missing'
    return f'not installed{"" if module in _NEEDED else "; needed only if you train with it"}'


def _find_among(version: str, versions: Sequence[str]) -> str:
    key = build_version_key(version)
    if any(build_version_key(one) == key for one in versions):
        return f'{version} was tested'
    if is_within(version, '', versions[0]):
        return f'{version} is not supported'
    newer = [one for one in versions if build_version_key(one) > key]
    before = versions[len(versions) - len(newer) - 1]
    place = (
        f'between {before} and {newer[0]}, which were tested'
        if newer
        else f'newer than {before}, the last version tested'
    )
    return f'{version} was not tested; it is {place}'
