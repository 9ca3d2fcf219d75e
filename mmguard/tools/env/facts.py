"""Facts about what is installed: from metadata and source files, and from a child that tries the imports."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence, Tuple

from mmguard.compat.stack import distributions_of, folder_of
from mmguard.findings.environment import DISTRIBUTIONS, EnvironmentFacts, version_key
from mmguard.tools.child import python_command

#: From, and below; empty: no limit.
Limits = Tuple[str, str]
#: Rows of versions (``torch``, ``numpy``, ``python``) with the result of the tests.
TRIED = Path(__file__).with_name('tried.json')
#: Tried in this order; what is compiled comes last of its package.
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
_CHILD = """
import importlib, json, sys, warnings
warnings.simplefilter('ignore')
for name in sys.argv[1:]:
    print('@mmguard', json.dumps([name, None]), flush=True)
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
    """Return the versions that a framework accepts when it is imported, as its ``__init__.py`` says."""
    text = _text(folder, '__init__.py')
    low = re.search(r"^(?:MMCV_MIN|mmcv_minimum_version)\s*=\s*'([^']+)'", text, re.MULTILINE)
    high = re.search(r"^(?:MMCV_MAX|mmcv_maximum_version)\s*=\s*'([^']+)'", text, re.MULTILINE)
    return (low.group(1), high.group(1)) if low and high else None


def read_declared_mmcv(module: str) -> Optional[Limits]:
    """Return the versions in the metadata of a framework's distribution: onedl's check nothing when imported."""
    for name in distributions_of(module):
        try:
            requirements = metadata.requires(name) or []
        except Exception:  # missing, or metadata that is broken
            continue
        for requirement in requirements:
            limits = limits_in(requirement)
            if limits is not None:
                return limits
    return None


def limits_in(requirement: str) -> Optional[Limits]:
    """Return the limits of a requirement if it is one of mmcv.

    Example:
        >>> limits_in('onedl-mmcv>=2.0.0; extra == "mminstall"')
        ('2.0.0', '')
        >>> limits_in("mmcv <2.2.0,>=2.0.0rc4 ; extra == 'mim'")
        ('2.0.0rc4', '2.2.0')
        >>> limits_in('numpy>=1.20')
    """
    named = re.match(r'[\w.-]*\w', requirement)
    if named is None or named.group() not in distributions_of('mmcv'):
        return None
    limits = dict(re.findall(r'(>=|<)\s*([\w.]+)', requirement.partition(';')[0]))
    return (limits.get('>=', ''), limits.get('<', '')) if limits else None


def read_matrix() -> List[Dict[str, Any]]:
    """Return the rows of ``make matrix`` in which every test passed or was skipped."""
    return [row for row in json.loads(TRIED.read_text(encoding='utf-8')) if not row['failed']]


def gather(try_imports: bool = True) -> EnvironmentFacts:
    """Look at this installation, and import every package once in a child process."""
    facts = EnvironmentFacts(python=platform.python_version(), system=platform.platform())
    for module, distributions in DISTRIBUTIONS.items():
        for name in distributions:
            version = _version(name)
            if version is not None:
                facts.versions[name] = version
        if folder_of(module) is None:
            facts.missing.append(module)
    facts.torch_cuda = _torch_cuda()
    _ask_driver(facts)
    mmcv = folder_of('mmcv')
    if mmcv is not None:
        facts.ops = any(mmcv.glob('_ext*')) or any(mmcv.glob('_ext/*'))
    for module in ('mmseg', 'mmdet'):
        limits = read_accepted_mmcv(folder_of(module)) or read_declared_mmcv(module)
        if limits is not None:
            facts.accepts[module] = limits
    facts.tried = {name: sorted({row[name] for row in read_matrix()}, key=version_key) for name in ('torch', 'numpy')}
    if try_imports:
        names = [n for n in IMPORTS if n.split('.')[0] not in facts.missing and (n != 'mmcv.ops' or facts.ops)]
        facts.errors, facts.cuda_available = import_errors(names)
    return facts


def _version(distribution: str) -> Optional[str]:
    try:
        return metadata.version(distribution)
    except Exception:  # missing, or metadata that is broken
        return None


def _text(folder: Optional[Path], name: str) -> str:
    try:
        return '' if folder is None else (folder / name).read_text(encoding='utf-8', errors='replace')
    except OSError:
        return ''


def _torch_cuda() -> Optional[str]:
    found = re.search(r"^cuda\b[^=\n]*=\s*'([\d.]+)'", _text(folder_of('torch'), 'version.py'), re.MULTILINE)
    return found.group(1) if found else None


def _ask_driver(facts: EnvironmentFacts) -> None:
    program = shutil.which('nvidia-smi')
    # Where PATH has '.', or on Windows, it may be one of the working directory.
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
    """Import modules in a child, so that one that crashes or hangs takes nothing down.

    Return name -> why it cannot be imported, and whether torch can use a GPU (``None``: not asked).
    """
    errors: Dict[str, str] = {}
    available: Optional[bool] = None
    left = list(names)
    # Asking the driver by NVML starts no CUDA.
    env = {**os.environ, 'PYTORCH_NVML_BASED_CUDA_CHECK': '1'}
    while left:
        try:
            done = subprocess.run(
                [*python_command(_CHILD), *left], capture_output=True, text=True, timeout=IMPORT_TIMEOUT, env=env
            )
            output, how = done.stdout, f'the interpreter ended (exit code {done.returncode}) {_last(done.stderr)}'
        except subprocess.TimeoutExpired as error:
            output = error.stdout.decode() if isinstance(error.stdout, bytes) else error.stdout or ''
            how = f'still not imported after {IMPORT_TIMEOUT} s'
        begun: Optional[str] = None
        for line in output.splitlines():
            if not line.startswith('@mmguard '):  # what a package prints
                continue
            name, result = json.loads(line[len('@mmguard ') :])
            if name == 'cuda':
                available = result == 'True'
            elif result is None:
                begun = name
            else:
                begun = None
                left.remove(name)
                if result:
                    errors[name] = ' '.join(result.split())
        if begun is None:
            break
        errors[begun] = how.strip()
        left = left[left.index(begun) + 1 :]
    return errors, available


def _last(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1][:200] if lines else ''
