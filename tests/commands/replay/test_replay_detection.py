"""``mmguard replay`` of a detection training that really died."""

from __future__ import annotations

import os.path as osp
from pathlib import Path
from typing import Any

import pytest
from crashes import crash, replayed
from small_det_data import make_openimages
from small_det_runs import LAYOUTS, small_config

pytestmark = pytest.mark.slow


def test_stock_retinanet_with_labels_above_its_classes(tmp_path: Path, capsys: Any) -> None:
    layout = LAYOUTS['retinanet']
    root = make_openimages(str(tmp_path / 'data'), faults=('labels',))
    config = small_config('retinanet', root, str(tmp_path / 'work'), stock=True)
    config_file, record = crash(config, str(tmp_path / 'work'))
    code, report, shown = replayed(capsys, config_file, record, '--last', '9')
    assert code == 1
    # Image 1 has the label that stock mmdet quietly trains as background, image 3 one that it dies of.
    assert {osp.basename(sample['path']): sample['status'] for sample in report['samples']} == {
        'train000.jpg': 'passes', 'train001.jpg': 'passes', 'train002.jpg': 'passes', 'train003.jpg': 'raises',
    }  # fmt: skip
    (dying,) = [sample for sample in report['samples'] if sample['status'] == 'raises']
    assert 'mmdet/models/losses/focal_loss.py:' in dying['place']
    assert report['causes'][0]['code'] in shown
    assert str(layout.data_classes - 1) in report['causes'][0]['evidence']
    # Alone, it is found without looking at older batches.
    code, report, _ = replayed(capsys, config_file, record)
    assert [osp.basename(path) for path in report['failing']] == ['train003.jpg']
    assert report['older_batches'] == 1
