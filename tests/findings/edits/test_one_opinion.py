"""No command calls wrong what another calls right: of every config that the tests of findings have."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Dict

from clean_sets import CLEAN
from following import BUILDS
from opinions import among_configs, contradictions
from situation import Build

from benchmarks.official_configs import shipped_configs
from mmguard.config.read import read_config

ALL: Dict[str, Build] = {**BUILDS, **{f'clean: {name}': build for name, build in CLEAN.items()}}


def test_the_commands_agree_on_every_config_with_its_data() -> None:
    found = {}
    for name, build in ALL.items():
        with TemporaryDirectory() as root:
            built = build(Path(root))
            target = Path(built[0] if isinstance(built, tuple) else built)
            if target.suffix == '.py':
                found[name] = contradictions(target)
    assert len(found) > 60
    assert {name: said for name, said in found.items() if said} == {}


def test_the_commands_agree_on_official_configs() -> None:
    """Of every third folder; tests/labels has one of each folder."""
    first: Dict[Path, Path] = {}
    for _, file in shipped_configs():
        first.setdefault(file.parent, file)
    found = {}
    for file in list(first.values())[::3]:
        try:
            read = read_config(str(file))
        except Exception:  # a base that is not in the wheel
            continue
        if 'type' in read.part('model') and '_base_' not in file.parts:
            found[file.parent.name] = among_configs(read)
    assert len(found) > 50
    assert {name: said for name, said in found.items() if said} == {}
