"""An index out of range decides what a COCO JSON alone leaves open: whether category ids are labels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Dict

import pytest

from mmguard.cli import main

pytest.importorskip('msgspec')

OUT_OF_RANGE = 'IndexError: index {} is out of bounds for dimension 0 with size {}'


def coco(path: Path, *ids: int) -> str:
    boxes = [
        {'id': n + 1, 'image_id': n + 1, 'category_id': number, 'bbox': [4, 4, 20, 20], 'area': 400, 'iscrowd': 0}
        for n, number in enumerate(ids)
    ]
    images = [{'id': n + 1, 'file_name': f'{n}.jpg', 'width': 64, 'height': 64} for n in range(len(ids))]
    names = [{'id': number, 'name': f'thing {number}'} for number in ids]
    path.write_text(json.dumps({'images': images, 'annotations': boxes, 'categories': names}))
    return str(path)


def explained(folder: Path, frame: str, error: str, data: str, classes: int, capsys: pytest.CaptureFixture) -> Dict:
    log = folder / 'train.log'
    log.write_text(f'Traceback (most recent call last):\n  File "{frame}", line 20, in loss\n    y[labels]\n{error}\n')
    main(['explain', str(log), '--data', data, '--num-classes', str(classes), '--json', '-'])
    record: Dict = json.loads(capsys.readouterr().out)
    return record


def confirmed(record: Dict) -> list:
    return [code for cause in record['causes'] if cause['standing'] == 'confirmed' for code in cause['findings']]


@pytest.mark.parametrize(
    ('ids', 'classes', 'error'),
    [
        ((1, 2, 3), 3, OUT_OF_RANGE.format(3, 3)),
        ((2, 5, 9, 14), 4, OUT_OF_RANGE.format(14, 4)),
        ((10, 20), 2, 'RuntimeError: index 20 is out of range for dimension 0 (out of range at THTensorMath.c:277)'),
    ],
)
def test_an_index_out_of_range_confirms_that_ids_are_labels(
    ids: tuple, classes: int, error: str, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    data = coco(tmp_path / 'train.json', *ids)
    record = explained(tmp_path, '/home/me/utils.py', error, data, classes, capsys)
    assert confirmed(record)[0] == 'MG138'
    assert record['causes'][0]['standing'] == 'confirmed'
    causes = [cause['cause'] for cause in record['causes'] if cause['standing'] == 'confirmed']
    assert any(cause.startswith('Category ids are used as labels') for cause in causes)


@pytest.mark.parametrize('package', ['mmdet/models', 'detectron2/modeling', 'yolox/models'])
def test_who_renumbers_the_categories_has_another_fault(
    package: str, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    frame = f'/opt/lib/python3.8/site-packages/{package}/losses.py'
    data = coco(tmp_path / 'train.json', 1, 2, 3)
    record = explained(tmp_path, frame, OUT_OF_RANGE.format(3, 3), data, 3, capsys)
    assert confirmed(record) == []
    assert record['more'] == []


def test_ids_in_range_confirm_nothing(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    data = coco(tmp_path / 'train.json', 0, 1, 2)
    record = explained(tmp_path, '/home/me/utils.py', OUT_OF_RANGE.format(3, 3), data, 3, capsys)
    assert confirmed(record) == []


def test_an_error_that_no_label_causes_decides_nothing(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    error = 'torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB'
    data = coco(tmp_path / 'train.json', 1, 2, 3)
    record = explained(tmp_path, '/home/me/train.py', error, data, 3, capsys)
    assert 'MG138' not in [*confirmed(record), *record['more']]
