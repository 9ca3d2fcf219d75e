"""The hooks for pre-commit, run by the real pre-commit in a small repository."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from put_file import put

pytest.importorskip('pre_commit')
pytest.importorskip('mmseg')
Image = pytest.importorskip('PIL.Image')

HOOKS = Path(__file__).parents[2] / '.pre-commit-hooks.yaml'


def git(folder: Path, *words: str) -> None:
    identity = ['-c', 'user.name=a', '-c', 'user.email=a@b.c', '-c', 'commit.gpgsign=false']
    subprocess.run(['git', *identity, *words], cwd=folder, check=True, capture_output=True)


def repository(folder: Path, files: dict) -> Path:
    for name, text in files.items():
        put(folder / name, text)
    git(folder, 'init', '-q')
    git(folder, 'add', '-A')
    git(folder, 'commit', '-qm', 'Start')
    return folder


@pytest.mark.parametrize(
    ('value', 'weights', 'codes'),
    [
        (2, [1.0, 2.0, 3.0], {'mmguard-check': 0, 'mmguard-scan': 0}),
        (7, [1.0, 2.0], {'mmguard-check': 1, 'mmguard-scan': 1}),
    ],
)
def test_hooks_pass_and_fail_as_the_commands_do(tmp_path, value, weights, codes):
    hooks = repository(tmp_path / 'hooks', {'.pre-commit-hooks.yaml': HOOKS.read_text()})
    revision = subprocess.run(
        ['git', 'rev-parse', 'HEAD'], cwd=hooks, capture_output=True, text=True, check=True
    ).stdout
    settings = (
        f'repos:\n- repo: {hooks}\n  rev: {revision.strip()}\n  hooks:\n  - id: mmguard-check\n'
        f'  - id: mmguard-scan\n    args: [labels, --num-classes, "3"]\n'
    )
    loss = dict(type='GuardedCrossEntropyLoss', class_weight=weights)
    head = dict(type='FCNHead', num_classes=3, loss_decode=loss)
    config = (
        "default_scope = 'mmseg'\ncustom_imports = dict(imports=['mmguard'])\n"
        "custom_hooks = [dict(type='LabelGuardHook')]\n"
        f"model = dict(type='EncoderDecoder', decode_head={head!r})\n"
    )
    project = repository(
        tmp_path / 'project',
        {'.pre-commit-config.yaml': settings, 'configs/a.py': config, 'configs/b.py': config, 'labels/.keep': ''},
    )
    for number in range(6):
        label = Image.new('L', (12, 12), number % 2)
        label.paste(value, (0, 0, 4, 4))
        label.save(project / 'labels' / f'{number}.png')
    git(project, 'add', '-A')
    environment = dict(os.environ, PRE_COMMIT_HOME=str(tmp_path / 'home'))
    environment['PATH'] = os.pathsep.join([str(Path(sys.executable).parent), environment['PATH']])
    for hook, code in codes.items():
        run = subprocess.run(
            [sys.executable, '-m', 'pre_commit', 'run', hook, '--all-files'],
            cwd=project,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert run.returncode == code, run.stdout + run.stderr
        assert 'Skipped' not in run.stdout
