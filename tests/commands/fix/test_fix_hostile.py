"""`mmguard fix` on odd and hostile files: what it makes of their records, and what it names as left out."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Dict, List

import label_files
import numpy as np
import pytest
from put_file import put
from voc_cases import SIZE, obj, xml

from mmguard.cli import main
from mmguard.formats.maps.forms import correct_map

HUGE = int('9' * 400)


def run(*arguments: Any) -> int:
    return main(['fix', *map(str, arguments)])


def coco(images: List[Any], annotations: List[Any]) -> Dict[str, Any]:
    """A COCO file of one category, whose first image and annotation are right."""
    image = dict(id=1, file_name='1.jpg', width=640, height=480)
    annotation = dict(image_id=1, category_id=1, bbox=[1, 2, 30, 40], area=1200, iscrowd=0)
    return dict(
        images=[image, *(dict(image, **{'id': n, 'file_name': f'{n}.jpg', **new}) for n, new in enumerate(images, 2))],
        categories=[dict(id=1, name='cat')],
        annotations=[dict(annotation, **{'id': n, **new}) for n, new in enumerate([{}, *annotations])],
    )


def fixed(record: Dict[str, Any], folder: Path, *options: Any) -> Any:
    """What becomes of a COCO file; ``None`` where it is left out."""
    source = put(folder / 'in' / 'train.json', json.dumps(record))
    code = run(source, '--out', folder / 'out', *options)
    written = folder / 'out' / 'train.json'
    assert code == (0 if written.exists() else 1)
    return json.loads(written.read_text()) if written.exists() else None


@pytest.mark.parametrize(
    'area', [{}, {'area': '9'}, {'area': float('nan')}, {'area': -1}, {'area': [9]}, {'area': True}]
)
@pytest.mark.parametrize('box', [['1', '2', '3', '4'], [1, 2, '3', 4.0], [1, 2, 3, 4]])
def test_a_box_written_as_text_becomes_numbers_and_has_an_area(box: Any, area: Any, tmp_path: Path) -> None:
    record = coco([], [dict(bbox=box)])
    del record['annotations'][1]['area']
    record['annotations'][1].update(area)
    found = fixed(record, tmp_path)['annotations'][1]
    assert (found['bbox'], found['area']) == ([1, 2, 3, 4], 12)


@pytest.mark.parametrize(
    'box', [[1, 2, 3, HUGE], [HUGE, 2, 3, 4], [-HUGE, 0, HUGE, 9], [True, 1, 2, 3], '1234', {'0': 1}, [[1], 2, 3, 4]]
)
def test_an_annotation_without_a_box_of_numbers_is_dropped(box: Any, tmp_path: Path) -> None:
    assert [one['id'] for one in fixed(coco([], [dict(bbox=box)]), tmp_path)['annotations']] == [0]


@pytest.mark.parametrize(
    'wrong',
    [dict(width=float('nan')), dict(height=HUGE), dict(width=0), dict(width=None), dict(height=[9]), dict(file_name=7)],
)
def test_an_image_that_no_loader_can_use_is_left_out_with_its_annotations(wrong: Any, tmp_path: Path) -> None:
    record = coco([wrong], [dict(image_id=2)])
    found = fixed(record, tmp_path)
    assert [image['id'] for image in found['images']] == [1]
    assert [one['image_id'] for one in found['annotations']] == [1]


def test_sizes_that_are_written_as_text_become_numbers(tmp_path: Path) -> None:
    found = fixed(coco([dict(width='640', height='480.0')], []), tmp_path)['images'][1]
    assert (found['width'], found['height']) == (640, 480)


@pytest.mark.parametrize('found', ['size', 'annotation', 'crowd'])
def test_a_file_of_which_nothing_would_be_left_is_left_out(found: str, tmp_path: Path) -> None:
    record = coco([], [dict(iscrowd=1)])
    if found == 'size':
        del record['images'][0]['width']
    elif found == 'crowd':
        record['annotations'][0]['bbox'] = [1, 2, 0, 0]
    else:
        record['annotations'] = [{**record['annotations'][0], 'category_id': 9}]
    assert fixed(record, tmp_path) is None


# ---- names, and manifests


@pytest.fixture
def maps(tmp_path: Path) -> Path:
    return Path(label_files.write(tmp_path / 'labels' / 'a.png', np.array([[0, 7], [1, 255]], np.uint8))).parent


def test_names_that_are_no_utf_8_are_kept_and_shown_as_escapes(maps: Path, tmp_path: Path, capsys: Any) -> None:
    names = [b'caf\xe9.png', b'\x1b[31mred\n.png']
    for name in names:
        os.link(maps / 'a.png', os.path.join(os.fsencode(maps), name))
    (maps / 'broken\x1b[2J.png').write_bytes(b'')
    assert run(maps, '--out', tmp_path / 'out\x1b[1m', '--num-classes', 2) == 1
    said = capsys.readouterr().out
    assert '\x1b' not in said
    assert r'caf\xe9.png' in said
    assert r'\x1b[31mred\n.png' in said
    assert r'broken\x1b[2J.png' in said
    out = os.fsencode(tmp_path / 'out\x1b[1m')
    # A name with a control character is left out.
    assert sorted(os.listdir(out)) == [b'a.png', names[0], b'mmguard.manifest']
    manifest = json.loads(Path(os.fsdecode(out), 'mmguard.manifest').read_text(encoding='utf-8'))
    assert sorted(os.fsencode(entry['file']) for entry in manifest['files']) == [b'a.png', names[0]]


def test_xml_that_is_nested_a_thousand_deep_is_left_out(tmp_path: Path) -> None:
    put(tmp_path / 'in' / 'a.xml', xml(obj(box=(1, 1, 0, 9)), '<a>' * 5000 + '</a>' * 5000))
    assert run(tmp_path / 'in', '--out', tmp_path / 'out') == 1
    (left_out,) = json.loads((tmp_path / 'out' / 'mmguard.manifest').read_text())['left_out']
    assert left_out['file'] == 'a.xml'


@pytest.mark.parametrize(('left', 'top', 'right'), [('1.2', '1', '1.9'), ('1', '5', '12345678')])
def test_boxes_of_voc_are_what_mmdet_reads(left: str, top: str, right: str, tmp_path: Path, capsys: Any) -> None:
    put(tmp_path / 'in' / 'a.xml', xml(obj(box=(left, top, right, 200)), size=SIZE.format(16_000_000, 100)))
    assert run(tmp_path / 'in', '--out', tmp_path / 'out') == 0
    written = (tmp_path / 'out' / 'a.xml').read_text()
    assert ('<object>' not in written) if right == '1.9' else '<xmax>12345678</xmax><ymax>101</ymax>' in written


def test_what_is_left_out_now_is_not_there_from_an_earlier_run(maps: Path, tmp_path: Path) -> None:
    (maps / 'b.tif').write_bytes((maps / 'a.png').read_bytes())
    assert run(maps, '--out', tmp_path / 'out', '--num-classes', 2) == 0
    for path in maps.iterdir():
        path.write_bytes(b'')
    assert run(maps, '--out', tmp_path / 'out', '--num-classes', 2) == 1
    assert os.listdir(tmp_path / 'out') == ['mmguard.manifest']


def test_a_fault_of_our_own_leaves_a_file_out_and_is_no_finding(
    maps: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """One file never ends the run; but a NameError is not a damaged file."""
    (maps / 'b.png').write_bytes((maps / 'a.png').read_bytes() + b'\0')

    def faulty(data: bytes, *more: Any) -> Any:
        if data.endswith(b'\0'):
            raise NameError('name "labels" is not defined')
        return correct_map(data, *more)

    monkeypatch.setattr('mmguard.formats.maps.forms.correct_map', faulty)
    assert main(['--debug', 'fix', str(maps), '--out', str(tmp_path / 'out'), '--num-classes', '2']) == 2
    said = capsys.readouterr()
    assert 'b.png: NameError: name "labels" is not defined' in said.out
    assert 'in faulty' in said.err
    assert sorted(os.listdir(tmp_path / 'out')) == ['a.png', 'mmguard.manifest']
