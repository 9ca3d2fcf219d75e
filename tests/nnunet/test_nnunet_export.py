"""The line that tells nnU-Net where the trainer is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torchvision_stand_in

pytest.importorskip('nnunetv2')

from mmguard.cli import main
from mmguard.nnunet.export import FOLDER, export_line


def test_the_folder_holds_the_trainer_and_no_other_module() -> None:
    assert sorted(path.name for path in FOLDER.glob('*.py')) == ['__init__.py', 'nnUNetTrainerGuarded.py']


def test_a_shell_sets_what_is_printed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    monkeypatch.setenv('nnUNet_extTrainer', "/some lab's/trainers")
    assert main(['nnunet']) == 0
    line = capsys.readouterr().out
    shown = subprocess.run(['sh', '-c', f'{line}\nprintf %s "$nnUNet_extTrainer"'], capture_output=True, text=True)
    assert shown.stdout == f"/some lab's/trainers{os.pathsep}{FOLDER}"


def test_a_folder_that_is_set_already_is_not_set_twice() -> None:
    once = export_line(present=None)
    assert export_line(present=str(FOLDER)) == once
    assert once.count(str(FOLDER)) == 1


def test_other_shells() -> None:
    assert export_line('powershell', "a'b") == f"$env:nnUNet_extTrainer = 'a''b{os.pathsep}{FOLDER}'"
    assert export_line('fish', "a'b") == f"set -gx nnUNet_extTrainer 'a\\'b{os.pathsep}{FOLDER}'"


@pytest.mark.slow
def test_nnunet_finds_the_trainer(tmp_path: Path) -> None:
    """nnU-Net's own search, in a fresh process."""
    code = (
        'from nnunetv2.utilities.find_objects import recursive_find_trainer_class_by_name as find\n'
        'trainer = find("nnUNetTrainerGuarded")\n'
        'print(trainer.__mro__[1].__name__, trainer.__mro__[2].__name__)'
    )
    environment = {**os.environ, **torchvision_stand_in.put_into(tmp_path), 'nnUNet_extTrainer': str(FOLDER)}
    found = subprocess.run([sys.executable, '-c', code], env=environment, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    assert found.stdout.splitlines()[-1] == 'GuardsLabels nnUNetTrainer'
