"""Command ``mmguard env``, which prints packages, conflicts, and the command that installs mmseg and mmdet here."""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import subprocess
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from mmguard.commands import CLEAN, FOUND
from mmguard.commands.arguments import VERBOSE, add_arguments
from mmguard.commands.child import build_python_command
from mmguard.compat.stack import ONEDL, OPENMMLAB, find_module_folder, find_stacks
from mmguard.facts.environment import DISTRIBUTIONS, Cuda, EnvironmentFacts
from mmguard.files.regular import read_regular

_ARGUMENTS = """\
--json FILE  write the lines and findings as JSON (-: to standard output)
--no-import  do not import the packages: faster, but finds fewer problems
"""


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        'env',
        help='list the installed packages, their conflicts, and how to resolve the conflicts',
        description='Prints one line each for Python, the stack (OpenMMLab, onedl), torch and its CUDA, NumPy, OpenCV, '
        'mmengine, mmcv and its ops, mmsegmentation and mmdetection. Then prints what is wrong (MG5xx), what to do, '
        'and the command that installs mmsegmentation and mmdetection for this Python, torch and GPU. Exit code: 1 if '
        'there is an error, else 0. Packages are imported in a child process; --no-import only reads files.',
    )
    add_arguments(parser, _ARGUMENTS + VERBOSE)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from mmguard.commands.outputs import write_json
    from mmguard.findings.engine import diagnose
    from mmguard.findings.finding import ERROR
    from mmguard.findings.messages import UNBROKEN, format_finding, unpack
    from mmguard.text import visible

    environment = gather(try_imports=not args.no_import)
    findings, lines = diagnose(environment=environment), describe_environment(environment)
    install = build_install_line(environment)
    if args.json != '-':
        width = max(map(len, lines))
        for name, found in lines.items():
            print(visible(f'{name:<{width}}  {found}'))
        for finding in findings:
            print(visible(f'\n{format_finding(finding, UNBROKEN, args.verbose)}'))
        if install is not None:
            done = 'this command was run with this Python and torch, without a GPU'
            if not install.executed:
                done = 'this command was not run with this Python, torch and GPU: see docs/stacks.md'
            what = 'to install mmsegmentation and mmdetection in a new environment of this machine'
            print(visible(f'\n{what} ({done}):\n  {install.line}'))
    if args.json is not None:
        record = {'lines': lines, 'findings': [unpack(finding) for finding in findings]}
        write_json(args.json, {**record, 'install': install and install._asdict()})
    return FOUND if any(finding.severity == ERROR for finding in findings) else CLEAN


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
torch = sys.modules.get('torch')
if torch is not None:
    gpus = range(torch.cuda.device_count() if torch.cuda.is_available() else 0)
    names = [torch.cuda.get_device_name(gpu) for gpu in gpus]
    newest = max([torch.cuda.get_device_capability(gpu) for gpu in gpus], default=())
    print('@mmguard', json.dumps(['cuda', [torch.version.cuda or '', names, newest]]))
"""


def read_matrix() -> List[Dict[str, Any]]:
    """Return the pairs of ``torch`` and ``numpy`` versions for which no test of `make matrix` failed, oldest first."""
    return [row for row in json.loads(read_regular(Path(__file__).with_name('tried.json'))) if not row['failed']]


def gather(try_imports: bool = True) -> EnvironmentFacts:
    """Collect facts about this installation; if ``try_imports`` is true, import every package in a child process."""
    from importlib import metadata

    facts = EnvironmentFacts(python=platform.python_version(), system=platform.platform())
    for module, distributions in DISTRIBUTIONS.items():
        for name in distributions:
            try:
                facts.versions[name] = metadata.version(name)
            except Exception:  # missing, or metadata that is broken
                continue
        if find_module_folder(module) is None:
            facts.missing.append(module)
    mmcv = find_module_folder('mmcv')
    if mmcv is not None:
        facts.ops = any(mmcv.glob('_ext*')) or any(mmcv.glob('_ext/*'))
    facts.reads_objects = _reads_objects()
    if try_imports:
        names = [n for n in IMPORTS if n.split('.')[0] not in facts.missing and (n != 'mmcv.ops' or facts.ops)]
        facts.errors, facts.cuda = import_errors(names)
    return facts


def _reads_objects() -> Optional[bool]:
    """Return True if mmengine or the environment sets ``weights_only=False``; ``None`` if mmengine is missing."""
    mmengine = find_module_folder('mmengine')
    if mmengine is None:
        return None
    if os.environ.get('TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD', '').lower() in ('1', 'y', 'yes', 'true'):
        return True
    try:
        return b'weights_only' in read_regular(mmengine / 'runner/checkpoint.py')
    except OSError:
        return None


def import_errors(names: Sequence[str]) -> Tuple[Dict[str, str], Optional[Cuda]]:
    """Import modules in a child process, so that a crash or a hang does not end this process.

    Returns:
        tuple: {name: reason} of the modules that cannot be imported, and torch's CUDA (``None`` if unknown).
    """
    errors: Dict[str, str] = {}
    cuda: Optional[Cuda] = None
    left = list(names)
    while left:
        command = [*build_python_command(_CHILD_CODE), *left]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=IMPORT_TIMEOUT)
            output = done.stdout
            last = [line for line in done.stderr.splitlines() if line.strip()][-1:]
            how = f'the interpreter ended (exit code {done.returncode}) {"".join(last)[:200]}'
        except subprocess.TimeoutExpired as error:
            output = error.stdout.decode() if isinstance(error.stdout, bytes) else error.stdout or ''
            how = f'still not imported after {IMPORT_TIMEOUT} s'
        for line in output.splitlines():
            if not line.startswith('@mmguard '):  # output of a package
                continue
            name, result = json.loads(line[len('@mmguard ') :])
            if name == 'cuda':
                version, gpus, capability = result
                cuda = Cuda(version, tuple(gpus), tuple(capability))
                continue
            left.remove(name)
            if result:
                errors[name] = ' '.join(result.split())
        if left:  # the child ended while it imported the first of these
            errors[left.pop(0)] = how.strip()
    return errors, cuda


def describe_environment(environment: EnvironmentFacts) -> Dict[str, str]:
    """Return the lines of the command as {name: version or state}."""
    lines = {'python': f'{environment.python} on {environment.system}', 'stack': _describe_stack(environment)}
    for module, distributions in DISTRIBUTIONS.items():
        found = ', '.join(f'{name} {version}' for name, version in environment.find_installed(module).items())
        if module in environment.missing:
            found = f'{found}, but its files are missing' if found else 'not installed'
        name = module if module in distributions else f'{module} ({distributions[0]})'
        lines[name] = found or 'version unknown (not installed by pip)'
    if environment.ops is not None:
        fails = 'mmcv.ops' in environment.errors and 'mmcv' not in environment.errors
        lines["mmcv's compiled ops"] = 'missing' if not environment.ops else 'cannot be loaded' if fails else 'found'
    if environment.cuda:
        lines['CUDA'] = str(environment.cuda)
    for name in ('torch', 'numpy'):
        tried = [row[name] for row in read_matrix()]
        version = environment.get_version(name).partition('+')[0]
        if version:
            was = 'tested' if version in tried else 'not tested'
            lines[f'mmguard with {name}'] = f'{version} was {was} (tested versions: {tried[0]} to {tried[-1]})'
    return lines


def _describe_stack(environment: EnvironmentFacts) -> str:
    found = find_stacks(environment.versions)
    if not found:
        return f'{"nnU-Net" if environment.get_version("nnunetv2") else "plain PyTorch"}, no mmengine'
    named = '; '.join(f'{stack}: {", ".join(names)}' for stack, names in found.items())
    return named if len(found) == 1 else f'mixed; {named}'


Version = Tuple[int, ...]
Range = Tuple[Version, Version]


class Row(NamedTuple):
    """Machines that share an install line; ranges include the lower bound and exclude the upper one."""

    stack: str  #: Stack that the line installs.
    torch: Range = ((), (9,))
    python: Range = ((3, 8), (4,))
    capability: Range = ((), (99,))  #: Compute capability of the newest GPU; ``()`` without a GPU.
    cuda: Range = ((), (99,))  #: CUDA that torch was built for; ``()`` if unknown, or for a CPU build.
    keeps: bool = False  #: True if the row is only for machines on which the same stack is installed.
    pin: str = ''  #: Release of torch that the line installs; empty for the installed release.
    numpy_1: bool = False  #: True if this torch was compiled for NumPy 1.


#: Rows in order; the first one whose ranges contain this machine is used.
ROWS = (
    # RTX 50 and B200 need torch 2.7 and CUDA 12.8, or newer.
    Row(ONEDL, python=((3, 10), (4,)), capability=((10,), (99,)), cuda=((), (12, 8)), pin='2.8.0+cu128'),
    Row(OPENMMLAB, torch=((2, 6), (9,)), keeps=True),
    Row(ONEDL, torch=((2, 6), (9,)), python=((3, 10), (4,))),
    Row(OPENMMLAB, torch=((), (2, 3)), capability=((), (10,)), numpy_1=True),
    Row(OPENMMLAB, torch=((2, 3), (9,)), capability=((), (10,))),
)
#: Packages of each stack, in the releases that are tested. mmseg 1.2.2 and mmdet 3.3.0 are incompatible with mmcv 2.2.
PACKAGES: Dict[str, str] = {
    OPENMMLAB: 'mmcv==2.1.0 mmengine==0.10.7 mmsegmentation==1.2.2 mmdet==3.3.0 ftfy regex',
    ONEDL: 'onedl-mmcv==2.3.6 onedl-mmengine==0.10.12 onedl-mmsegmentation==1.4.2 onedl-mmdetection==3.5.1',
}
#: URL of wheels of mmcv 2.1.0, which exist for torch up to ``TORCH_WITH_WHEELS``.
WHEELS = 'https://download.openmmlab.com/mmcv/dist/{cuda}/torch{torch}.0/index.html'
TORCH_WITH_WHEELS = '2.1'
#: Stack, Python and torch of the lines that were executed, on Linux without a GPU. docs/stacks.md has the same rows.
EXECUTED: Tuple[Tuple[str, str, str], ...] = (
    (OPENMMLAB, '3.8', '2.1.2'),
    (OPENMMLAB, '3.11', '2.13.0'),
    (ONEDL, '3.10', '2.13.0'),
    (ONEDL, '3.11', '2.13.0'),
)


class InstallLine(NamedTuple):
    """Shell command; ``executed`` is True if it was run for this Python, torch and system, without a GPU."""

    line: str
    executed: bool


def build_install_line(environment: EnvironmentFacts) -> Optional[InstallLine]:
    """Return the shell command that installs mmseg and mmdet into a new environment of this machine.

    mmcv is compiled for the installed torch (``--no-build-isolation``), which needs pkg_resources (setuptools < 81).

    Returns:
        InstallLine, optional: ``None`` if torch is not installed, or no torch supports this Python and this GPU.
    """
    installed = environment.get_version('torch')
    if not installed:
        return None
    built, _, capability = environment.cuda or Cuda('')
    stacks = list(find_stacks(environment.versions))
    facts = (_read_version(installed), _read_version(environment.python), capability, _read_version(built))
    for row in ROWS:
        ranges = (row.torch, row.python, row.capability, row.cuda)
        fits = all(low <= fact < high for (low, high), fact in zip(ranges, facts))
        if fits and (not row.keeps or stacks == [row.stack]):
            return _write_line(row, environment, built, bool(capability))
    return None


def _write_line(row: Row, environment: EnvironmentFacts, built: str, has_gpu: bool) -> InstallLine:
    version = row.pin or environment.get_version('torch')
    release, _, local = version.partition('+')
    first = ['pip install "setuptools<81" wheel ninja', f'torch=={release}']
    if re.fullmatch(r'cpu|cu\d+', local):
        first.append(f'--extra-index-url https://download.pytorch.org/whl/{local}')
    then = ['pip install --no-build-isolation']
    minor = '.'.join(release.split('.')[:2])
    if row.stack == OPENMMLAB and minor == TORCH_WITH_WHEELS and environment.cuda:
        then.append(f'-f {WHEELS.format(cuda=f"cu{built}".replace(".", "") if built else "cpu", torch=minor)}')
    then.append(PACKAGES[row.stack])
    if row.numpy_1:
        first.append('"numpy<2"')
        then.append('"opencv-python<4.12"')
    done = (row.stack, '.'.join(environment.python.split('.')[:2]), version) in EXECUTED
    executed = done and environment.system.startswith('Linux') and not has_gpu
    return InstallLine(f'{" ".join(first)} && {" ".join(then)}', executed)


def _read_version(text: str) -> Version:
    return tuple(map(int, re.findall(r'\d+', text)[:2]))
