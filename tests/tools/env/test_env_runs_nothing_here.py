"""Children run nothing of the working directory, and find what this process finds."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mmguard.tools.child import python_command
from mmguard.tools.env.facts import import_errors

NAMES = ('json', 'importlib', 'warnings', 'numpy', 'torch', 'mmguard', 'sitecustomize', 'usercustomize')


@pytest.fixture
def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write modules with the names of well-known ones into the working directory; return the file that they write."""
    mark = tmp_path / 'ran'
    for name in NAMES:
        (tmp_path / f'{name}.py').write_text(f'open({str(mark)!r}, "w").close()\n')
    monkeypatch.chdir(tmp_path)
    return mark


@pytest.mark.parametrize('variable', ['', '.', 'HERE'])
def test_env_imports_nothing_of_the_working_directory(
    variable: str, hostile: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv('PYTHONPATH', variable.replace('HERE', os.getcwd()))
    if variable:
        monkeypatch.setattr(sys, 'path', [variable.replace('HERE', os.getcwd()), '', *sys.path])
    assert import_errors(['json', 'numpy', 'mmguard'])[0] == {}
    assert not hostile.exists()


def test_the_whole_command_runs_nothing_of_the_working_directory(hostile: Path) -> None:
    program = os.path.join(os.path.dirname(sys.executable), 'mmguard')
    subprocess.run([program, 'env', '--json', '-'], stdout=subprocess.DEVNULL, check=False)
    assert not hostile.exists()


def test_a_child_finds_what_this_process_finds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / 'only_here.py').write_text('')
    monkeypatch.syspath_prepend(str(tmp_path))
    assert import_errors(['only_here', 'mmguard'])[0] == {}


def test_mmguard_itself_is_found_in_its_own_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    import mmguard

    monkeypatch.chdir(Path(mmguard.__file__).parent.parent)
    command = python_command('import mmguard; print(mmguard.__file__)')
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    assert Path(done.stdout.decode().strip()) == Path(mmguard.__file__)
