"""Texts of DOTA: planted faults are named with file and line, clean sets are clean, damaged files do not end a scan."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Dict, List, Tuple

import pytest
from oriented_files import HEIGHT, OBJECTS, WIDTH, make_dota, picture, row, rows, turned
from scans import check_damaged, edits, followed, scanned

from mmguard.cli import main

BOX = [(20.0, 20.0), (40.0, 20.0), (40.0, 30.0), (20.0, 30.0)]
SOUND = row(BOX)


def moved(x: float, y: float, label: str = 'ship', difficulty: object = 0) -> str:
    return row([(left + x, top + y) for left, top in BOX], label, difficulty)


#: What is planted, each line in a file of its own -> the code that names it.
PLANTED: List[Tuple[str, str]] = [
    (row(BOX, 'plame'), 'MG154'),
    (moved(30, 0), 'MG152'),
    (moved(-30, 0), 'MG152'),
    (moved(100, 0), 'MG109'),
    (row([(20.0, 20.0), (30.0, 30.0), (40.0, 40.0), (25.0, 25.0)]), 'MG109'),
    (row([(0.1, 0.1), (0.5, 0.1), (0.5, 0.4), (0.1, 0.4)]), 'MG109'),
    (row([BOX[0], BOX[2], BOX[1], BOX[3]]), 'MG179'),
    ('20 20 40 20 40 30 20 plane 0', 'MG176'),
    ('20 20 40 20 40 30 plane 0', 'MG176'),
    ('20 20 forty 20 40 30 20 30 plane 0', 'MG176'),
    ('20 20 nan 20 40 30 20 30 plane 0', 'MG176'),
    (row(BOX, 'plane', 'easy'), 'MG176'),
    (row(BOX, 'plane', '').strip(), 'MG176'),
    (row(BOX, 'large vehicle'), 'MG176'),
    (SOUND.replace(' ', ','), 'MG176'),
    ('0 0.1 0.1 0.5 0.1 0.5 0.4 0.1 0.4', 'MG176'),
]


def test_planted_faults_are_named_with_file_and_line(tmp_path: Path) -> None:
    planted = {number: [text] for number, (text, _) in enumerate(PLANTED)}
    root = make_dota(tmp_path / 'set', 24, {**planted, 16: [rows(16)[0]]})
    (root / 'images/P0017.png').unlink()
    (root / 'labelTxt/P0018.txt').unlink()
    (root / 'labelTxt/P0019.txt').write_bytes(b'\xef\xbb\xbf' + SOUND.encode())
    (root / 'images/P0020.png').write_bytes(b'no image')
    code, found, facts = scanned(root, tmp_path / 'scan.json')
    assert code == 1
    about = facts['annotations']
    said = json.dumps([about[key] for key in ('unreadable', 'mask_examples', 'box_examples')])
    for number, (text, expected) in enumerate(PLANTED):
        assert expected in found
        where = f'P{number:04d}.txt: line {OBJECTS + 1}'
        assert expected == 'MG154' or where in said, text
    assert "1 annotation of 'plame'" in found['MG154']
    assert f'P0016.txt: line {OBJECTS + 1}' in found['MG166']
    assert 'P0017.png' in found['MG150']
    assert 'byte order mark' in found['MG176']
    assert 'images/P0020.png' in found['MG132']
    assert about['yolo']['faults']['no label'] == ['images/P0018.png']
    assert set(found) == {*(expected for _, expected in PLANTED), 'MG132', 'MG150', 'MG166'}


#: Rows behind those of the first files, and the code of the finding that goes.
EDITS: Dict[str, Tuple[List[str], str]] = {
    'case': ([row(BOX, 'Plane'), row(BOX, 'plane')], 'MG177'),
    'a slip': ([row(BOX, 'plame'), row(BOX, 'harbour')], 'MG154'),
    'beyond the image': ([moved(30, 0), moved(0, -25)], 'MG152'),
    'outside': ([moved(100, 0)], 'MG109'),
    'no area': ([row([BOX[0], BOX[1], BOX[0], BOX[1]])], 'MG109'),
    'a few fractions': ([row([(0.1, 0.1), (0.5, 0.1), (0.5, 0.4), (0.1, 0.4)])], 'MG109'),
    'crossing corners': ([row([BOX[0], BOX[2], BOX[1], BOX[3]]), row([BOX[0], BOX[1], BOX[3], BOX[2]])], 'MG179'),
    'columns': (['1 2 3', row(BOX, 'plane', '').strip(), row(BOX, 'plane', 'x'), SOUND.replace(' ', ',')], 'MG176'),
    'twice': ([rows(0)[1]], 'MG166'),
}


@pytest.mark.parametrize('name', sorted(EDITS))
def test_every_edit_followed_leaves_a_clean_set(name: str, tmp_path: Path) -> None:
    lines, code = EDITS[name]
    root = make_dota(tmp_path / 'set', planted={number: [line] for number, line in enumerate(lines)})
    for out in followed(root, code, tmp_path):
        assert (out / 'images/P0005.png').read_bytes() == picture()


def test_what_fix_leaves_of_a_row(tmp_path: Path) -> None:
    lines = [
        moved(30, 0),
        row(BOX, 'large vehicle', 1),
        row(BOX, 'ship', '').strip(),
        row([BOX[0], *BOX[2:0:-1], BOX[3]]),
    ]
    root = make_dota(tmp_path / 'set', planted={0: ['gsd:0.1', '', *lines]})
    assert main(['fix', str(root / 'labelTxt'), '--out', str(tmp_path / 'fixed')]) == 0
    written = (tmp_path / 'fixed/P0000.txt').read_text().splitlines()
    assert written[OBJECTS:] == [
        '50 20 70 20 70 30 50 30 ship 2',
        '20 20 40 20 40 30 20 30 large-vehicle 1',
        '20 20 40 20 40 30 20 30 ship 0',
        '20 20 40 20 40 30 20 30 plane 0',
    ]
    assert written[:OBJECTS] == rows(0)
    assert (tmp_path / 'fixed/P0001.txt').read_text() == (root / 'labelTxt/P0001.txt').read_text()


def test_a_set_of_fractions(tmp_path: Path) -> None:
    root = make_dota(tmp_path / 'set')
    for number, file in enumerate(sorted((root / 'labelTxt').iterdir())):
        boxes = [[(x / WIDTH, y / HEIGHT) for x, y in turned(20 + number, 20 + n, 9, 5, 0.3)] for n in range(3)]
        lines = (' '.join([*(f'{side:.6f}' for point in box for side in point), 'ship 0']) for box in boxes)
        file.write_text('\n'.join(lines))
    for _ in followed(root, 'MG173', tmp_path):
        pass


# ---- nothing wrong


CLEAN = {
    'as mmrotate splits it': dict(labels='annfiles'),
    'as dota has it': dict(head='imagesource:GoogleEarth\ngsd:0.146343\n'),
    'cut by the edge': dict(planted={3: [moved(30, 0, difficulty=2)], 4: [moved(-15, -15, difficulty=2)]}),
    'names of ones own': dict(planted={number: [row(BOX, 'my-thing')] for number in range(5)}),
    'a fraction of a pixel over the edge': dict(planted={1: [moved(24.5, 0)], 2: [moved(-20.5, 0)]}),
}


@pytest.mark.parametrize('kind', sorted(CLEAN))
def test_clean_sets(kind: str, tmp_path: Path) -> None:
    root = make_dota(tmp_path / 'set', **CLEAN[kind])  # type: ignore[arg-type]
    labels = next(path for path in root.iterdir() if path.name != 'images')
    (labels / 'P0099.txt').write_text('')  # nothing is in this image
    (root / 'images/P0099.png').write_bytes(picture())
    (root / 'classes.txt').write_text('plane\nship\n')
    for target in (root, labels):
        code, found, facts = scanned(target, tmp_path / 'scan.json')
        assert (code, found, facts['files']) == (0, {}, 15)
        assert facts['total'] >= 42


def test_classes_and_images_of_ones_own(tmp_path: Path) -> None:
    root = make_dota(tmp_path / 'set')
    (root / 'images').rename(root / 'elsewhere')
    code, found, facts = scanned(root / 'labelTxt', tmp_path / 'scan.json', '--classes', 'ship,plane')
    assert (code, set(found), facts['annotations']['left_out_names']) == (1, {'MG154'}, {'harbor': 14})
    assert scanned(root, tmp_path / 'scan.json', '--images', str(root / 'elsewhere'))[:2] == (0, {})
    assert 'MG150' in scanned(root, tmp_path / 'scan.json', '--images', str(root))[1]


def test_labels_of_yolo_stay_those_of_yolo(tmp_path: Path) -> None:
    root = make_dota(tmp_path / 'set', labels='labels')
    for file in list((root / 'labels').iterdir())[:9]:
        file.write_text('0 0.1 0.1 0.5 0.1 0.5 0.4 0.1 0.4\n')
    facts = scanned(root, tmp_path / 'scan.json')[2]
    assert facts['annotations']['format'] == 'yolo'
    assert 'MG150' not in edits(tmp_path / 'scan.json').values()


# ---- damaged

DAMAGED: Dict[str, bytes] = {
    'null bytes': bytes(100),
    'binary': bytes(range(256)) * 9,
    'a picture': picture(),
    'utf-16': SOUND.encode('utf-16'),
    'latin-1': row(BOX, 'caf\xe9').encode('latin-1'),
    'half a row': SOUND[:20].encode(),
    'half a file': '\n'.join([SOUND, SOUND])[:-18].encode(),
    'one line': SOUND.encode() * 9,
    'json': b'{"shapes": []}',
    'xml': b'<annotation/>',
    'html': b'<html>404 not found</html>',
    'git lfs': b'version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 12\n',
    'csv': b'x1,y1,x2\n1,2,3\n',
    'words': b'nothing in here is a label\n',
    'huge numbers': ('1e999 ' * 8 + 'plane 0').encode(),
    'an integer of a thousand digits': ('9' * 5000 + ' 1' * 7 + ' plane 0').encode(),
    'other digits': row(BOX, 'plane', '\u00b2').encode(),
    'a tab': b'1\t2\t3\n',
    'a class alone': b'plane\n',
    'yolo': b'0 0.5 0.5 0.2 0.2\n',
    'a long line': b'x ' * 100000,
}


def test_damaged_files_do_not_end_the_scan(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    crossed = row([BOX[0], BOX[2], BOX[1], BOX[3]])
    root = make_dota(tmp_path / 'set', files=40, planted={0: [crossed]})
    unnamed, _ = check_damaged(root / 'labelTxt', root / 'labelTxt', DAMAGED, tmp_path, capsys, '.txt')
    assert unnamed == []
    assert (tmp_path / 'fixed/P0001.txt').is_file()


@pytest.mark.parametrize('name', [*sorted(DAMAGED.keys() - {'yolo'}), 'empty'])
def test_a_damaged_file_alone_is_not_clean(name: str, tmp_path: Path) -> None:
    (tmp_path / 'labelTxt').mkdir()
    (tmp_path / 'labelTxt/P0001.txt').write_bytes(DAMAGED.get(name, b''))
    assert main(['scan', str(tmp_path)]) in (1, 2)
    assert main(['scan', str(tmp_path / 'labelTxt/P0001.txt')]) in (1, 2)


def test_headers_alone_are_no_label(tmp_path: Path) -> None:
    (tmp_path / 'P0001.txt').write_text('imagesource:GoogleEarth\ngsd:0.1\n')
    assert main(['scan', str(tmp_path)]) == 2
