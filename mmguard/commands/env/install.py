"""The line that installs mmseg and mmdet on the machine that ``mmguard env`` sees, and which lines were executed."""

from __future__ import annotations

import re
from typing import Dict, NamedTuple, Optional, Tuple

from mmguard.compat.stack import ONEDL, OPENMMLAB, find_stacks
from mmguard.facts.environment import Cuda, EnvironmentFacts

Version = Tuple[int, ...]
Range = Tuple[Version, Version]


class Row(NamedTuple):
    """Machines that share a line: lower bounds belong to a range, upper bounds do not.

    Args:
        stack (str): Stack that is installed.
        torch, python, capability, cuda (tuple): Ranges; ``capability`` is that of the newest GPU, ``()`` without one,
            ``cuda`` the version that torch was built for, ``()`` if it is unknown or the CPU.
        keeps (bool): True if only an installation of the same stack takes this row.
        pin (str): Release of torch in place of the installed one.
        numpy_1 (bool): True if this torch was compiled for NumPy 1.
    """

    stack: str
    torch: Range = ((), (9,))
    python: Range = ((3, 8), (4,))
    capability: Range = ((), (99,))
    cuda: Range = ((), (99,))
    keeps: bool = False
    pin: str = ''
    numpy_1: bool = False


#: The first row that fits is used.
ROWS = (
    # RTX 50 and B200: torch 2.7 is the first, and CUDA 12.8.
    Row(ONEDL, python=((3, 10), (4,)), capability=((10,), (99,)), cuda=((), (12, 8)), pin='2.8.0+cu128'),
    Row(OPENMMLAB, torch=((2, 6), (9,)), keeps=True),
    Row(ONEDL, torch=((2, 6), (9,)), python=((3, 10), (4,))),
    Row(OPENMMLAB, torch=((), (2, 3)), capability=((), (10,)), numpy_1=True),
    Row(OPENMMLAB, torch=((2, 3), (9,)), capability=((), (10,))),
)
#: Releases with which the tests run. mmseg 1.2.2 and mmdet 3.3.0 end with an AssertionError if mmcv is 2.2.
PACKAGES: Dict[str, str] = {
    OPENMMLAB: 'mmcv==2.1.0 mmengine==0.10.7 mmsegmentation==1.2.2 mmdet==3.3.0 ftfy regex',
    ONEDL: 'onedl-mmcv==2.3.6 onedl-mmengine==0.10.12 onedl-mmsegmentation==1.4.2 onedl-mmdetection==3.5.1',
}
#: Wheels of mmcv 2.1.0: for no later torch.
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
    """A line for the shell, and True if it was executed for this Python, torch and system, without a GPU."""

    line: str
    executed: bool


def build_install_line(environment: EnvironmentFacts) -> Optional[InstallLine]:
    """Return the line that installs mmseg and mmdet into a new environment of this machine.

    mmcv is compiled for the torch that is there (``--no-build-isolation``), by a setuptools with pkg_resources (< 81).

    Returns:
        InstallLine, optional: ``None`` if torch is not installed, or no torch serves this Python and this GPU.
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
