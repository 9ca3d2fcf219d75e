"""Inputs that once broke a command: it ends as it should, and says what is wrong."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import seen_inputs
from loaders import has
from promises import run
from seen_inputs import Seen

SEEN = (
    *seen_inputs.ANNOTATIONS,
    *seen_inputs.VOLUMES,
    *seen_inputs.MAPS,
    *seen_inputs.CONFIGS,
    *seen_inputs.COMMAND_LINES,
    *seen_inputs.RUNS,
)


@pytest.mark.parametrize('seen', [pytest.param(seen, id=seen.name) for seen in SEEN])
@pytest.mark.timeout(0)  # run() limits the time
def test_what_once_broke_a_command(seen: Seen, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = [package for package in seen.needs if not has(package)]
    if missing:
        pytest.skip(f'without {", ".join(missing)}')
    inputs, out = tmp_path / 'in', tmp_path / 'out'
    for name, content in seen.files.items():
        (inputs / name).parent.mkdir(parents=True, exist_ok=True)
        (inputs / name).write_bytes(content)
    out.mkdir()
    monkeypatch.chdir(inputs)
    argv = seen.command.replace('{out}', str(out)).split()
    if argv[0] == 'scan':
        argv += ['--processes', '1', '--journal', os.devnull]
    outcome = run(argv, out)
    assert outcome.broken == []
    said = ' '.join((outcome.out + outcome.err).split())
    assert outcome.code == seen.code, said
    assert [word for word in seen.words if word not in said] == [], said
