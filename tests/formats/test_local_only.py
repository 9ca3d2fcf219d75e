"""Labels that are not on a disk are refused, wherever they are named; nothing is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, List

import pytest

from mmguard.cli import main
from mmguard.errors import CannotRun
from mmguard.formats.files import check_local, check_local_dataset

pytest.importorskip('rich')

SEGMENTATION = 'model = dict(type="EncoderDecoder", decode_head=dict(type="FCNHead", num_classes=6))'
DETECTION = 'model = dict(type="mmdet.RetinaNet", bbox_head=dict(type="RetinaHead", num_classes=3))'


@pytest.mark.parametrize(
    'words',
    [
        ['scan', 's3://bucket/labels', '--num-classes', '4'],
        ['scan', 'https://host/train.json?sig=a1b2'],
        ['scan', 'zip://labels::data.zip'],
        ['scan', 'maps', '--images', 'gs://bucket/images'],
        ['fix', 'az://container/voc', '--out', 'fixed'],
    ],
)
def test_targets(words: List[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path('maps').mkdir()
    assert main(words) == 2
    assert [path.name for path in tmp_path.iterdir()] == ['maps']


@pytest.mark.parametrize(
    ('model', 'dataset'),
    [
        (SEGMENTATION, dict(type='BaseSegDataset', data_root='s3://bucket/', data_prefix=dict(seg_map_path='ann'))),
        (SEGMENTATION, dict(type='BaseSegDataset', data_root='', data_prefix=dict(seg_map_path='http://host/ann'))),
        (
            SEGMENTATION,
            dict(
                type='BaseSegDataset',
                data_prefix=dict(seg_map_path='ann'),
                pipeline=[dict(type='LoadAnnotations', backend_args=dict(backend='petrel'))],
            ),
        ),
        (SEGMENTATION, dict(type='BaseSegDataset', data_root='data/', backend_args=dict(backend='http'))),
        (DETECTION, dict(type='CocoDataset', data_root='data/', ann_file='a.json', backend_args=dict(backend='lmdb'))),
        (DETECTION, dict(type='CocoDataset', ann_file='memory://box.json')),
        (DETECTION, dict(type='XMLDataset', data_root='https://host/voc', ann_file='ImageSets/Main/train.txt')),
    ],
)
def test_data_sets_of_a_config(model: str, dataset: Dict[str, Any], tmp_path: Path) -> None:
    pytest.importorskip('mmdet' if model == DETECTION else 'mmseg')
    (tmp_path / 'config.py').write_text(f'{model}\ntrain_dataloader = dict(dataset={dataset!r})\n')
    assert main(['scan', str(tmp_path / 'config.py')]) == 2
    with pytest.raises(CannotRun):
        check_local_dataset(dataset, dataset.get('pipeline', ()))


@pytest.mark.parametrize('backend', [None, {}, {'backend': 'local'}, {'backend': 'disk'}])
def test_a_disk_is_read(backend: Any) -> None:
    info = dict(dataset_name='x', homepage='https://host')
    check_local_dataset(dict(type='A', data_root='data/http://host', metainfo=info, backend_args=backend))
    check_local_dataset({}, [dict(type='LoadAnnotations', file_client_args=backend)])
    check_local(r'C:\labels')
