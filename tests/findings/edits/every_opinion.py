"""All official configs, and the reports of ``$CASES`` as they were rebuilt: `make test-edits`, not the daily suite."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from opinions import among_configs, contradictions

from benchmarks.official_configs import shipped_configs
from mmguard.config.read import read_config
from mmguard.config.recognized import NotAConfig

#: Absolute: a report is made in a folder of its own.
CASES = Path(os.environ.get('CASES', 'no-cases')).resolve()


#: 1,400 configs take longer than a test may.
@pytest.mark.timeout(3600)
def test_the_commands_agree_on_all_official_configs() -> None:
    found = {}
    for _, file in shipped_configs():
        try:
            read = read_config(str(file))
        except Exception:  # a base that is not in the wheel
            continue
        if 'type' in read.part('model') and '_base_' not in file.parts:
            found[f'{file.parent.name}/{file.name}'] = among_configs(read)
    assert len(found) > 1_400
    assert {name: said for name, said in found.items() if said} == {}


@pytest.mark.parametrize('case', sorted(CASES.glob('set*/*/gen.py')), ids=lambda path: path.parent.name)
def test_the_commands_agree_on_a_rebuilt_report(case: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = make_report(case, tmp_path)
    if failed:
        pytest.skip(f'it cannot be made here: {failed}')
    monkeypatch.chdir(tmp_path)
    configs = [path for path in tmp_path.glob('*.py') if is_config(path)]
    if not configs:
        pytest.skip('it has no config')
    found = {path.name: contradictions(path) for path in configs}
    assert {name: said for name, said in found.items() if said} == {}


def make_report(case: Path, folder: Path) -> str:
    """Runs a gen.py in a folder, the modules beside its report at hand; what it failed with."""
    paths = {**os.environ, 'PYTHONPATH': str(case.parents[1].resolve())}
    made = subprocess.run([sys.executable, str(case.resolve())], cwd=folder, env=paths, capture_output=True)
    return made.stderr.decode().strip().splitlines()[-1] if made.returncode else ''


def is_config(path: Path) -> bool:
    try:
        read_config(str(path))
    except NotAConfig:
        return False
    return True
