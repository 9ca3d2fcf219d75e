"""README's outputs are those of the data that ``mmguard demo --data`` writes."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import List

import pytest

from mmguard.cli import main

pytest.importorskip('mmseg')
pytestmark = pytest.mark.slow

README = (Path(__file__).parents[3] / 'README.md').read_text(encoding='utf-8')


def shown(start: str) -> List[str]:
    """The lines of the block of README that begins so, without the words before and after."""
    block = README[README.index(f'```\n{start}') :].split('```')[1]
    lines = (re.sub(r'^(before|after) ', '', line).strip() for line in block.splitlines())
    return [line for line in lines if line and not line.startswith(('(', '...'))]


@pytest.fixture(scope='module')
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp('demo') / 'mmguard_demo'
    assert main(['demo', '--data', '--out', str(folder), '--iters', '1']) == 0
    assert sorted(path.name for path in folder.iterdir() if path.name[0] != '.') == ['cityscapes', 'stock.py']
    (guarded,) = re.findall(r"```python\n(_base_ = 'my_config.py'\n.*?)```", README, re.DOTALL)
    (folder / 'guarded.py').write_text(guarded.replace('my_config.py', 'stock.py'))
    return folder


def test_the_scan(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(folder)
    assert main(['scan', 'stock.py']) == 1
    printed = [line.strip() for line in capsys.readouterr().out.splitlines()]
    lines = shown('20 files')
    assert len(lines) == 2
    assert [line for line in lines if line not in printed] == []


def test_both_trainings(folder: Path) -> None:
    before, *after = shown('before')
    assert len(after) == 3
    for config, lines in (('stock.py', [before]), ('guarded.py', after)):
        command = [sys.executable, '-m', 'mmguard.commands.demo.train', config]
        ended = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding='utf-8')
        assert (ended.returncode == 0) == (config == 'guarded.py'), ended.stdout
        assert [line for line in lines if line not in ended.stdout] == []
