"""OpenImages' meta file is compared as mmdet compares it, and no code in it is run."""

from __future__ import annotations

import os
import pickle
import resource
from pathlib import Path
from typing import Any, Dict, List

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from mmguard.findings import diagnose
from mmguard.tools.scan.annotations import scan_openimages
from mmguard.tools.scan.annotations.faults import Faults
from mmguard.tools.scan.annotations.openimages_metas import read_metas


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = ['a,x,/m/0,1,0.1,0.5,0.1,0.5,0,0,0,0,0', 'b,x,/m/0,1,0.1,0.5,0.1,0.5,0,0,0,0,0'] * 2
    (tmp_path / 'boxes.csv').write_text('\n'.join(['header' + ',' * 12, *sorted(rows)]))
    (tmp_path / 'classes.csv').write_text('/m/0,thing\n')
    for name in 'ab':
        Image.new('RGB', (40, 30)).save(tmp_path / f'{name}.jpg')
    return tmp_path


def meta(name: str, height: int = 30, width: int = 40) -> Dict[str, Any]:
    return dict(filename=f'some/where/{name}.jpg', ori_shape=(height, width, 3))


def scanned(folder: Path, metas: Any) -> Any:
    (folder / 'metas.pkl').write_bytes(metas if isinstance(metas, bytes) else pickle.dumps(metas))
    files = [str(folder / name) for name in ('boxes.csv', 'classes.csv', 'metas.pkl')]
    return scan_openimages(*files, images=str(folder))


def test_metas_that_fit_say_nothing(folder: Path) -> None:
    facts = scanned(folder, [meta('a'), meta('b')])
    assert facts.annotations.unreadable == {}
    assert (facts.annotations.sizes_compared, facts.annotations.size_mismatches) == (2, [])
    assert all(finding.severity == 'info' for finding in diagnose(facts))


@pytest.mark.parametrize(
    ('metas', 'why', 'where'),
    [
        ([meta('a')], 'another number of images', '1 metas, 2 images'),
        ([meta('b'), meta('a')], 'another order', 'meta 1 is of b.jpg, the annotations have a.jpg there'),
        ([dict(filename='a.jpg')], 'is no list of image metas', 'KeyError'),
        (3, 'is no list of image metas', 'TypeError'),
        (b'', 'is no list of image metas', 'it is damaged'),
        (b'\x80\x04garbage', 'is no list of image metas', 'metas.pkl'),
    ],
)
def test_what_ends_mmdet_is_reported(folder: Path, metas: Any, why: str, where: str) -> None:
    facts = scanned(folder, metas)
    reported = {what: places for what, places in facts.annotations.unreadable.items() if why in what}
    assert where in str(reported)
    assert any(finding.severity != 'info' for finding in diagnose(facts))


def test_rows_of_an_image_that_do_not_stand_together_are_two_images_to_mmdet(folder: Path) -> None:
    lines = (folder / 'boxes.csv').read_text().splitlines()
    (folder / 'boxes.csv').write_text('\n'.join([lines[0], lines[1], lines[3], lines[2]]))
    facts = scanned(folder, [meta('a'), meta('b')])
    assert '2 metas, 3 images' in str(facts.annotations.unreadable)


def test_another_size_on_disk_is_a_finding(folder: Path) -> None:
    facts = scanned(folder, [meta('a'), meta('b', 300, 400)])
    assert facts.annotations.size_mismatches == [('b.jpg', (30, 40), (300, 400))]


def test_no_code_is_run(folder: Path) -> None:
    class Evil:
        def __reduce__(self) -> Any:
            return os.mkdir, (str(folder / 'made'),)

    facts = scanned(folder, [Evil()])
    assert not (folder / 'made').exists()
    assert 'it may run code' in str(facts.annotations.unreadable)
    assert 'mkdir' in str(facts.annotations.unreadable)


@given(st.binary(max_size=60), st.integers(0, 200))
def test_no_bytes_crash_the_reader(tmp_path_factory: pytest.TempPathFactory, noise: bytes, place: int) -> None:
    path = tmp_path_factory.mktemp('any') / 'metas.pkl'
    whole = pickle.dumps([meta('a'), meta('b')])
    contents: List[bytes] = [noise, whole[:place] + noise + whole[place + len(noise) :]]
    for content in contents:
        path.write_bytes(content)
        assert isinstance(read_metas(str(path), Faults()), list)


def test_a_number_beyond_all_reason_takes_no_memory(folder: Path) -> None:
    whole = pickle.dumps([meta('a'), meta('b')], 2)
    place = whole.index(b'q\x00')
    huge = whole[:place] + b'r' + (1 << 31).to_bytes(4, 'little') + whole[place + 2 :]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    facts = scanned(folder, huge)
    assert 'it is damaged: 2,147,483,648 objects' in str(facts.annotations.unreadable)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1 << 20  # KiB
