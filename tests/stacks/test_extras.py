"""No extra of mmguard changes a package of a working environment: one whose numpy and opencv are not the newest."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from importlib import metadata
from pathlib import Path
from typing import Dict, List, Sequence, Set

import pytest
from test_pins import normal, stack_here

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(stack_here() != 'lab', reason='the newest packages are there: none can be changed for them'),
]

ROOT = Path(__file__).parents[2]
#: What trains beside torch 2.1; what it needs comes with it, and nothing that an extra brings.
WORKING = ('torch', 'torchvision', 'opencv-python', 'mmcv', 'mmsegmentation', 'mmdet')


def needed_by(names: Sequence[str]) -> Set[str]:
    """The installed distributions that some need, and these."""
    requirements = pytest.importorskip('packaging.requirements')
    found: Set[str] = set()
    todo = list(names)
    while todo:
        name = normal(todo.pop())
        if name in found:
            continue
        found.add(name)
        for line in metadata.requires(name) or []:
            wanted = requirements.Requirement(line)
            if wanted.marker is None or wanted.marker.evaluate({'extra': ''}):
                todo.append(wanted.name)
    return found


@pytest.fixture(scope='module')
def working(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment that says it has all of these: pip's resolver reads their metadata and no more."""
    folder = tmp_path_factory.mktemp('working')
    subprocess.run([sys.executable, '-m', 'venv', '--without-pip', str(folder)], check=True)
    site = sysconfig.get_path('purelib', 'venv', vars={'base': str(folder)})
    for name in needed_by(WORKING):
        found = metadata.distribution(name)._path  # type: ignore[attr-defined]
        shutil.copytree(found, Path(site) / found.name)
    return folder / 'bin' / 'python'


def pip(*words: str) -> None:
    done = subprocess.run([sys.executable, '-m', 'pip', *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def would_install(working: Path, *wanted: str) -> Dict[str, str]:
    """Name -> version of what pip would put into an environment, or change there."""
    report = working.parent / 'report.json'
    pip('--python', str(working), 'install', '--dry-run', '--report', str(report), *wanted)
    found = [item['metadata'] for item in json.loads(report.read_text())['install']]
    return {normal(one['name']): one['version'] for one in found}


@pytest.fixture(scope='module')
def index(working: Path) -> None:
    """A package index that has what the extras ask for; in CI there is one."""
    try:
        would_install(working, '--no-deps', 'msgspec')
    except AssertionError as error:
        if 'CI' in os.environ:
            raise
        pytest.skip(f'no package index can be reached: {error}')


def asked(name: str) -> List[str]:
    """The requirements of an extra of mmguard, or its ``dependencies``."""
    text = (ROOT / 'pyproject.toml').read_text(encoding='utf-8')
    (line,) = re.findall(rf'^{name} = (\[.*\])$', text, re.MULTILINE)
    own = re.compile(r'mmguard\[(\w+)\]')
    return [part for one in json.loads(line) for part in (asked(own.sub(r'\1', one)) if own.match(one) else [one])]


def extras() -> List[str]:
    table = (ROOT / 'pyproject.toml').read_text(encoding='utf-8').partition('[project.optional-dependencies]')[2]
    return re.findall(r'^(\w+) = \[', table.partition('\n[')[0], re.MULTILINE)


@pytest.mark.usefixtures('index')
@pytest.mark.parametrize('extra', extras())
def test_an_extra_changes_nothing_that_is_there(working: Path, extra: str) -> None:
    found = would_install(working, *asked('dependencies'), *asked(extra))
    assert found
    assert {name: version for name, version in found.items() if name in needed_by(WORKING)} == {}


@pytest.mark.usefixtures('index')
def test_what_would_be_changed_is_seen(working: Path) -> None:
    assert would_install(working, 'numpy>=2')['numpy'].startswith('2.')
