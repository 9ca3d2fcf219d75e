"""Run mmguard's tests with old and new releases of torch, each in a temporary environment.

``python tools/matrix.py [--keep FOLDER] [--workers N] [--openmmlab] [TORCH ...]`` runs all rows, or the rows of the
named versions. It writes the results to mmguard/commands/tried.json, which ``mmguard env`` reads, and to the table in
docs/stacks.md.

mmcv-lite replaces mmcv, whose compiled ops take minutes per torch. Without these ops neither mmseg's nor mmdet's losses
import, so neither package is installed, and their tests are skipped. ``--openmmlab`` runs a separate row, with compiled
mmcv and all tests, and leaves the table unchanged.
"""

from __future__ import annotations

import argparse
import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Dict, Iterator, List, NamedTuple, Optional
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parents[1]
TRIED = ROOT / 'mmguard' / 'commands' / 'tried.json'
PAGE = ROOT / 'docs' / 'stacks.md'
BEGIN, END = '<!-- matrix: written by `make matrix` -->', '<!-- end of the matrix -->'
COLUMNS = ('torch', 'numpy', 'python', 'passed', 'failed', 'skipped', 'minutes')


class Row(NamedTuple):
    """Versions of torch, NumPy and Python that are tried together."""

    torch: str
    numpy: str
    python: str


#: The first row holds the lower bounds of pyproject.toml.
ROWS = (
    Row('1.13.1', '1.21.0', '3.8'),
    Row('2.0.1', '1.22.4', '3.9'),
    Row('2.1.2', '1.24.4', '3.8'),
    Row('2.2.2', '1.26.4', '3.10'),
    Row('2.4.1', '2.0.2', '3.9'),
    Row('2.6.0', '2.2.6', '3.10'),
    Row('2.9.1', '2.3.5', '3.12'),
    Row('2.13.0', '2.4.6', '3.11'),
    Row('2.14.1', '2.4.6', '3.11'),
    Row('2.15.0', '2.4.6', '3.13'),
)
#: mmengine needs the pkg_resources of setuptools < 81, and a test builds mmguard with what is installed.
PACKAGES = ('mmengine==0.10.7', 'setuptools>=61,<81', 'wheel')
LITE = ('mmcv-lite==2.1.0',)
#: The stack of many long-time users of OpenMMLab.
OPENMMLAB_ROW = Row('2.1.2', '1.24.4', '3.8')
#: Packages next to mmcv, which is compiled last. OpenCV 4.12 and newer need NumPy 2.
OPENMMLAB = ('mmsegmentation==1.2.2', 'mmdet==3.3.0', 'ftfy', 'regex', 'opencv-python<4.12')
MMCV = ('mmcv==2.1.0', 'import torch; from mmcv.ops import nms; nms(torch.rand(4, 4), torch.rand(4), 0.5)')
#: File that marks the folder of a complete environment.
STAMP = '.matrix'


def main() -> int:
    """Run the requested rows, one after the other."""
    parser = argparse.ArgumentParser(description='Runs the tests with several releases of torch.')
    parser.add_argument('torch', nargs='*', help='releases of torch; none: all of ' + ', '.join(r.torch for r in ROWS))
    parser.add_argument('--keep', metavar='FOLDER', type=Path, help='where environments are kept, and used again')
    parser.add_argument('--workers', default='2', help='test processes side by side')
    parser.add_argument('--openmmlab', action='store_true', help='mmcv, mmseg and mmdet on Python 3.8; no table')
    args = parser.parse_args()
    rows = (OPENMMLAB_ROW,) if args.openmmlab else ROWS
    unknown = set(args.torch) - {row.torch for row in rows}
    if unknown:
        parser.error(f'no row for torch {", ".join(sorted(unknown))}: see ROWS in {Path(__file__).name}')
    green = True
    for row in rows:
        if args.torch and row.torch not in args.torch:
            continue
        found = run_in_environment(row, args.keep, args.workers, args.openmmlab)
        green = green and found is not None and not found['failed']
        if found is not None and not args.openmmlab:
            write([*(one for one in read() if one['torch'] != row.torch), found])
    return int(not green)


def run_in_environment(row: Row, keep: Optional[Path], workers: str, openmmlab: bool) -> Optional[Dict[str, Any]]:
    """Make the environment of a row and run the tests in it.

    Returns:
        dict, optional: The results of :func:`run_tests`; ``None`` if the environment could not be made.
    """
    name = f'{row.torch}-openmmlab' if openmmlab else row.torch
    folder = Path(tempfile.mkdtemp(prefix='mmguard-matrix-')) if keep is None else keep / name
    try:
        return run_tests(folder, row, workers, openmmlab) if make_environment(folder, row, openmmlab) else None
    finally:
        if keep is None:
            shutil.rmtree(folder, ignore_errors=True)


def make_environment(folder: Path, row: Row, openmmlab: bool) -> bool:
    """Make an environment unless it is complete; return True if it is complete afterwards."""
    if (folder / STAMP).exists():
        return True
    python = find_python(row.python)
    if python is None:
        print(f'matrix: torch {row.torch} is left out: no Python {row.python} here', flush=True)
        return False
    print(f'matrix: installing torch {row.torch}, numpy {row.numpy} for Python {row.python}', flush=True)
    pip = [str(folder / 'bin' / 'python'), '-m', 'pip', 'install', '-q', '--disable-pip-version-check']
    packages = [f'torch=={row.torch}', f'numpy=={row.numpy}', *PACKAGES, *(OPENMMLAB if openmmlab else LITE)]
    commands = [
        [python, '-m', 'venv', '--clear', str(folder)],
        [*pip, *packages, '-e', f'{ROOT}[test,scan]'],
    ]
    if openmmlab:
        mmcv, trial = MMCV
        commands.append(['sh', 'tools/compiled.sh', str(folder), mmcv, row.torch, trial])
    if any(subprocess.run(command, cwd=ROOT).returncode for command in commands):
        print(f'matrix: the environment of torch {row.torch} cannot be made', flush=True)
        return False
    (folder / STAMP).touch()
    return True


def find_python(version: str) -> Optional[str]:
    """Return a working Python of a version, from the PATH or from pyenv; ``None`` if there is neither."""
    pyenv = os.environ.get('PYENV_ROOT', os.path.expanduser('~/.pyenv'))
    for path in (f'python{version}', *sorted(glob.glob(f'{pyenv}/versions/{version}.*/bin/python'))):
        try:
            done = subprocess.run([path, '-c', 'import venv'], stderr=subprocess.DEVNULL)
        except OSError:
            continue
        if done.returncode == 0:
            return path
    return None


def run_tests(folder: Path, row: Row, workers: str, openmmlab: bool) -> Optional[Dict[str, Any]]:
    """Run all tests that the packages of an environment allow, and count the outcomes.

    Returns:
        dict, optional: The row with its counts and minutes; ``None`` if pytest wrote no results.
    """
    python, results = str(folder / 'bin' / 'python'), folder / 'results.xml'
    if results.exists():
        results.unlink()
    began = time.monotonic()
    select = 'all' if openmmlab else 'stack'
    options = ['-q', '-n', workers, '--dist', 'worksteal', '--select', select, f'--junitxml={results}']
    env = {**os.environ, 'OMP_NUM_THREADS': '1', 'CI': '1'}
    subprocess.run([python, '-m', 'pytest', *options], cwd=ROOT, env=env)
    minutes = (time.monotonic() - began) / 60
    if not results.exists():
        print(f'matrix: pytest gave no results with torch {row.torch}', flush=True)
        return None
    version = subprocess.check_output([python, '-c', 'import platform; print(platform.python_version())'], text=True)
    suite = ElementTree.parse(results).getroot()[0].attrib
    failed, skipped = int(suite['failures']) + int(suite['errors']), int(suite['skipped'])
    passed = int(suite['tests']) - failed - skipped
    found = dict(row._asdict(), python=version.strip(), passed=passed, failed=failed, skipped=skipped)
    print(f'matrix: {found}, {minutes:.1f} minutes', flush=True)
    return dict(found, minutes=round(minutes, 1))


def read() -> List[Dict[str, Any]]:
    """Return the rows of tried.json."""
    return json.loads(TRIED.read_text(encoding='utf-8')) if TRIED.exists() else []


def write(rows: List[Dict[str, Any]]) -> None:
    """Write the rows, in the order of ``ROWS``, to tried.json and docs/stacks.md."""
    order = [row.torch for row in ROWS]
    rows = sorted((row for row in rows if row['torch'] in order), key=lambda row: order.index(row['torch']))
    TRIED.write_text('[\n' + ',\n'.join(f' {json.dumps(row)}' for row in rows) + '\n]\n', encoding='utf-8')
    before, _, rest = PAGE.read_text(encoding='utf-8').partition(BEGIN)
    after = rest.partition(END)[2]
    PAGE.write_text('\n'.join([before + BEGIN, *table(rows), END]) + after, encoding='utf-8')


def table(rows: List[Dict[str, Any]]) -> Iterator[str]:
    """Yield the lines of the table in docs/stacks.md."""
    yield f'| {" | ".join(COLUMNS)} |'
    yield '| --- | --- | --- |' + ' ---: |' * (len(COLUMNS) - 3)
    for row in rows:
        cells = [f'{row[name]:,}' if isinstance(row[name], int) else str(row[name]) for name in COLUMNS]
        yield f'| {" | ".join(cells)} |'


if __name__ == '__main__':
    sys.exit(main())
