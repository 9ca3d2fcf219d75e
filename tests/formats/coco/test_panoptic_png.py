"""COCO panoptic: segments_info beside the PNG. Planted faults are named, clean sets are clean, damage ends no scan."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict

import numpy as np
import pytest
from PIL import Image
from scans import scanned

from mmguard.cli import main
from mmguard.formats.coco import panoptic
from mmguard.text import REPORT_ADVICE

HEIGHT, WIDTH = 34, 32


def make(root: Path, images: int = 14, first: int = 70_000, things: int = 2, void: int = 0, crowd: int = 0) -> Path:
    """A set without a fault: stuff above, things below, each time others."""
    folder = root / 'panoptic_train'
    folder.mkdir(parents=True)
    record: Dict[str, Any] = dict(images=[], annotations=[], categories=[])
    record['categories'] = [dict(id=n, name=f'class {n}', isthing=int(n < 3)) for n in (1, 2, 5)]
    for number in range(images):
        ids = np.zeros((HEIGHT, WIDTH), np.int64)
        boxes = {first + number: (void, 0, WIDTH, 10)}
        boxes.update({3 + 300 * n: (6 * n, 10, 6 * n + 5, 20 + n) for n in range(things)})
        segments = []
        for place, (segment, (left, top, right, bottom)) in enumerate(boxes.items()):
            ids[top:bottom, left:right] = segment
            box, area = [left, top, right - left, bottom - top], (right - left) * (bottom - top)
            category = 5 if not place else 1 + place % 2
            is_crowd = int(place == 1 and number < crowd)
            segments.append(dict(id=segment, category_id=category, iscrowd=is_crowd, bbox=box, area=area))
        save(folder / f'{number:02d}.png', ids)
        record['images'].append(dict(id=number, file_name=f'{number:02d}.jpg', height=HEIGHT, width=WIDTH))
        record['annotations'].append(dict(image_id=number, file_name=f'{number:02d}.png', segments_info=segments))
    (root / 'panoptic_train.json').write_text(json.dumps(record))
    return root / 'panoptic_train.json'


def save(path: Path, ids: np.ndarray) -> None:
    channels = np.stack([ids % 256, ids // 256 % 256, ids // 65536], axis=-1)
    Image.fromarray(channels.astype(np.uint8)).save(path)


def test_planted_faults_are_named_with_their_png(tmp_path: Path, snapshot: Any) -> None:
    path = make(tmp_path)
    folder, record = tmp_path / 'panoptic_train', json.loads(path.read_text())
    (folder / '00.png').unlink()
    blank = np.zeros((HEIGHT, WIDTH), np.int64)
    ids = blank.copy()
    ids[:10], ids[10:20, :5], ids[10:21, 6:11] = 70_001, 3, 303
    ids[23, 30:] = 9_000_000
    save(folder / '01.png', ids)  # two pixels of no segment
    record['annotations'][2]['segments_info'][1]['id'] = 4  # listed as 4, drawn as 3
    record['annotations'][3]['segments_info'][0]['area'] = 99
    save(folder / '04.png', np.where(np.arange(HEIGHT * 8)[:, None] < 10, 70_004, 0))  # of another size
    record['annotations'][5]['segments_info'][2]['id'] = 3  # twice
    Image.fromarray(blank.astype(np.uint8)).save(folder / '06.png')  # gray
    (folder / '07.png').write_bytes((folder / '07.png').read_bytes()[:60])
    record['annotations'][8]['segments_info'][0]['category_id'] = 77
    record['annotations'][9]['file_name'] = '10.png'
    record['annotations'][11]['segments_info'][0]['id'] = '70011'
    del record['annotations'][12]['file_name']
    channels = np.asarray(Image.open(folder / '13.png'))
    Image.fromarray(channels[..., ::-1].copy()).save(folder / '13.png')  # written by OpenCV
    path.write_text(json.dumps(record))
    code, found, facts = scanned(path, tmp_path / 'scan.json')
    assert code == 1
    examples = {what: ' '.join(places) for what, places in facts['annotations']['mask_examples'].items()}
    for what, named in {
        panoptic.NO_ENTRY_FAULT: ['01.png: id 9000000, 2 ', '02.png: id 3, 50 '],
        panoptic.EMPTY_SEGMENT_FAULT: ['02.png: id 4', '13.png: id 70013'],
        panoptic.WRONG_AREA_FAULT: ['03.png: id 70003, 320 '],
        panoptic.PNG_SIZE_FAULT: ['04.png: 1 x 272, 32 x 34 '],
        panoptic.DUPLICATE_ID_FAULT: ['05.png: id 3'],
    }.items():
        assert all(place in examples[what] for place in named), what
    unreadable = ' '.join(place for places in facts['annotations']['unreadable'].values() for place in places)
    for place in ('00.png', '06.png: L', '07.png', "'10.png', '09.png'", 'annotations[11]', 'annotations[12]'):
        assert place in unreadable
    snapshot(
        'scan_faults',
        'panoptic PNGs',
        '\n'.join(sorted([*facts['annotations']['mask_examples'], *facts['annotations']['unreadable']])),
    )
    assert facts['annotations']['unnamed'] == {'77': 1}
    assert {'MG132', 'MG176', 'MG395'} <= set(found)


@pytest.mark.parametrize('more', [{}, dict(first=1), dict(things=0), dict(void=7), dict(crowd=3)])
def test_clean_sets(more: Dict[str, int], tmp_path: Path) -> None:
    path = make(tmp_path, **more)
    for options in ([], ['--masks']):
        assert scanned(path, tmp_path / 'scan.json', *options)[:2] == (0, {})


def test_some_are_read_and_all_with_masks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr('mmguard.formats.coco.panoptic.LOOKED_AT', 5)
    path = make(tmp_path)
    save(tmp_path / 'panoptic_train' / '01.png', np.full((HEIGHT, WIDTH), 5))
    assert scanned(path, tmp_path / 'scan.json')[:2] == (0, {})
    code, found, facts = scanned(path, tmp_path / 'scan.json', '--masks')
    assert (code, set(found)) == (1, {'MG395'})
    assert facts['annotations']['mask_faults'] == {panoptic.EMPTY_SEGMENT_FAULT: 3, panoptic.NO_ENTRY_FAULT: 1}


def test_areas_alone_are_a_warning(tmp_path: Path) -> None:
    path = make(tmp_path)
    path.write_text(path.read_text().replace('"area": 320', '"area": 250'))
    scanned(path, tmp_path / 'scan.json')
    (dataset,) = json.loads((tmp_path / 'scan.json').read_text())['datasets']
    assert [one['severity'] for one in dataset['findings'] if one['code'] == 'MG395'] == ['warning']


SOUND = b'\x89PNG\r\n\x1a\n'
DAMAGED: Dict[str, bytes] = {
    'empty': b'',
    'blanks': b'   ',
    'null bytes': bytes(500),
    'binary': bytes(range(256)),
    'head alone': SOUND,
    'no header': SOUND + bytes(40),
    'text': b'no image',
    'json': b'{"a": 1}',
    'jpeg': b'\xff\xd8\xff\xe0' + bytes(20),
    'gif': b'GIF89a' + bytes(20),
    'zip': b'PK\x03\x04' + bytes(30),
}
#: What stands in the place of an annotation.
RECORDS: Dict[str, Any] = {
    'null': None,
    'a number': 7,
    'a list': [],
    'nothing': {},
    'no segments': dict(image_id=1, file_name='01.png'),
    'segments of anything': dict(image_id=1, file_name='01.png', segments_info=[None, 1, 'a', [], {}]),
    'segments are a text': dict(image_id=1, file_name='01.png', segments_info='abc'),
    'segments are a number': dict(image_id=1, file_name='01.png', segments_info=5),
    'a name with null': dict(image_id=1, file_name='a\0b.png', segments_info=[]),
    'a name of anything': dict(image_id=1, file_name=[1], segments_info=[]),
    'an image of anything': dict(image_id={}, file_name='01.png', segments_info=[]),
    'ids of anything': dict(
        image_id=1,
        file_name='01.png',
        segments_info=[
            dict(id=n, category_id=1, bbox=[0, 0, 2, 2], area='x', iscrowd=0) for n in (-1, 1 << 70, 1.5, None)
        ],
    ),
}


def test_damaged_files_do_not_end_the_scan(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    path = make(tmp_path, images=30)
    for number, content in enumerate(DAMAGED.values()):
        (tmp_path / 'panoptic_train' / f'{number:02d}.png').write_bytes(content)
    (tmp_path / 'panoptic_train' / '28.png').unlink()
    (tmp_path / 'panoptic_train' / '28.png').mkdir()
    code, _, facts = scanned(path, tmp_path / 'scan.json')
    assert code == 1
    said = json.dumps(facts['annotations']['unreadable'])
    assert [number for number in range(len(DAMAGED)) if f'{number:02d}.png' not in said] == []
    sound = json.loads(path.read_text())
    for name, record in RECORDS.items():
        path.write_text(json.dumps({**sound, 'annotations': [*sound['annotations'][:20], record]}))
        assert main(['scan', str(path)]) == 1, name
    path.write_text(path.read_text()[:3000])
    assert main(['scan', str(path)]) == 1
    assert REPORT_ADVICE not in ''.join(capsys.readouterr())
