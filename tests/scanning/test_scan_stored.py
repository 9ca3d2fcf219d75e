"""Values are reported as the files hold them, so that the user finds them: training sees them shifted and mapped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from label_files import BLOCKS, write
from scans import run_scan

from mmguard.cli import main
from mmguard.formats.maps.sources import FolderSource, scan_maps
from mmguard.formats.options import MapSettings

SHIFTED = MapSettings(num_classes=150, reduce_zero_label=True)


@pytest.fixture
def folder(tmp_path: Path) -> str:
    """Stored 150 is the last class behind the shift; 151 is one too many."""
    fine, wrong = BLOCKS.copy(), BLOCKS.copy()
    fine[0, :9] = 150
    wrong[0, :7] = 151
    write(tmp_path / 'labels' / 'fine.png', fine)
    write(tmp_path / 'labels' / 'wrong.png', wrong)
    return str(tmp_path / 'labels')


def test_behind_reduce_zero_label_the_file_that_holds_it_is_named(folder: str) -> None:
    facts = scan_maps(FolderSource(folder, SHIFTED).items(), SHIFTED).to_facts(root=folder)
    assert (facts.values, facts.stored) == ({150: 7}, {150: [151]})


def test_the_screen_the_json_and_the_page_say_the_same(folder: str, tmp_path: Path, capsys: Any) -> None:
    page, written = tmp_path / 'page.html', tmp_path / 'scan.json'
    command = ['scan', folder, '--num-classes', '150', '--reduce-zero-label']
    assert main([*command, '--json', str(written), '--html', str(page)]) == 1
    out = capsys.readouterr().out
    assert '151 (7)' in out
    (data,) = json.loads(written.read_text())['datasets']
    assert data['findings'][0]['files'] == ['wrong.png']  # fine.png holds 150, and that is a class
    assert data['worst'][0]['stored'] == {'151': 7}
    assert data['worst'][0]['values'] == {'150': 7}


def test_what_is_ignored_is_known_as_stored(folder: str) -> None:
    (result,) = run_scan(folder, num_classes=150, reduce_zero_label=True)
    assert result.ignored == [0, 255]


@pytest.mark.parametrize(
    ('settings', 'stored'),
    [
        (MapSettings(150, label_map=((3, 200),)), {200: [3]}),
        (MapSettings(4), {}),
        (MapSettings(150, label_map=((2, 222), (3, 222), (4, 222))), {222: [2, 3, 4]}),
    ],
)
def test_a_label_map_that_leads_out_names_what_it_was(tmp_path: Path, settings: MapSettings, stored: Any) -> None:
    write(tmp_path / 'a.png', BLOCKS)
    assert scan_maps(FolderSource(str(tmp_path), settings).items(), settings).to_facts().stored == stored


def test_16_bits_are_reported_as_16_bits(tmp_path: Path) -> None:
    label = BLOCKS.astype(np.uint16)
    label[0, :5] = 256 + 77
    write(tmp_path / 'a.png', label)
    settings = MapSettings(num_classes=5)
    facts = scan_maps(FolderSource(str(tmp_path), settings).items(), settings).to_facts()
    assert (facts.values, facts.stored) == ({77: 5}, {77: [333]})


def test_color_files_are_named(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for number in range(3):
        write(tmp_path / 'labels' / f'{number}.png', rng.integers(0, 256, (40, 40, 3), dtype=np.uint8))
    write(tmp_path / 'labels' / 'plain.png', BLOCKS)
    written = tmp_path / 'scan.json'
    command = ['scan', str(tmp_path / 'labels'), '--num-classes', '5']
    assert main([*command, '--json', str(written)]) == 1
    (data,) = json.loads(written.read_text())['datasets']
    (finding,) = [finding for finding in data['findings'] if finding['code'] == 'MG120']
    assert finding['files'] == ['0.png', '1.png', '2.png']
