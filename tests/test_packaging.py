from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.slow
def test_installing_changes_no_package_of_a_working_environment(tmp_path: Path) -> None:
    """Without an index, pip can only succeed if everything that mmguard needs is there as it is."""
    command = [sys.executable, '-m', 'pip', 'install', '--dry-run', '--no-index', '--no-build-isolation']
    done = subprocess.run(
        [*command, '--ignore-installed', '--no-deps', str(ROOT)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert 'Would install mmguard' in done.stdout
    done = subprocess.run([*command, '--upgrade', str(ROOT)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    would = [line for line in done.stdout.splitlines() if line.startswith('Would install')]
    assert all(word.startswith('mmguard') for line in would for word in line.split()[2:]), would


def test_runtime_dependencies_carry_lower_bounds_only() -> None:
    text = (ROOT / 'pyproject.toml').read_text()
    line = next(line for line in text.splitlines() if line.startswith('dependencies'))
    for needed in ('torch>=', 'mmengine>=', 'numpy>='):
        assert needed in line
    for forbidden in ('==', '<', '~=', 'mmseg', 'mmdet'):
        assert forbidden not in line
