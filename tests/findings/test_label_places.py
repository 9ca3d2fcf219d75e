"""Label files that are not where a config names them: the right place is offered once files there were read."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, List

import numpy as np
import pytest
from drawn_scenes import scenes
from segmentation_configs import FIVE
from situation import save, save_photos, seg_data, seg_model, write_config
from targets import scan_sets, write_edited

from mmguard.findings import Finding
from mmguard.formats.maps import sources as source


def found_in(config: Path, *splits: str) -> List[Finding]:
    return [result.findings[0] for result in scan_sets(config, dict(splits=splits or ('train',)))]


def config_of(root: Path, *splits: str, **settings: Any) -> Path:
    parts = {f'{split}_dataloader': dict(dataset=seg_data(root, FIVE, split, **settings)) for split in splits}
    return write_config(root, default_scope='mmseg', model=seg_model(5), **parts)


@pytest.fixture
def masks(tmp_path: Path) -> Path:
    """NAME_mask.png of two splits; the config says NAME.png."""
    for split in ('train', 'val'):
        save(tmp_path / 'masks' / split, scenes(range(5), 12), '{}_mask')
        save_photos(tmp_path / 'images' / split, 12, '{}')
    return tmp_path


def test_one_edit_writes_the_suffix_of_all_splits(masks: Path) -> None:
    config = config_of(masks, 'train', 'val')
    first, second = found_in(config, 'train', 'val')
    assert (first.code, second.code) == ('MG129', 'MG129')
    (edit,) = first.edits
    assert edit.applicability == 'asks'
    assert edit.config == tuple(
        (f'{split}_dataloader.dataset.seg_map_suffix', '_mask.png') for split in ('train', 'val')
    )
    edited = write_edited(config, edit.config)
    assert [finding.code for finding in found_in(edited, 'train', 'val')] == ['MG100', 'MG100']


def test_a_suffix_that_one_image_lacks_is_not_offered(masks: Path) -> None:
    (masks / 'masks/train/7_mask.png').unlink()
    (finding,) = found_in(config_of(masks, 'train'))
    assert (finding.code, finding.edits) == ('MG129', ())


def test_files_that_hold_no_classes_are_not_offered(masks: Path) -> None:
    for path in sorted((masks / 'masks/train').glob('*_mask.png')):
        shutil.copy(path, path.with_name(path.name.replace('mask', 'depth')))
        save(path.parent, [np.arange(4800, dtype=np.uint8).reshape(60, 80)], path.stem.replace('mask', 'depth'))
    (finding,) = found_in(config_of(masks, 'train'))
    assert [edit.config[0][1] for edit in finding.edits] == ['_mask.png']


def test_few_of_the_other_files_are_read(masks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, 'OTHER_FILES', 5)
    read: List[int] = []

    def counted(items: Any, *args: Any) -> Any:
        listed = list(items)
        read.append(len(listed))
        return scan_maps(listed, *args)

    scan_maps = source.scan_maps
    monkeypatch.setattr(source, 'scan_maps', counted)
    (finding,) = found_in(config_of(masks, 'train'))
    assert finding.edits
    assert read[0] == 12
    assert set(read[1:]) == {5}
