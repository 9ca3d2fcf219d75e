"""Copies of label files, for the trial of edits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from mmguard.tools.fix.options import FixOptions
from mmguard.tools.scan.tried import NotTried, copies_of, copies_of_maps


def annotations(folder: Path, **more: Any) -> str:
    record = dict(
        images=[dict(id=1, file_name='1.jpg', width=10, height=10)],
        annotations=[dict(id=1, image_id=1, category_id=1, bbox=[1, 1, 5, 5], area=25)],
        categories=[dict(id=1, name='cat')],
    )
    path = folder / 'train.json'
    path.write_text(json.dumps({**record, **more}))
    return str(path)


def test_a_copy_is_read_in_place_of_its_file(tmp_path: Path) -> None:
    pytest.importorskip('msgspec')
    path = annotations(tmp_path)
    with copies_of([(path, (('renumber', 0),))]) as copies:
        assert json.loads(Path(copies[path]).read_text())['categories'] == [dict(id=0, name='cat')]


def test_what_has_no_copy_is_not_tried(tmp_path: Path) -> None:
    path = annotations(tmp_path, categories=5)
    with pytest.raises(NotTried), copies_of([(path, ())]):
        pass


def test_a_fault_of_the_writer_is_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def raise_it(*_: Any) -> None:
        raise KeyError('x')

    monkeypatch.setattr('mmguard.tools.fix.coco.with_changes', raise_it)
    with pytest.raises(KeyError), copies_of([(annotations(tmp_path), ())]):
        pass


def test_a_few_label_maps_are_tried_as_copies(tmp_path: Path) -> None:
    paths = [str(tmp_path / f'{name}.bmp') for name in ('labels', 'cut', 'colours')]
    Image.fromarray(np.array([[0, 255], [255, 0]], np.uint8)).save(paths[0])
    Path(paths[1]).write_bytes(Path(paths[0]).read_bytes()[:40])
    Image.fromarray(np.eye(3, dtype=np.uint8)[None]).save(paths[2])
    options = FixOptions(num_classes=2, label_map={255: 1})
    with copies_of_maps(paths[:2], options) as copies:  # that one is cut off is no fault of the edit
        assert list(copies) == [str(tmp_path / 'labels.png')]
        with Image.open(copies[str(tmp_path / 'labels.png')]) as image:
            assert np.asarray(image).tolist() == [[0, 1], [1, 0]]
    with pytest.raises(NotTried), copies_of_maps(paths, options):
        pass
