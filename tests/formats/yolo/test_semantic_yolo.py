"""A data.yaml with ``masks_dir``: label maps, with the classes and the mapping that ultralytics trains."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, List

import numpy as np
import pytest
import yaml
from label_files import write

import mmguard
from mmguard.cli import main
from mmguard.errors import CannotRun

pytest.importorskip('PIL.Image')

NAMES = {0: 'road', 1: 'car', 2: 'tree'}


def make_set(root: Path, **more: Any) -> Path:
    """Two splits of two images, with the values 7, 8, 9 and 0 in their label maps, and 77 once in train."""
    for split in ('train', 'val'):
        for number in range(2):
            label = np.repeat(np.array([7, 8, 9, 0], np.uint8), 64).reshape(16, 16)
            if split == 'train' and number:
                label[0, :3] = 77
            write(root / 'masks' / split / f'{number}.png', label)
            write(root / 'images' / split / f'{number}.jpg', np.zeros((16, 16, 3), np.uint8))
    said = dict(train='images/train', val='images/val', masks_dir='masks', names=NAMES)
    said['label_mapping'] = {-1: 'ignore_label', 0: 'ignore_label', 7: 0, 8: 1, 9: 2}
    said.update(more)
    (root / 'data.yaml').write_text(yaml.safe_dump({key: value for key, value in said.items() if value is not None}))
    return root / 'data.yaml'


def facts_of(found: Any) -> List[Dict[str, Any]]:
    return [one['facts'] for one in found.record['datasets']]


@pytest.mark.parametrize('as_folder', [False, True], ids=['file', 'folder'])
def test_label_maps_are_counted_as_they_are_trained(as_folder: bool, tmp_path: Path) -> None:
    file = make_set(tmp_path)
    found = mmguard.scan(tmp_path if as_folder else file, processes=1)
    assert found.failed == ()
    assert [one['name'] for one in found.record['datasets']] == ['train', 'val']
    train, val = facts_of(found)
    assert train['histogram'] == {'0': 125, '1': 128, '2': 128, '77': 3, '255': 128}
    assert (train['values'], val.get('values', {})) == ({'77': 3}, {})
    assert train['class_names'] == list(NAMES.values())
    assert len(found.class_weight()) == len(NAMES)


def test_without_a_mapping_values_are_classes(tmp_path: Path) -> None:
    found = mmguard.scan(make_set(tmp_path, label_mapping=None), processes=1)
    assert facts_of(found)[1]['values'] == {'7': 128, '8': 128, '9': 128}
    assert mmguard.scan(tmp_path / 'data.yaml', processes=1, num_classes=10).record['datasets'][1]['clean']


def test_one_class_has_a_background(tmp_path: Path) -> None:
    mapping = {0: 0, 7: 1, 8: 1, 9: 1, 77: 1}
    found = mmguard.scan(make_set(tmp_path, names={0: 'road'}, label_mapping=mapping), processes=1)
    assert [one.get('values', {}) for one in facts_of(found)] == [{}, {}]


def test_images_without_a_label_map_are_named(tmp_path: Path) -> None:
    file = make_set(tmp_path)
    (tmp_path / 'masks' / 'val' / '1.png').unlink()
    assert facts_of(mmguard.scan(file, processes=1))[1]['maps']['missing_labels']


@pytest.mark.parametrize(
    ('more', 'part'), [(dict(masks_dir='gone'), 'gone'), (dict(label_mapping=[1, 2]), 'label_mapping')]
)
def test_what_cannot_be_read_is_named(more: Dict[str, Any], part: str, tmp_path: Path) -> None:
    file = make_set(tmp_path, **more)
    if 'masks_dir' in more:
        with pytest.raises(CannotRun, match=part):
            mmguard.scan(file, processes=1)
    else:
        assert part in mmguard.scan(file, processes=1).failed[0]


def test_fix_names_the_folder_to_correct(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    assert main(['fix', str(make_set(tmp_path)), '--out', str(tmp_path / 'out'), '--label-map', '77:255']) == 2
    assert 'masks' in capsys.readouterr().err
