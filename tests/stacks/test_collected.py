"""Every test file is run by a stack of .ci/run, and a package that no stack has is not a reason to skip."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import needs
import pytest
from needs import ROOT, find_stacks, find_test_files, read_needs
from put_file import put


def test_every_test_file_is_run_by_a_stack() -> None:
    files = find_test_files()
    assert len(files) > 150
    assert {str(path): read_needs(path) for path in files if not find_stacks(path)} == {}
    assert [path for path in files if not path.name.startswith(('test_', 'every_'))] == []  # pytest, make
    assert [path for path in files if re.search(r'skipif\(.*find_spec', path.read_text())] == []  # importorskip


@pytest.mark.parametrize(
    ('name', 'text', 'stacks'),
    [
        ('test_a.py', 'import torch', ['openmmlab', 'lab', 'newest', 'torch', 'onedl', 'nnunet']),
        ('test_a.py', 'import mmdet.models', ['openmmlab', 'lab', 'onedl']),
        ('nn/test_a.py', 'import mmdet', ['openmmlab', 'lab']),
        ('test_a.py', "pytest.importorskip('torchvision')", ['lab', 'newest']),
        ('test_a.py', 'from targets import Target', ['openmmlab', 'lab', 'onedl']),
        ('test_a.py', 'import nnunetv2', ['lab', 'nnunet']),
        ('findings/test_a.py', 'import mmdet', ['openmmlab']),
        ('findings/test_a.py', 'import nnunetv2', ['lab', 'nnunet']),
        ('test_a.py', 'import mmdet, typer', []),
        ('test_a.py', "mmseg = pytest.importorskip('mmsegg')", []),
    ],
)
def test_the_stacks_of_a_file(
    name: str, text: str, stacks: list, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = put(tmp_path / 'tests' / name, text)
    find_stacks(ROOT / 'tests' / 'needs.py')  # reads the stacks of this repository
    monkeypatch.setattr(needs, 'ROOT', tmp_path)
    assert find_stacks(file) == stacks
    assert ('openmmlab' in find_stacks(file, same_everywhere=True)) == ('openmmlab' in stacks)
    assert not {'lab', 'newest', 'torch'} & {*find_stacks(file, same_everywhere=True)}


def test_a_package_that_no_stack_has_is_red_and_one_of_another_stack_is_skipped(tmp_path: Path) -> None:
    absent = next(name for name in ('typer', 'imaug') if find_spec(name) is None)  # no stack has both
    texts = {
        'test_imported.py': 'import mmsegg\ndef test_a(): ...',
        'test_asked.py': "import pytest\npytest.importorskip('mmsegg')\ndef test_a(): ...",
        'test_inside.py': "import pytest\ndef test_a():\n    pytest.importorskip('mmsegg')",
        'test_packaging.py': f"import pytest\ndef test_a():\n    pytest.importorskip('{absent}')",  # first stack only
        'test_other.py': f'import {absent}\ndef test_a(): ...',
    }
    for name in ('conftest.py', 'pyproject.toml', '.ci/run', 'tests/needs.py'):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    shutil.copytree(ROOT / 'tools' / 'stacks', tmp_path / 'tools' / 'stacks')
    for name, text in texts.items():
        (tmp_path / 'tests' / name).write_text(text)
    options = ['-q', '-rfEs', '-p', 'no:cacheprovider', '-p', 'no:xdist', '--continue-on-collection-errors']
    done = subprocess.run(
        [sys.executable, '-m', 'pytest', *options, 'tests'], cwd=tmp_path, capture_output=True, text=True
    )
    outcomes = re.findall(r'^(ERROR|FAILED|SKIPPED)(?: \[\d\])? tests/(test_\w+)', done.stdout, re.MULTILINE)
    assert set(outcomes) == {
        ('ERROR', 'test_imported'), ('ERROR', 'test_asked'), ('FAILED', 'test_inside'), ('FAILED', 'test_packaging'),
        ('SKIPPED', 'test_other'),
    }  # fmt: skip
