"""What stops mmdet's OpenImagesDataset in the columns behind the box."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from format_cases import openimages

from mmguard.findings import LabelFacts, diagnose
from mmguard.formats.openimages import scan_openimages

pytest.importorskip('mmseg')

FILES = ('boxes.csv', 'classes.csv', 'metas.pkl', 'hierarchy.json')
HEADER = 'header' + ',' * 12


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, content in openimages().items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    return tmp_path


def scanned(folder: Path) -> LabelFacts:
    return scan_openimages(str(folder / 'boxes.csv'), str(folder / 'classes.csv'), images=str(folder / 'images'))


def loads(folder: Path) -> bool:
    from mmdet.datasets import OpenImagesDataset

    boxes, classes, metas, tree = (str(folder / name) for name in FILES)
    more: Any = dict(ann_file=boxes, data_prefix=dict(img=''), pipeline=[], serialize_data=False)
    try:
        OpenImagesDataset(classes, metas, tree, **more)
    except Exception:
        return False
    return True


def row(place: int, value: str) -> str:
    columns = ['a', 'x', '/m/0', '1', '0.1', '0.5', '0.1', '0.5', *'00000']
    columns[place] = value
    return ','.join(columns)


_NO_FLAGS = [*((place, 'x') for place in range(8, 13)), (8, '0.0'), (8, ''), (4, '1,5')]


@pytest.mark.parametrize(('place', 'value'), _NO_FLAGS)
def test_a_flag_that_stops_mmdet_is_a_finding(folder: Path, place: int, value: str) -> None:
    path, sound = folder / 'boxes.csv', row(8, '0')
    path.write_text('\n'.join([HEADER, sound, sound.replace('a,', 'b,', 1)]))
    assert loads(folder)
    assert all(finding.severity == 'info' for finding in diagnose(scanned(folder)))
    path.write_text(path.read_text().replace(sound, row(place, value), 1))
    assert not loads(folder)
    facts = scanned(folder)
    (what,) = facts.annotations.unreadable
    assert 'IsOccluded' in what
    assert any(finding.severity == 'error' for finding in diagnose(facts))


def test_flags_that_int_takes(folder: Path) -> None:
    (folder / 'boxes.csv').write_text('\n'.join(['header', row(8, ' 1 '), row(9, '2').replace('a,', 'b,', 1)]))
    assert loads(folder)
    facts = scanned(folder)
    assert facts.annotations.unreadable == {}
    assert facts.total == 2


def test_sixty_thousand_unknown_labels_take_seconds(folder: Path) -> None:
    rows = ['header', *(row(2, f'/u/{number}') for number in range(60_000))]
    (folder / 'boxes.csv').write_text('\n'.join(rows))
    start = time.process_time()
    facts = scanned(folder)
    diagnose(facts)
    assert len(facts.annotations.left_out_names) == 60_000
    assert time.process_time() - start < 10


def test_damaged_files_are_reported(folder: Path) -> None:
    (folder / 'boxes.csv').write_bytes(b'a,b\n1\n\xff\xfe' + b',' * 20)
    (folder / 'classes.csv').unlink()
    assert len(scanned(folder).annotations.unreadable) >= 3
