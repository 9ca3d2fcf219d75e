"""Facts about the installation, from metadata and imports tried in a child process; and their lines."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence, Tuple

from mmguard.commands.child import build_python_command
from mmguard.compat.stack import find_module_folder, find_stacks
from mmguard.facts.environment import DISTRIBUTIONS, Cuda, EnvironmentFacts
from mmguard.files.regular import read_regular

#: Rows of versions (``torch``, ``numpy``, ``python``) with the result of the tests, the oldest first.
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
torch = sys.modules.get('torch')
if torch is not None:
    gpus = range(torch.cuda.device_count() if torch.cuda.is_available() else 0)
    names = [torch.cuda.get_device_name(gpu) for gpu in gpus]
    newest = max([torch.cuda.get_device_capability(gpu) for gpu in gpus], default=())
    print('@mmguard', json.dumps(['cuda', [torch.version.cuda or '', names, newest]]))
"""


def read_matrix() -> List[Dict[str, Any]]:
    """Return the rows of ``make matrix`` in which every test passed or was skipped."""
    return [row for row in json.loads(read_regular(TRIED_FILE)) if not row['failed']]


def gather(try_imports: bool = True) -> EnvironmentFacts:
    """Collect facts about this installation, and import every package once in a child process."""
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
    """Return True if mmengine, or the user, tells torch to read checkpoints that hold objects."""
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
    """Import modules in a child process, so that a crash or hang does no harm.

    Return name -> why the module cannot be imported, and the CUDA of torch (``None``: unknown).
    """
    errors: Dict[str, str] = {}
    cuda: Optional[Cuda] = None
    left = list(names)
    while left:
        command = [*build_python_command(_CHILD_CODE), *left]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=IMPORT_TIMEOUT)
            output = done.stdout
            how = f'the interpreter ended (exit code {done.returncode}) {_get_last_line(done.stderr)}'
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


def _get_last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1][:200] if lines else ''


def describe_environment(environment: EnvironmentFacts) -> Dict[str, str]:
    """Return the lines of the command: name -> what was found."""
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
            lines[f'mmguard with {name}'] = f'{version} was {was}; tested are {tried[0]} to {tried[-1]}'
    return lines


def _describe_stack(environment: EnvironmentFacts) -> str:
    found = find_stacks(environment.versions)
    if not found:
        return f'{"nnU-Net" if environment.get_version("nnunetv2") else "plain PyTorch"}, no mmengine'
    named = '; '.join(f'{stack}: {", ".join(names)}' for stack, names in found.items())
    return named if len(found) == 1 else f'mixed; {named}'
