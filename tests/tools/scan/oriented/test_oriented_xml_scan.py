"""XML of DIOR and of HRSC: planted faults are named with their lines, damaged files do not end the scan."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Callable, Dict, List, Tuple

import pytest
from oriented_files import (
    FIRST,
    HEIGHT,
    OBJECTS,
    WIDTH,
    dior_text,
    hrsc_text,
    make_xml,
    of_dior,
    of_hrsc,
    picture,
    rboxes,
    turned,
)
from scans import check_damaged, followed, scanned

from mmguard.cli import main

BOX = [(20.0, 20.0), (40.0, 20.0), (40.0, 30.0), (20.0, 30.0)]
CROSSED = [BOX[0], BOX[2], BOX[1], BOX[3]]
LINE = FIRST + OBJECTS


def moved(x: float, y: float) -> List[Tuple[float, float]]:
    return [(left + x, top + y) for left, top in BOX]


#: What is planted, each in a file of its own -> the code that names it.
PLANTED: Dict[str, List[Tuple[str, str]]] = {
    'dior': [
        (of_dior(BOX, 'airplan'), 'MG154'),
        (of_dior(BOX, 'harbour'), 'MG154'),
        (of_dior(moved(30, 0)), 'MG152'),
        (of_dior(moved(100, 0)), 'MG109'),
        (of_dior([BOX[0], BOX[1]] * 2), 'MG109'),
        (of_dior(CROSSED), 'MG179'),
        (of_dior(BOX, ''), 'MG176'),
        (of_dior(BOX).replace('robndbox', 'bndbox'), 'MG176'),
        (of_dior(BOX).replace('20.0', 'x', 1), 'MG176'),
        (of_dior(BOX).replace('<x_left_top>20.0</x_left_top>', ''), 'MG176'),
        (of_dior(BOX).replace('20.0', 'nan', 1), 'MG176'),
    ],
    'hrsc': [
        (of_hrsc((60, 20, 30, 9, 0.1)), 'MG152'),
        (of_hrsc((200, 20, 30, 9, 0.1)), 'MG109'),
        (of_hrsc((30, 20, 0, 9, 0.1)), 'MG109'),
        (of_hrsc((30, 20, -20, 9, 0.1)), 'MG109'),
        (of_hrsc((30, 20, 20, 9, 57.3)), 'MG176'),
        (of_hrsc((30, 20, 20, 9, 'left')), 'MG176'),
        (of_hrsc((30, 20, 20, 9)), 'MG176'),
        (of_hrsc((30, 20, 20, 9, 'inf')), 'MG176'),
        (of_hrsc((30, 20, 20, 9, 0.1), head=('', 3)), 'MG176'),
        (of_hrsc((30, 20, 20, 9, 0.1), head=(3, 4.5)), 'MG176'),
        (of_hrsc(rboxes(10)[1]), 'MG166'),
    ],
}
ENDING = {'dior': '.jpg', 'hrsc': '.bmp'}


@pytest.mark.parametrize('kind', sorted(PLANTED))
def test_planted_faults_are_named_with_their_lines(kind: str, tmp_path: Path) -> None:
    planted = {number: [text] for number, (text, _) in enumerate(PLANTED[kind])}
    labels = make_xml(tmp_path, kind, 18, planted)
    images = {file.stem: file for file in tmp_path.rglob(f'*{ENDING[kind]}')}
    images['00012'].unlink()
    size = labels / '00014.xml'
    size.write_text(size.read_text().replace(f'>{WIDTH}<', '>64.0<'))
    code, found, facts = scanned(labels, tmp_path / 'scan.json')
    assert code == 1
    about = facts['annotations']
    said = json.dumps([*(about.get(key) for key in ('unreadable', 'mask_examples', 'box_examples')), about.get('yolo')])
    for number, (text, expected) in enumerate(PLANTED[kind]):
        assert expected in found, text
        assert expected == 'MG154' or f'{number:05d}.xml: line {LINE}' in said, text
    assert f'00012{ENDING[kind]}' in found['MG150']
    assert 'the width is no whole number: mmdet stops here: 00014.xml' in found['MG176']
    assert set(found) == {*(expected for _, expected in PLANTED[kind]), 'MG150'}
    images['00013'].write_bytes(picture('JPEG' if kind == 'dior' else 'BMP', 32, 32))
    found = scanned(labels, tmp_path / 'scan.json')[1]
    assert '32 x 32 on disk, 64 x 48 in the annotations' in found['MG175']


#: Objects behind those of the first files, and the code of the finding that goes.
EDITS: Dict[str, Tuple[str, List[str], str]] = {
    'a slip': ('dior', [of_dior(BOX, 'airplan')], 'MG154'),
    'blanks': ('dior', [of_dior(BOX, ' ship ')], 'MG177'),
    'crossing': ('dior', [of_dior(CROSSED)], 'MG179'),
    'beyond': ('dior', [of_dior(moved(30, 0)), of_dior(moved(-30, 0))], 'MG152'),
    'outside': ('dior', [of_dior(moved(100, 0))], 'MG109'),
    'no box': ('dior', ['<object><name>ship</name></object>', of_dior(BOX, '')], 'MG176'),
    'ships beyond': ('hrsc', [of_hrsc((60, 20, 30, 9, 0.1))], 'MG152'),
    'ships of no width': ('hrsc', [of_hrsc((30, 20, 0, 9, 0.1))], 'MG109'),
    'no head': ('hrsc', [of_hrsc((30, 20, 20, 9, 0.1), head=('', 3)), of_hrsc((30, 20, 20, 9, 'x'))], 'MG176'),
    'twice': ('hrsc', [of_hrsc(rboxes(0)[1])], 'MG166'),
}


@pytest.mark.parametrize('name', sorted(EDITS))
def test_every_edit_followed_leaves_a_clean_set(name: str, tmp_path: Path) -> None:
    kind, objects, code = EDITS[name]
    labels = make_xml(tmp_path / 'set', kind, planted={number: [text] for number, text in enumerate(objects)})
    assert len(list(followed(labels, code, tmp_path))) == 1


def test_degrees_become_radians(tmp_path: Path) -> None:
    labels = make_xml(tmp_path / 'set', 'hrsc')
    sound = scanned(labels, tmp_path / 'scan.json')[2]['histogram']
    for number, file in enumerate(sorted(labels.iterdir())):
        boxes = [(*box[:4], math.degrees(box[4])) for box in rboxes(number)]
        file.write_text(hrsc_text([of_hrsc(box) for box in boxes]))
    assert set(scanned(labels, tmp_path / 'scan.json')[1]) == {'MG176'}
    assert main(['fix', str(labels), '--out', str(tmp_path / 'fixed'), '--edit', '1']) == 0
    code, found, facts = scanned(tmp_path / 'fixed', tmp_path / 'scan.json')
    assert (code, found, facts['histogram']) == (0, {}, sound)


def test_swapped_sizes(tmp_path: Path) -> None:
    labels = make_xml(tmp_path / 'set', 'dior', planted={number: [of_dior(moved(20, 0))] for number in range(14)})
    for file in labels.iterdir():
        text = file.read_text().replace(f'width>{WIDTH}<', 'width>0<').replace(f'height>{HEIGHT}<', f'height>{WIDTH}<')
        file.write_text(text.replace('width>0<', f'width>{HEIGHT}<'))
    assert 'MG175' in scanned(labels, tmp_path / 'scan.json')[1]
    assert main(['fix', str(labels), '--out', str(tmp_path / 'fixed'), '--sizes', 'swapped']) == 0
    assert scanned(tmp_path / 'fixed', tmp_path / 'scan.json')[:2] == (0, {})


# ---- nothing wrong


def upright(text: str) -> str:
    return text.replace('<robndbox>', '<bndbox><xmin>1</xmin></bndbox><robndbox>')


CUT_SHIP = of_hrsc((60, 20, 30, 9, 0.1)).replace('truncated>0', 'truncated>1')
CLEAN: Dict[str, Tuple[str, Callable[[str], str]]] = {
    'dior': ('dior', str),
    'dior with both boxes': ('dior', upright),
    'dior without a size': ('dior', lambda text: '\n'.join(line for line in text.split('\n') if 'size' not in line)),
    'dior from Windows': ('dior', lambda text: '\ufeff' + text.replace('\n', '\r\n')),
    'hrsc': ('hrsc', str),
    'hrsc from Windows': ('hrsc', lambda text: '\ufeff' + text.replace('\n', '\r\n')),
    'hrsc as it is published': (
        'hrsc', lambda text: text.replace('<Class_ID>', '<Object_ID>7</Object_ID><box_xmin>1</box_xmin><Class_ID>')
    ),
    'ships cut by the edge': (
        'hrsc', lambda text: text.replace('</HRSC_Objects>', CUT_SHIP + '</HRSC_Objects>')
    ),
    'ships without a height': ('hrsc', lambda text: text.replace('Img_SizeHeight', 'Img_Height')),
    'cut by the edge': (
        'dior', lambda text: text.replace('</annotation>', of_dior(moved(30, 0), 'ship', 1) + '</annotation>')
    ),
}  # fmt: skip


@pytest.mark.parametrize('name', sorted(CLEAN))
def test_clean_sets(name: str, tmp_path: Path) -> None:
    kind, change = CLEAN[name]
    labels = make_xml(tmp_path / 'set', kind)
    for file in labels.iterdir():
        file.write_text(change(file.read_text()))
    (labels / '99999.xml').write_text((dior_text if kind == 'dior' else hrsc_text)([]))  # nothing is in this image
    next((tmp_path / 'set').rglob(f'00000{ENDING[kind]}')).with_name(f'99999{ENDING[kind]}').write_bytes(
        picture('JPEG' if kind == 'dior' else 'BMP')
    )
    for target in (labels, tmp_path / 'set'):
        code, found, facts = scanned(target, tmp_path / 'scan.json')
        assert (code, found, facts['files']) == (0, {}, 15)
        assert facts['total'] >= 42


# ---- damaged

_DIOR, _HRSC = dior_text([of_dior(turned(*rboxes(0)[0]))]), hrsc_text([of_hrsc(rboxes(0)[0])])


def damaged(text: str) -> Dict[str, bytes]:
    return {
        'empty': b'',
        'blanks': b' \n\t ',
        'null bytes': bytes(100),
        'binary': bytes(range(256)) * 9,
        'a picture': picture(),
        **{f'the first {part} of 5': text.encode()[: len(text) * part // 5] for part in range(1, 5)},
        'latin-1': text.replace('plane', 'pl\xe9').replace('SizeW', '\xe9').encode('latin-1')[:200],
        'an encoding of nobody': b'<?xml version="1.0" encoding="klingon"?>' + text.encode(),
        'an entity': b'<!DOCTYPE a [<!ENTITY b "c">]>' + text.encode(),
        'a namespace': text.replace('<annotation>', '<annotation xmlns="a">')
        .replace('<HRSC_Image>', '<HRSC_Image xmlns="a">')
        .encode(),
        'nested': b'<annotation>' + b'<object>' * 5000,
        'sizes of anything': text.replace(f'>{WIDTH}<', '>-3e9<').encode(),
        'sizes of nothing': text.replace(f'>{WIDTH}<', '><').encode(),
        'no sizes': text.replace('idth', 'ide').encode(),
        'numbers of anything': text.replace('.', 'x').encode(),
        'huge numbers': text.replace('.', 'e999').encode(),
        'html': b'<html><p>404 not found</html>',
        'two roots': text.encode() * 2,
        'json': b'{}',
        'an object of nothing': text.replace('robndbox', 'box').replace('mbox_w', 'w').encode(),
    }


@pytest.mark.parametrize(('kind', 'text'), [('dior', _DIOR), ('hrsc', _HRSC)])
def test_damaged_files_do_not_end_the_scan(kind: str, text: str, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    labels = make_xml(tmp_path / 'set', kind, 40, {0: [of_dior(CROSSED)]} if kind == 'dior' else {})
    files = damaged(text)
    unnamed, _ = check_damaged(labels, labels, files, tmp_path, capsys, '.xml', ('MG132', 'MG176'))
    assert unnamed == []
    assert (tmp_path / 'fixed/00001.xml').is_file()


@pytest.mark.parametrize('name', sorted(damaged(_HRSC)))
def test_a_damaged_file_alone_is_not_clean(name: str, tmp_path: Path) -> None:
    for kind, text in (('dior', _DIOR), ('hrsc', _HRSC)):
        (tmp_path / kind).mkdir()
        (tmp_path / kind / '00000.xml').write_bytes(damaged(text)[name])
        assert main(['scan', str(tmp_path / kind)]) in (1, 2)


@pytest.mark.parametrize('text', [dior_text([]), hrsc_text([])])
def test_a_set_without_an_object_is_not_clean(text: str, tmp_path: Path) -> None:
    (tmp_path / '00000.xml').write_text(text)
    assert main(['scan', str(tmp_path)]) in (1, 2)
