"""The environments that the tests run in: pinned, and those that this one says it is."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Dict, List

import pytest

from mmguard.findings.environment import version_key
from tools.matrix import STAMP

ROOT = Path(__file__).parents[2]
#: Stack -> the extras of mmguard that it has.
STACKS = {
    'openmmlab': ('scan', 'dask', 'dev', 'test'),
    'lab': ('scan', 'dask', 'dev', 'test'),
    'newest': ('scan', 'test'),
    'onedl': ('scan', 'dask', 'dev', 'test'),
    'nnunet': ('scan', 'test'),
    'torch': ('test',),
    'family': ('scan', 'test'),
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
    assert len({pins(stack)['torch'] for stack in STACKS if stack not in ('lab', 'family', 'newest')}) == 1


def test_lab_has_an_older_torch_and_numpy_and_the_frameworks_of_openmmlab() -> None:
    lab, newest = pins('lab'), pins('openmmlab')
    assert (lab['torch'], lab['torchvision'], lab['numpy']) == ('2.1.2', '0.16.2', '1.26.4')
    # The first stack has a server of S3 for the tests, too.
    assert {'mmcv', 'mmdet', 'mmengine', 'mmsegmentation', 'ftfy', 'regex', 'opencv-python'} <= set(newest) & set(lab)
    assert {name for name in newest if name.startswith('mm') and lab[name] != newest[name]} == set()


def test_newest_has_the_newest_torch_and_packages_that_are_compiled_for_no_torch() -> None:
    newest = pins('newest')
    assert version_key(newest['torch']) > max(
        version_key(pins(stack)['torch']) for stack in STACKS if stack != 'newest'
    )
    assert {'torchvision', 'transformers', 'mmengine'} <= set(newest)
    assert not set(newest) & {'mmcv', 'mmcv-lite', 'mmsegmentation', 'mmdet'}


def stack_here() -> str:
    found = {normal(str(one.metadata['Name'])) for one in metadata.distributions()}
    if 'mmpretrain' in found:
        return 'family'
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
