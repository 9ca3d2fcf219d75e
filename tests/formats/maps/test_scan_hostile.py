"""Nothing in a folder stops a scan."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Dict

import numpy as np
import pytest
from hostile_files import Kind, plant_bytes, plant_names, plant_things
from label_files import BLOCKS, write

from mmguard.cli import main
from mmguard.formats.faults import make_printable
from mmguard.formats.maps.read import read_map
from mmguard.formats.maps.summary import MapItem
from mmguard.formats.options import MapSettings

LABELS = MapSettings(num_classes=5)


@pytest.fixture(scope='module')
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp('hostile')


@pytest.fixture(scope='module')
def planted(hostile: Path) -> Dict[str, Kind]:
    kinds = {**plant_bytes(hostile), **plant_names(hostile / 'names'), **plant_things(hostile / 'things')}
    assert len(kinds) >= 90
    return kinds


def test_every_kind_is_reported(planted: Dict[str, Kind]) -> None:
    invalid = np.array(LABELS.find_invalid_values())
    wrong = {}
    for name, (path, fault) in planted.items():
        if os.path.isdir(path):
            continue
        record = read_map(MapItem(path), LABELS, invalid)
        assert record.fault or record.raw, name
        if fault is not None and record.fault != fault:
            wrong[name] = (record.fault, record.detail)
    assert wrong == {}


@pytest.mark.parametrize('processes', ['1', '2'])
def test_the_scan_goes_through(
    hostile: Path, planted: Dict[str, Kind], tmp_path: Path, capsys: pytest.CaptureFixture, processes: str
) -> None:
    good = write(hostile / 'zz last.png', np.where(BLOCKS == 1, 99, BLOCKS).astype(np.uint8))
    arguments = ['scan', str(hostile), '--num-classes', '5']
    code = main([*arguments, '--processes', processes, '--json', str(tmp_path / 'o.json')])
    assert code == 1
    shown = capsys.readouterr().out
    assert '\x1b' not in shown
    assert '\x07' not in shown
    reported = json.loads((tmp_path / 'o.json').read_text(encoding='utf-8'))
    facts = reported['datasets'][0]['facts']
    files = {path for path, _fault in planted.values() if not os.path.isdir(path)} | {good}
    assert facts['files'] == len(files)
    assert '99' in facts['values']
    faults = [path for path, fault in planted.values() if fault]
    reported_of = sum(n for key, n in facts['maps']['counts'].items() if key.startswith('unreadable '))
    assert reported_of >= len(faults)


def test_names_are_shown_in_one_line_of_text() -> None:
    for name in ('a\nb', 'a\x1b[2Jb', os.fsdecode(b'\xff'), '\u202eb', 'a\u2028b'):
        shown = make_printable(f'/data/{name}.png', '/data')
        assert shown.isprintable()
        shown.encode('utf-8')
    assert make_printable('/data/a.png', '/data/') == 'a.png'
    assert make_printable('/database/a.png', '/data') == '/database/a.png'
