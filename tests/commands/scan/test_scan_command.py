"""``mmguard scan``, from the words on the command line to exit code, JSON and page."""

from __future__ import annotations

from argparse import ArgumentTypeError
from pathlib import Path
from typing import Any, Dict, List

import coco_cases
import numpy as np
import pytest
from coco_cases import ann, coco
from label_files import BLOCKS, write
from put_file import put_config
from scans import scan

from mmguard.cli import main
from mmguard.commands.arguments import label_map
from mmguard.formats.maps.sources import FolderSource
from mmguard.formats.maps.summary import MapItem
from mmguard.formats.options import MapSettings


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('XDG_CACHE_HOME', str(tmp_path / 'cache'))


@pytest.fixture
def five(tmp_path: Path) -> Path:
    """labels/ and images/ of five classes."""
    for number in range(4):
        write(tmp_path / 'data' / 'labels' / f'{number}.png', np.roll(BLOCKS, number))
        write(tmp_path / 'data' / 'images' / f'{number}.jpg', np.zeros((*BLOCKS.shape, 3), np.uint8))
    return tmp_path / 'data'


def test_clean_labels_are_reported_to_be_fine(five: Path, capsys: pytest.CaptureFixture) -> None:
    reported = scan(capsys, five, '--num-classes', 5)
    assert reported['code'] == 0
    assert reported['clean']
    assert all(finding['severity'] == 'info' for finding in reported['findings'])
    assert reported['facts']['maps']['image_forms'] == {'rgb': 4}  # images/ was found, too


def test_an_invalid_value_is_found_and_named(five: Path, capsys: pytest.CaptureFixture) -> None:
    write(five / 'labels' / '2.png', np.where(BLOCKS == 4, 77, BLOCKS).astype(np.uint8))
    reported = scan(capsys, five, '--num-classes', 5)
    assert reported['code'] == 1
    assert reported['findings'][0]['severity'] == 'error'
    assert reported['facts']['values'] == {'77': int((BLOCKS == 4).sum())}
    assert reported['worst'][0]['file'] == '2.png'
    assert scan(capsys, five, '--num-classes', 5, '--label-map', '77:4')['facts'].get('values', {}) == {}
    assert scan(capsys, five, '--num-classes', 5, '--label-map', '0:0,*:255')['facts'].get('values', {}) == {}
    assert scan(capsys, five / 'labels' / '1.png', '--num-classes', 5)['facts']['files'] == 1
    shifted = scan(capsys, five, '--num-classes', 5, '--reduce-zero-label')['facts']
    assert shifted['values'] == {'76': int((BLOCKS == 4).sum())}
    assert '255' in shifted['histogram']


def test_the_screen_says_the_same(
    five: Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch, snapshot: Any
) -> None:
    monkeypatch.chdir(five)
    command = ['scan', 'labels', '--num-classes', '5', '--processes', '1']
    assert main(command) == 0
    snapshot('scan', 'a clean folder of label maps', capsys.readouterr().out)
    write(five / 'labels' / '[red].png', np.full_like(BLOCKS, 77))  # a name is no markup
    assert main(command) == 1
    snapshot('scan', 'a slip in a folder of label maps', capsys.readouterr().out)


def test_the_page_shows_the_worst_files(five: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    write(five / 'labels' / '<script>.png', np.full_like(BLOCKS, 77))
    page = tmp_path / 'out' / 'page.html'
    assert main(['scan', str(five), '--num-classes', '5', '--processes', '1', '--html', str(page)]) == 1
    html = page.read_text(encoding='utf-8')
    assert '&lt;script&gt;.png' in html
    assert '<script>.png' not in html
    assert 'data:image/' in html


@pytest.mark.parametrize(
    ('words', 'named'),
    [
        (['nowhere'], 'nowhere'),
        (['labels', '--images', 'nowhere'], 'nowhere'),
        (['notes.txt'], '.txt'),
    ],
)
def test_what_cannot_run_ends_with_2(
    five: Path, words: List[str], named: str, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(five)
    (five / 'notes.txt').write_text('no label')
    assert main(['scan', *words]) == 2
    assert named in capsys.readouterr().err


def test_a_detection_config_is_handed_over(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    pytest.importorskip('mmdet')
    coco_cases.write(tmp_path, coco([ann(1, category=7)], 1, ['cat'], 7), 'coco.json')
    dataset = dict(type='CocoDataset', data_root=str(tmp_path), ann_file='coco.json', metainfo=dict(classes=('cat',)))
    model = dict(type='RetinaNet', bbox_head=dict(type='RetinaHead', num_classes=1))
    loaders = {f'{split}_dataloader': dict(dataset=dataset) for split in ('train', 'val')}
    reported = scan(capsys, put_config(tmp_path / 'config.py', default_scope='mmdet', model=model, **loaders))
    assert reported['name'] == 'train, val'
    assert reported['facts']['total'] == 1
    assert reported['facts'].get('values', {}) == {}


def pairs(source: FolderSource) -> Dict[str, str]:
    return {Path(item.path).name: Path(item.image or '').name for item in source.items()}


def test_partners_by_name(tmp_path: Path) -> None:
    labels, images = tmp_path / 'gtFine', tmp_path / 'leftImg8bit'
    for tail in ('labelTrainIds', 'labelIds', 'color'):
        write(labels / 'train' / f'a_1_gtFine_{tail}.png', BLOCKS)
    write(labels / 'train' / 'b_2_gtFine_labelTrainIds.png', BLOCKS)
    for name in ('a_1_leftImg8bit.png', 'c_3_leftImg8bit.png'):
        write(images / 'train' / name, BLOCKS)
    write(images / 'val' / 'd_4_leftImg8bit.png', BLOCKS)
    source = FolderSource(str(labels), MapSettings(19), str(images))
    assert pairs(source) == {
        'a_1_gtFine_labelTrainIds.png': 'a_1_leftImg8bit.png',
        'b_2_gtFine_labelTrainIds.png': 'b_2_gtFine_labelTrainIds.*',
    }
    missing = [Path(path).name for path in source.noticed.missing_labels.first]
    assert missing == ['c_3_leftImg8bit.png', 'd_4_leftImg8bit.png']
    assert 'labelTrainIds' in source.notes[0]
    chosen = FolderSource(str(labels), MapSettings(19), suffix='_color.png')
    assert list(chosen.items()) == [MapItem(str(labels / 'train' / 'a_1_gtFine_color.png'))]


def test_two_labels_of_one_stem_are_reported(tmp_path: Path) -> None:
    for name in ('a.png', 'a.bmp', 'b.png'):
        write(tmp_path / name, BLOCKS)
    source = FolderSource(str(tmp_path), MapSettings(5))
    assert len(list(source.items())) == source.count() == 3
    assert source.noticed.duplicates.first == [str(tmp_path / 'a')]


def test_label_maps_on_the_command_line() -> None:
    assert label_map('{"7": 0, "-1": 255}') == {-1: 255, 7: 0}
    for wrong in ('7', '7:a', '{"a": 1}', '[1]', '7:0:1', '{'):
        with pytest.raises(ArgumentTypeError, match='7:0,8:1'):
            label_map(wrong)
