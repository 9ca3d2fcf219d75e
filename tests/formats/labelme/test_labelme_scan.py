"""Labelme: planted faults are named with their files, clean sets are clean, damaged files do not end the scan."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, List, Tuple

import pytest
from scans import check_damaged, edits, followed, scanned
from shapes import KINDS, add, embedded, make, picture, record, shape, sound, write

from mmguard.cli import main
from mmguard.formats.labelme import records as labelme_json

SQUARE = [[5, 5], [15, 5], [15, 15], [5, 15]]
#: What is planted, each in a file of its own -> the code that names it, and what it says besides the file.
PLANTED: List[Tuple[Any, str, str]] = [
    (shape('cat', [[40, 5], [80, 5], [80, 30]]), 'MG152', '02.json: 40, 5, 80, 30'),
    (shape('cat', [[100, 5], [120, 5], [120, 30]]), 'MG109', '03.json: 100, 5, 120, 30'),
    (shape('cat', [[5, 5], [15, 15]]), 'MG179', "04.json: shapes[3], 'cat'"),
    (shape('', SQUARE), 'MG176', '05.json: shapes[3]'),
    (shape('cat', [[5, 5]], 'point'), 'MG179', "06.json: shapes[3], 'cat'"),
    (shape('cat', [[5, 5], [15, 9], [20, 30]], 'linestrip'), 'MG179', "07.json: shapes[3], 'cat'"),
    (shape('cat', SQUARE, 'cuboid'), 'MG176', '08.json: shapes[3]'),
    (shape('cat', [[5, 5], [15, 15]], 'mask', mask=embedded(4, 4)), 'MG179', "09.json: shapes[3], 'cat'"),
    (shape('cat', [[5, 5], ['x', 15]]), 'MG176', '10.json: shapes[3]'),
    (shape('cat', [[5, 5], [5, 5]], 'rectangle'), 'MG109', '11.json: 5, 5, 5, 5'),
    (shape('cat', SQUARE, group=[1]), 'MG176', '12.json: shapes[3]'),
]  # fmt: skip


def findings(folder: Path) -> List[Any]:
    """The files that the findings name."""
    (dataset,) = json.loads((folder / 'scan.json').read_text())['datasets']
    return [finding['files'] for finding in dataset['findings']]


def test_planted_faults_are_named_with_file_and_shape(tmp_path: Path, snapshot: Any) -> None:
    root = make(tmp_path / 'set', files=18)
    for number, (planted, _, _) in enumerate(PLANTED, 2):
        add(root, number, planted)
    (root / '13.jpg').unlink()
    add(root, 15, imagePath='16.jpg')
    add(root, 17, imageHeight='48')
    code, found, facts = scanned(root, tmp_path / 'scan.json')
    assert code == 1
    named = json.dumps([findings(tmp_path), facts['annotations']], ensure_ascii=False)
    for place in (*(place for _, _, place in PLANTED), '13.jpg', '16.jpg', '17.json'):
        assert place in named, place
    assert set(found) == {*(expected for _, expected, _ in PLANTED), 'MG150', 'MG147'}
    faults = {labelme_json.FEW_POINTS_FAULT: 1, labelme_json.NO_AREA_FAULT: 2, labelme_json.NO_MASK_FAULT: 1}
    assert facts['annotations']['mask_faults'] == faults
    snapshot('scan_faults', 'shapes of Labelme', '\n'.join(sorted([*faults, *facts['annotations']['unreadable']])))
    assert facts['files'] == 18
    (root / '14.jpg').write_bytes(picture(30, 20))
    _, found, facts = scanned(root, tmp_path / 'scan.json')
    assert 'MG130' in found
    assert [one[0] for one in facts['annotations']['size_mismatches']] == ['14.jpg']


def test_names_that_a_list_does_not_have(tmp_path: Path) -> None:
    root = make(tmp_path / 'set')
    (root / 'labels.txt').write_text('__ignore__\n_background_\ncat\ncow\ndog\n')
    add(root, 0, shape('__ignore__', SQUARE), shape('_background_', SQUARE))
    code, found, facts = scanned(root, tmp_path / 'scan.json')
    assert (code, found, facts['class_names'], facts['total']) == (0, {}, ['cat', 'cow', 'dog'], 44)
    assert facts['annotations']['crowds'] == 2
    add(root, 1, shape('horse', SQUARE))
    add(root, 2, shape('DOG', SQUARE))
    _, found, facts = scanned(root, tmp_path / 'scan.json')
    assert 'MG154' in found
    assert facts['annotations']['left_out_names'] == {'DOG': 1, 'horse': 1}
    assert len(facts['annotations']['left_out_files']) == 2
    (root / 'labels.txt').rename(tmp_path / 'names.txt')
    for classes in ('cat,cow', str(tmp_path / 'names.txt')):
        _, found, facts = scanned(root, tmp_path / 'scan.json', '--classes', classes)
        assert facts['annotations']['left_out_names'].get('horse') == 1
    (tmp_path / 'names.txt').rename(tmp_path / 'labels.txt')  # above the folder
    assert scanned(root, tmp_path / 'scan.json')[2]['class_names'] == ['cat', 'cow', 'dog']
    (root / '02.json').unlink()
    assert 'MG108' in scanned(root, tmp_path / 'scan.json', '--num-classes', '2')[1]


#: Shapes behind those of the first files, other keys of the first, and the code of the finding that goes.
EDITS: Dict[str, Tuple[List[Any], Dict[str, Any], str]] = {
    'over the edge': ([shape('cat', [[40, 5], [80, 5], [80, 30]])], {}, 'MG152'),
    'below 0': ([shape('cat', [[-9, 5], [20, 30]], 'rectangle')], {}, 'MG152'),
    'outside': ([shape('cat', [[100, 5], [120, 5], [120, 30]])], {}, 'MG109'),
    'two points': ([shape('cat', [[5, 5], [15, 15]])], {}, 'MG179'),
    'a slip': ([shape('cowx', SQUARE), shape('doog', SQUARE)], {}, 'MG154'),
    'no label': ([shape('', SQUARE), shape('cat', 7)], {}, 'MG176'),
}


@pytest.mark.parametrize('name', sorted(EDITS))
def test_every_edit_followed_leaves_a_clean_set(name: str, tmp_path: Path) -> None:
    shapes, more, code = EDITS[name]
    root = make(tmp_path / 'set')
    for number, one in enumerate(shapes):
        add(root, number, one, **more)
    if name == 'a slip':
        (root / 'labels.txt').write_text('cat\ncow\ndog\n')
    for out in followed(root, code, tmp_path):
        assert (out / '05.json').read_bytes() == (root / '05.json').read_bytes()
        assert (out / '05.jpg').read_bytes() == picture()


# ---- nothing wrong


@pytest.mark.parametrize('kind', KINDS)
def test_clean_sets(kind: str, tmp_path: Path) -> None:
    root = make(tmp_path / 'set', kind)
    write(root, 0, record('00.jpg', []))  # nothing is in this image
    code, found, facts = scanned(root, tmp_path / 'scan.json')
    assert (code, found, facts['total'], facts['num_classes']) == (0, {}, 39, 3)


def test_what_labelme_allows_is_no_fault(tmp_path: Path) -> None:
    root = make(tmp_path / 'set' / 'json')
    (tmp_path / 'set' / 'images').mkdir()
    for number in range(14):
        (root / f'{number:02d}.jpg').rename(tmp_path / f'set/images/{number:02d}.jpg')
        add(root, number, imagePath=f'../images/{number:02d}.jpg')
    # Two parts of one object, and its keypoint; a circle over the edge; what old versions leave out; sizes unsaid.
    add(root, 0, shape('cat', SQUARE, group=3), shape('cat', [[30, 30], [40, 30], [40, 40]], group=3))
    add(root, 1, shape('cat', SQUARE, group=0), shape('nose', [[7, 7]], 'point', 0))
    add(root, 2, shape('cat', [[3, 20], [3, 29]], 'circle'), shape('cat', [[5, 5], [2, 2]], 'rectangle'))
    add(root, 3, {'label': 'cat', 'points': SQUARE}, {'label': 'cow', 'points': SQUARE, 'shape_type': None})
    add(root, 4, imageHeight=None, imageWidth=None)
    add(root, 5, imagePath='gone.jpg', imageData=embedded(64, 48))
    (root / 'coco.json').write_text('{"images": [], "annotations": [], "categories": []}')
    code, found, facts = scanned(root, tmp_path / 'scan.json')
    assert (code, found) == (0, {})
    assert facts['total'] == 42 + 1 + 1 + 2 + 2
    assert scanned(root / '00.json', tmp_path / 'scan.json')[:2] == (0, {})
    moved = (tmp_path / 'set' / 'images').rename(tmp_path / 'elsewhere')
    assert 'MG150' in scanned(root, tmp_path / 'scan.json')[1]
    assert scanned(root, tmp_path / 'scan.json', '--images', str(moved))[:2] == (0, {})


def test_an_edit_where_the_images_lie_elsewhere(tmp_path: Path) -> None:
    root = make(tmp_path / 'json')
    (tmp_path / 'images').mkdir()
    (tmp_path / 'labels.txt').write_text('__ignore__\ncat\ncow\ndog\n')
    for number in range(14):
        (root / f'{number:02d}.jpg').rename(tmp_path / f'images/{number:02d}.jpg')
        add(root, number, imagePath=f'../images/{number:02d}.jpg')
    add(root, 0, shape('cowx', SQUARE))
    assert set(scanned(root, tmp_path / 'scan.json')[1]) == {'MG154'}
    assert edits(tmp_path / 'scan.json') == {1: 'MG154'}
    assert main(['fix', str(root), '--out', str(tmp_path / 'fixed'), '--edit', '1']) == 0
    assert scanned(tmp_path / 'fixed', tmp_path / 'again.json')[:2] == (0, {})


def test_label_maps_with_a_json_among_them_are_label_maps(tmp_path: Path) -> None:
    for number in range(12):
        (tmp_path / f'{number:02d}.png').write_bytes(picture(kind='PNG'))
    write(tmp_path, 3, record('03.png', sound('polygon', 3)))
    assert scanned(tmp_path, tmp_path / 'out.txt', '--num-classes', '91')[2]['kind'] == 'pixels'
    write(tmp_path, 4, record('04.png', sound('polygon', 4)))
    assert scanned(tmp_path, tmp_path / 'out.txt')[2]['kind'] == 'instances'
    suffix = ['--suffix', '.png', '--num-classes', '91']
    assert scanned(tmp_path, tmp_path / 'out.txt', *suffix)[2]['kind'] == 'pixels'


def test_a_list_may_name_more_than_there_is(tmp_path: Path) -> None:
    root = make(tmp_path / 'set')
    (tmp_path / 'labels.txt').write_text('__ignore__\n_background_\naeroplane\ncat\ncow\ndog\nhorse\n')
    code, found, facts = scanned(root, tmp_path / 'scan.json')
    assert (code, found, facts['num_classes']) == (0, {}, 5)


# ---- damaged

_LIST = json.dumps(record('x.jpg', [])).replace('"shapes": []', '"shapes": %s')
DAMAGED: Dict[str, bytes] = {
    'empty': b'',
    'blanks': b' \n\t ',
    'null bytes': bytes(100),
    'binary': bytes(range(256)) * 9,
    'a picture': picture(),
    'cut off': json.dumps(record('x.jpg', sound('polygon', 1))).encode()[:300],
    'latin-1': json.dumps(record('x.jpg', [shape('caf\xe9', SQUARE)]), ensure_ascii=False).encode('latin-1'),
    'a list': b'[1, 2]',
    'a number': b'7',
    'no shapes': b'{"imagePath": "a.jpg"}',
    'shapes are a table': (_LIST % '{"a": 1}').encode(),
    'nested': b'[' * 100_000,
    'nested in points': (_LIST % ('[{"label": "cat", "points": ' + '[' * 100_000)).encode(),
    'shapes of anything': (_LIST % '[1, null, "a", [], {}]').encode(),
    'points of anything': json.dumps(
        record('x.jpg', [shape('cat', one) for one in (None, 1, 'ab', {}, [1, 2], [[1]], [[1, 2, 3]], [[None, 1]])])
    ).encode(),
    'nan': (_LIST % '[{"label": "cat", "points": [[NaN, 1], [2, Infinity], [3, 3]]}]').encode(),
    'huge numbers': (_LIST % ('[{"label": "cat", "points": [[1' + '0' * 4000 + ', 1], [2, 2], [3, 3]]}]')).encode(),
    'half a character': (_LIST % '[{"label": "\\ud800", "points": [[1, 1], [2, 2], [3, 3]]}]').encode(),
    'labels of anything': json.dumps(record('x.jpg', [shape(one, SQUARE) for one in (None, 7, [], {}, True)])).encode(),
    'kinds of anything': json.dumps(record('x.jpg', [shape('cat', SQUARE, one) for one in (7, [], {}, '')])).encode(),
    'masks of anything': json.dumps(
        record('x.jpg', [shape('cat', [[1, 1], [2, 2]], 'mask', mask=one) for one in (None, 7, '=', 'iVB', '\xe9', {})])
    ).encode(),
    'paths': json.dumps(record('a\0b.jpg', [])).encode(),
    'a path of anything': json.dumps(record('x', [], imagePath=[7])).encode(),
    'half a path': json.dumps(record('\ud800.jpg', [])).encode(),
    'sizes': json.dumps(record('x.jpg', [], imageHeight=-3, imageWidth=[1])).encode(),
    'a damaged image': json.dumps(record('x.jpg', [], imageHeight=None, imageWidth=None, imageData='%%%')).encode(),
}  # fmt: skip


def test_damaged_files_do_not_end_the_scan(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    root = make(tmp_path / 'set', files=30)
    (root / 'x.jpg').write_bytes(b'no image')
    not_named, facts = check_damaged(root, root, DAMAGED, tmp_path, capsys, '.json')
    assert not_named == []
    assert facts['total'] == 90 + 6  # and the masks, none of which is one
    assert len(list((tmp_path / 'fixed').glob('[0-9]*.json'))) == 30


@pytest.mark.parametrize('name', sorted(DAMAGED))
def test_a_damaged_file_alone_is_not_clean(name: str, tmp_path: Path) -> None:
    root = make(tmp_path / 'set', files=1)
    (root / '00.json').write_bytes(DAMAGED[name])
    assert main(['scan', str(root)]) in (1, 2)
    assert main(['scan', str(root / '00.json')]) in (1, 2)


def test_a_set_without_a_shape_is_not_clean(tmp_path: Path) -> None:
    root = make(tmp_path / 'set', files=3)
    for number in range(3):
        write(root, number, record(f'{number:02d}.jpg', []))
    assert main(['scan', str(root)]) == 2
