"""Polygons of Cityscapes: planted faults are named with their places, damaged files do not end the scan."""

from __future__ import annotations

import io
import json
import random
from functools import lru_cache
from pathlib import Path
from typing import Any, Dict, List, Tuple

import pytest
from PIL import Image
from scans import check_damaged, followed, scanned

from mmguard.cli import main

NAMES = ('road', 'car', 'sky', 'person', 'building')
SQUARE = [[5, 5], [15, 5], [15, 15], [5, 15]]
OTHERS = (
    'unlabeled', 'ego vehicle', 'rectification border', 'out of roi', 'static', 'dynamic', 'ground', 'parking',
    'rail track', 'guard rail', 'bridge', 'tunnel', 'polegroup', 'caravan', 'trailer', 'license plate', 'cargroup',
    'persongroup', 'trailergroup',
)  # fmt: skip


@lru_cache(maxsize=None)
def picture(width: int = 64, height: int = 48, mode: str = 'RGB') -> bytes:
    out = io.BytesIO()
    Image.new(mode, (width, height), 0).save(out, 'PNG')
    return out.getvalue()


def polygon(label: Any, points: Any = SQUARE, **more: Any) -> Dict[str, Any]:
    return dict(label=label, polygon=points, **more)


def record(objects: List[Any], **more: Any) -> Dict[str, Any]:
    return dict(imgHeight=48, imgWidth=64, objects=objects, **more)


def sound(number: int) -> List[Dict[str, Any]]:
    draw = random.Random(number)
    found = []
    for place in range(3):
        x, y, w, h = draw.randint(2, 30), draw.randint(2, 20), draw.randint(4, 20), draw.randint(4, 20)
        found.append(polygon(NAMES[(number + place) % 5], [[x, y], [x + w, y], [x + w, y + h]]))
    return found


def json_of(root: Path, number: int) -> Path:
    return root / f'gtFine/train/ulm/ulm_{number:06d}_000019_gtFine_polygons.json'


def image_of(root: Path, number: int) -> Path:
    return root / f'leftImg8bit/train/ulm/ulm_{number:06d}_000019_leftImg8bit.png'


def make(root: Path, files: int = 14) -> Path:
    for number in range(files):
        write(root, number, record(sound(number)))
        image_of(root, number).parent.mkdir(parents=True, exist_ok=True)
        image_of(root, number).write_bytes(picture())
    return root


def write(root: Path, number: int, content: Any) -> None:
    json_of(root, number).parent.mkdir(parents=True, exist_ok=True)
    json_of(root, number).write_text(json.dumps(content, indent=4))


def add(root: Path, number: int, *objects: Any, **more: Any) -> None:
    content = json.loads(json_of(root, number).read_text())
    content['objects'] += objects
    write(root, number, {**content, **more})


#: What is planted, each in a file of its own -> the code that names it, and what it says besides the file.
PLANTED: List[Tuple[Any, str, str]] = [
    (polygon('tram'), 'MG154', "1 annotation of 'tram'"),
    (polygon('zebra crossing'), 'MG154', "1 annotation of 'zebra crossing'"),
    (polygon('car', [[40, 5], [80, 5], [80, 30]]), 'MG152', '_gtFine_polygons.json: objects[3]: 40, 5, 80, 30'),
    (polygon('car', [[100, 5], [120, 5], [120, 30]]), 'MG109', '_gtFine_polygons.json: objects[3]: 100, 5, 120, 30'),
    (polygon('car', [[5, 5], [15, 15]]), 'MG179', "objects[3], 'car'"),
    (polygon('car', []), 'MG179', "objects[3], 'car'"),
    (polygon(''), 'MG176', 'a shape has no label'),
    (polygon(7), 'MG176', 'the label of a shape is no text'),
    (polygon('car', [[5, 5], ['x', 15], [3, 3]]), 'MG176', 'no pairs of finite numbers'),
    (polygon('car', [[5, 5, 1], [4, 15, 1], [3, 3, 1]]), 'MG176', 'no pairs of finite numbers'),
    (polygon('car', [[-20, 5], [15, 9], [20, 30]]), 'MG152', 'objects[3]: -20, 5, 20, 30'),
    ('car', 'MG176', 'a shape is no object'),
]  # fmt: skip


def test_planted_faults_are_named_with_file_and_object(tmp_path: Path) -> None:
    root = make(tmp_path / 'set', files=20)
    for number, (planted, _, _) in enumerate(PLANTED):
        add(root, number, planted)
    image_of(root, 12).unlink()
    add(root, 13, imgHeight='48')
    code, found, facts = scanned(root / 'gtFine', tmp_path / 'scan.json')
    assert code == 1
    for number, (_, expected, said) in enumerate(PLANTED):
        assert said in found[expected], said
        named = json.dumps([facts['annotations'][key] for key in ('unreadable', 'mask_examples', 'box_examples')])
        assert f'ulm_{number:06d}' in named or expected == 'MG154'
    assert 'ulm_000012' in found['MG150']
    assert 'imgHeight or imgWidth is no whole number above 0' in found['MG176']
    assert set(found) == {*(expected for _, expected, _ in PLANTED), 'MG150'}
    assert facts['annotations']['left_out_names'] == {'tram': 1, 'zebra crossing': 1}
    image_of(root, 14).write_bytes(picture(30, 20))
    found = scanned(root / 'gtFine', tmp_path / 'scan.json')[1]
    assert 'ulm_000014_000019_leftImg8bit.png: 30 x 20 on disk' in found['MG175']


#: Objects behind those of the first files, and the code of the finding that goes.
EDITS: Dict[str, Tuple[List[Any], str]] = {
    'case': ([polygon('Car'), polygon('ROAD')], 'MG177'),
    'a slip': ([polygon('bilding'), polygon('buildingg')], 'MG154'),
    'over the edge': ([polygon('car', [[40, 5], [80, 5], [80, 30]])], 'MG152'),
    'below 0': ([polygon('car', [[-9, 5], [20, 30], [3, 40]])], 'MG152'),
    'outside': ([polygon('car', [[100, 5], [120, 5], [120, 30]])], 'MG109'),
    'two points': ([polygon('car', [[5, 5], [15, 15]])], 'MG179'),
    'no label': ([polygon(''), polygon('car', 7)], 'MG176'),
}


@pytest.mark.parametrize('beside', [False, True])
@pytest.mark.parametrize('name', sorted(EDITS))
def test_every_edit_followed_leaves_a_clean_set(name: str, beside: bool, tmp_path: Path) -> None:
    objects, code = EDITS[name]
    root = make(tmp_path / 'set')
    suffix = ['--suffix', '_polygons.json'] if beside else []
    if beside:
        (root / 'gtFine/train/ulm/ulm_000000_000019_gtFine_labelIds.png').write_bytes(picture(mode='L'))
    for number, one in enumerate(objects):
        add(root, number, one)
    same = json_of(root, 5)
    for out in followed(root / 'gtFine', code, tmp_path, *suffix):
        assert (out / same.relative_to(root / 'gtFine')).read_bytes() == same.read_bytes()


# ---- nothing wrong


@pytest.mark.parametrize('target', ['', 'gtFine', 'gtFine/train', 'gtFine/train/ulm'])
def test_clean_sets(target: str, tmp_path: Path) -> None:
    root = make(tmp_path / 'set')
    write(root, 0, record([]))  # nothing is in this image
    add(root, 1, *[polygon(name) for name in OTHERS], polygon('no such', deleted=1), polygon('', deleted=True))
    add(root, 2, polygon('car', [[0, 0], [64, 0], [64, 48]], id=7, user='x', date='2015', verified=0, draw=True))
    code, found, facts = scanned(root / target, tmp_path / 'scan.json')
    assert (code, found, facts['num_classes']) == (0, {}, 19)
    assert facts['total'] == 39 + len(OTHERS) + 1


def test_a_set_of_ones_own(tmp_path: Path) -> None:
    root = make(tmp_path / 'set')
    for number in range(14):
        add(root, number, polygon('rail'), polygon('switch'), imgWidth=64)
    (tmp_path / 'names.txt').write_text('\n'.join([*NAMES, 'rail', 'switch']))
    classes = ['--classes', str(tmp_path / 'names.txt')]
    assert scanned(root / 'gtFine', tmp_path / 'scan.json', *classes)[:2] == (0, {})
    assert scanned(json_of(root, 3), tmp_path / 'scan.json', *classes)[:2] == (0, {})


def test_where_label_maps_are_they_are_read(tmp_path: Path) -> None:
    root = make(tmp_path / 'set')
    for number in range(14):
        for ending in ('labelTrainIds', 'color') if number != 9 else ('color',):
            path = str(json_of(root, number)).replace('polygons.json', f'{ending}.png')
            Path(path).write_bytes(picture(mode='L' if ending == 'labelTrainIds' else 'RGB'))
    code, found, facts = scanned(root / 'gtFine', tmp_path / 'scan.json', '--num-classes', '19')
    assert (code, facts['kind'], facts['files']) == (1, 'pixels', 13)
    assert 'ulm_000009_000019_gtFine_polygons.json' in found['MG129']
    code, found, facts = scanned(root / 'gtFine', tmp_path / 'scan.json', '--suffix', '_polygons.json')
    assert (code, found, facts['kind'], facts['files']) == (0, {}, 'instances', 14)


def test_images_elsewhere(tmp_path: Path) -> None:
    root = make(tmp_path / 'set')
    moved = (root / 'leftImg8bit').rename(tmp_path / 'elsewhere')
    assert scanned(root / 'gtFine', tmp_path / 'scan.json')[:2] == (0, {})
    assert scanned(root / 'gtFine', tmp_path / 'scan.json', '--images', str(moved))[:2] == (0, {})
    assert 'MG150' in scanned(root / 'gtFine', tmp_path / 'scan.json', '--images', str(tmp_path))[1]


# ---- damaged

_LIST = json.dumps(record([])).replace('"objects": []', '"objects": %s')
DAMAGED: Dict[str, bytes] = {
    'empty': b'',
    'blanks': b' \n\t ',
    'null bytes': bytes(100),
    'binary': bytes(range(256)) * 9,
    'a picture': b'\x89PNG\r\n\x1a\n',
    'cut off': json.dumps(record(sound(1))).encode()[:150],
    'latin-1': json.dumps(record([polygon('caf\xe9')]), ensure_ascii=False).encode('latin-1'),
    'a list': b'[1, 2]',
    'a number': b'7',
    'no objects': b'{"imgHeight": 48, "imgWidth": 64}',
    'objects are a table': (_LIST % '{"a": 1}').encode(),
    'nested': b'[' * 100_000,
    'nested in points': (_LIST % ('[{"label": "car", "polygon": ' + '[' * 100_000)).encode(),
    'objects of anything': (_LIST % '[1, null, "a", [], {}]').encode(),
    'points of anything': json.dumps(
        record([polygon('car', one) for one in (None, 1, 'ab', {}, [1, 2], [[1]], [[None, 1]])])
    ).encode(),
    'nan': (_LIST % '[{"label": "car", "polygon": [[NaN, 1], [2, Infinity], [3, 3]]}]').encode(),
    'huge numbers': (_LIST % ('[{"label": "car", "polygon": [[1' + '0' * 4000 + ', 1], [2, 2], [3, 3]]}]')).encode(),
    'half a character': (_LIST % '[{"label": "\\ud800", "polygon": [[1, 1], [2, 2], [3, 3]]}]').encode(),
    'labels of anything': json.dumps(record([polygon(one) for one in (None, 7, [], {}, True)])).encode(),
    'sizes': json.dumps(dict(record(sound(1)), imgHeight=-3, imgWidth=[1])).encode(),
    'no size': json.dumps(dict(objects=sound(1))).encode(),
    'deleted of anything': json.dumps(record([polygon('car', [[1, 1]], deleted=0)])).encode(),
}  # fmt: skip


def test_damaged_files_do_not_end_the_scan(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    pytest.importorskip('msgspec')
    root = make(tmp_path / 'set', files=30)
    folder = root / 'gtFine/train/ulm'
    assert check_damaged(root / 'gtFine', folder, DAMAGED, tmp_path, capsys, '_polygons.json')[0] == []
    assert len(list((tmp_path / 'fixed').rglob('ulm_*.json'))) == 30


@pytest.mark.parametrize('name', sorted(DAMAGED))
def test_a_damaged_file_alone_is_not_clean(name: str, tmp_path: Path) -> None:
    root = make(tmp_path / 'set', files=1)
    json_of(root, 0).write_bytes(DAMAGED[name])
    assert main(['scan', str(root / 'gtFine')]) in (1, 2)
    assert main(['scan', str(json_of(root, 0))]) in (1, 2)


def test_a_set_without_a_polygon_is_not_clean(tmp_path: Path) -> None:
    root = make(tmp_path / 'set', files=3)
    for number in range(3):
        write(root, number, record([]))
    assert main(['scan', str(root / 'gtFine')]) == 2
