"""The environments that the tests run in: pinned, and those that this one says it is."""

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
from packaging.version import Version

from tools.matrix import STAMP

ROOT = Path(__file__).parents[2]
#: Stack -> the extras of mmguard that it has.
STACKS = {
    'openmmlab': ('scan', 'dev', 'test'),
    'lab': ('scan', 'dev', 'test'),
    'newest': ('scan', 'test'),
    'onedl': ('scan', 'dev', 'test'),
    'nnunet': ('scan', 'test'),
    'torch': ('test',),
}


def pins(stack: str) -> Dict[str, str]:
    lines = (ROOT / 'tools' / 'stacks' / f'{stack}.txt').read_text(encoding='utf-8').splitlines()
    found = dict(line.split('==') for line in lines)
    assert len(found) == len(lines)
    return found


def normal(name: str) -> str:
    return re.sub(r'[-_.]+', '-', name).lower()


def wanted(extra: str) -> List[str]:
    """Names of the packages of an extra of mmguard."""
    text = (ROOT / 'pyproject.toml').read_text(encoding='utf-8')
    line = next(line for line in text.splitlines() if line.startswith(f'{extra} = ['))
    return [re.split(r'[\[>=<]', item)[0] for item in re.findall(r'"([^"]+)"', line)]


@pytest.mark.parametrize('stack', STACKS)
def test_every_package_is_pinned_to_a_release(stack: str) -> None:
    versions = pins(stack)
    assert all(re.fullmatch(r'[\d.]+(\.post\d+)?', version) for version in versions.values()), versions
    pinned = {normal(name) for name in versions}
    for name in ['torch', 'numpy', *(name for extra in STACKS[stack] for name in wanted(extra))]:
        assert normal(name) in {*pinned, 'mmguard'}, f'{name} is not pinned in tools/stacks/{stack}.txt'


def test_the_stacks_are_apart() -> None:
    names = {stack: {normal(name) for name in pins(stack)} for stack in STACKS}
    assert not {name for name in names['openmmlab'] if name.startswith('onedl-')}
    assert not names['onedl'] & {'mmengine', 'mmcv', 'mmsegmentation', 'mmdet'}
    assert not names['torch'] & {'pillow', 'rich', 'msgspec', 'mmengine', 'onedl-mmengine', 'nnunetv2'}
    # What differs is not torch.
    assert len({pins(stack)['torch'] for stack in STACKS if stack not in ('lab', 'newest')}) == 1


def test_lab_has_an_older_torch_and_numpy_and_the_frameworks_of_openmmlab() -> None:
    lab, newest = pins('lab'), pins('openmmlab')
    assert (lab['torch'], lab['torchvision'], lab['numpy']) == ('2.1.2', '0.16.2', '1.26.4')
    assert {'mmcv', 'mmdet', 'mmengine', 'mmsegmentation', 'ftfy', 'regex', 'opencv-python'} <= set(newest) & set(lab)
    assert {name for name in newest if name.startswith('mm') and lab[name] != newest[name]} == set()


def test_newest_has_the_newest_torch_and_packages_that_are_compiled_for_no_torch() -> None:
    newest = pins('newest')
    assert Version(newest['torch']) > max(Version(pins(stack)['torch']) for stack in STACKS if stack != 'newest')
    assert {'torchvision', 'transformers', 'mmengine'} <= set(newest)
    assert not set(newest) & {'mmcv', 'mmcv-lite', 'mmsegmentation', 'mmdet'}


def stack_here() -> str:
    found = {normal(str(one.metadata['Name'])) for one in metadata.distributions()}
    if {'mmengine', 'nnunetv2'} <= found:
        return 'lab'
    if 'mmengine' in found and 'mmcv' not in found:
        return 'newest'
    telling = {'mmengine': 'openmmlab', 'onedl-mmengine': 'onedl', 'nnunetv2': 'nnunet'}
    return next((stack for name, stack in telling.items() if name in found), 'torch')


def test_this_environment_is_the_pinned_one() -> None:
    if Path(sys.prefix, STAMP).exists():
        pytest.skip('an environment of the matrix: tools/matrix.py pins its torch and numpy alone')
    versions = pins(stack_here())
    installed = {name: metadata.version(name).partition('+')[0] for name in versions if _is_installed(name)}
    assert {'torch', 'numpy', 'pytest'} <= set(installed)
    assert installed == {name: versions[name] for name in installed}


def _is_installed(name: str) -> bool:
    try:
        metadata.version(name)
        return True
    except metadata.PackageNotFoundError:
        return False


def test_an_unknown_stack_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    done = subprocess.run(
        ['sh', 'tools/setup.sh', 'tensorflow', str(tmp_path / 'venv')], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert 'tensorflow' in done.stderr
    assert list(tmp_path.iterdir()) == []


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


@pytest.mark.slow
@pytest.mark.skipif(stack_here() != 'lab', reason='the newest packages are there: none can be changed for them')
@pytest.mark.usefixtures('index')
@pytest.mark.parametrize('extra', extras())
def test_an_extra_changes_nothing_that_is_there(working: Path, extra: str) -> None:
    found = would_install(working, *asked('dependencies'), *asked(extra))
    assert found
    assert {name: version for name, version in found.items() if name in needed_by(WORKING)} == {}


@pytest.mark.slow
@pytest.mark.skipif(stack_here() != 'lab', reason='the newest packages are there: none can be changed for them')
@pytest.mark.usefixtures('index')
def test_what_would_be_changed_is_seen(working: Path) -> None:
    assert would_install(working, 'numpy>=2')['numpy'].startswith('2.')
