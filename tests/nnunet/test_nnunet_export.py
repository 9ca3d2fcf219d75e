"""The line of `mmguard nnunet` for a shell."""

from __future__ import annotations

import os
import subprocess

import pytest

from mmguard.cli import main
from mmguard.nnunet.export import FOLDER, export_line

pytest.importorskip('nnunetv2')


def test_the_folder_holds_the_trainer_and_no_other_module() -> None:
    assert sorted(path.name for path in FOLDER.glob('*.py')) == ['__init__.py', 'nnUNetTrainerGuarded.py']


def test_a_shell_sets_what_is_printed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    monkeypatch.setenv('nnUNet_extTrainer', "/some lab's/trainers")
    assert main(['nnunet']) == 0
    line = capsys.readouterr().out
    shown = subprocess.run(['sh', '-c', f'{line}\nprintf %s "$nnUNet_extTrainer"'], capture_output=True, text=True)
    assert shown.stdout == f"/some lab's/trainers{os.pathsep}{FOLDER}"


def test_a_folder_that_is_set_already_is_not_set_twice() -> None:
    once = export_line(current_value=None)
    assert export_line(current_value=str(FOLDER)) == once
    assert once.count(str(FOLDER)) == 1


def test_other_shells() -> None:
    assert export_line('powershell', "a'b") == f"$env:nnUNet_extTrainer = 'a''b{os.pathsep}{FOLDER}'"
    assert export_line('fish', "a'b") == f"set -gx nnUNet_extTrainer 'a\\'b{os.pathsep}{FOLDER}'"
