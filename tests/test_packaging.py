from __future__ import annotations

import ast
import re
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
    assert 'mmguard' in done.stdout.splitlines()[-1]
    done = subprocess.run([*command, '--upgrade', str(ROOT)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    would = [line for line in done.stdout.splitlines() if line.startswith('Would install')]
    assert all(word.startswith('mmguard') for line in would for word in line.split()[2:]), would


def test_hard_dependencies_are_torch_and_numpy_with_lower_bounds() -> None:
    """mmengine among them would be laid over onedl-mmengine, and forced upon who trains without either."""
    (line,) = [line for line in (ROOT / 'pyproject.toml').read_text().splitlines() if line.startswith('dependencies')]
    wanted = ast.literal_eval(line.partition('=')[2].strip())
    assert [re.fullmatch(r'(\w+)>=[\d.]+', one).group(1) for one in wanted] == ['torch', 'numpy']
