"""`mmguard scan` of the data sets of mmdet3d: labels of points, objects in space, and what their files may hold."""

from __future__ import annotations

import os
import pickle
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Tuple

import numpy as np
import pytest
from mmdet3d.registry import DATASETS
from mmengine.config import Config
from mmengine.registry import init_default_scope
from small_scans import POINTS, SAMPLES, objects, points, read_infos, write, write_config, write_infos

from mmguard.cli import main
from mmguard.tools.scan.annotations.objects_3d import scan_objects
from mmguard.tools.scan.engine import scan_here
from mmguard.tools.scan.options import ScanOptions
from mmguard.tools.scan.run import run_plan
from mmguard.tools.scan.target import plan_of

Output = Any


def scanned(config: Config, folder: Path, capsys: Output, *options: str) -> Tuple[int, str]:
    """Exit code and what is shown."""
    file = folder / 'config.py'
    write_config(config, file)
    capsys.readouterr()
    code = main(['scan', str(file), '--processes', '1', *options])
    shown = capsys.readouterr()
    return code, ' '.join((shown.out + shown.err).split())


def histogram(config: Config, folder: Path) -> Dict[int, int]:
    file = folder / 'config.py'
    write_config(config, file)
    (result,) = run_plan(plan_of(str(file), ScanOptions()), scan_here)
    return result.facts.histogram


@pytest.mark.parametrize('kind', ['semantickitti', 's3dis', 'scannet', 'own'])
def test_clean_points_are_counted_as_the_data_set_loads_them(kind: str, tmp_path: Path, capsys: Output) -> None:
    config = points(kind, tmp_path / 'data')
    code, text = scanned(config, tmp_path, capsys)
    assert (code, 'Your labels are fine' in text) == (0, True), text
    init_default_scope('mmdet3d')
    dataset = DATASETS.build({**config.train_dataloader.dataset, 'scene_idxs': np.arange(SAMPLES)})
    loaded: Counter = Counter()
    for number in range(len(dataset)):
        mask = dataset[number]['data_samples'].gt_pts_seg.pts_semantic_mask
        loaded.update(mask.tolist())
    assert histogram(config, tmp_path) == dict(sorted(loaded.items()))


@pytest.mark.parametrize('kind', ['kitti', 'nuscenes'])
def test_clean_objects_are_counted_as_the_data_set_loads_them(kind: str, tmp_path: Path, capsys: Output) -> None:
    config = objects(kind, tmp_path / 'data')
    code, text = scanned(config, tmp_path, capsys)
    assert (code, 'Your labels are fine' in text) == (0, True), text
    init_default_scope('mmdet3d')
    dataset = DATASETS.build(config.train_dataloader.dataset)
    loaded: Counter = Counter()
    for number in range(len(dataset)):
        loaded.update(dataset.get_data_info(number)['ann_info']['gt_labels_3d'].tolist())
    loaded.pop(-1, None)
    assert histogram(config, tmp_path) == dict(sorted(loaded.items()))


def _label(root: Path, value: int) -> None:
    labels = np.fromfile(root / 'labels' / '1.bin', np.int64)
    labels[3] = value
    write(root / 'labels' / '1.bin', labels)


def _every(root: Path, value: int) -> None:
    for sample in range(SAMPLES):
        write(root / 'labels' / f'{sample}.bin', np.full(POINTS, value, np.int64))


def _without_path(root: Path) -> None:
    infos = read_infos(root)
    del infos['data_list'][1]['pts_semantic_mask_path']
    write_infos(root, infos['data_list'], infos['metainfo'])


#: What is planted into S3DIS -> the code and the words that name it.
POINT_FAULTS: Dict[str, Tuple[Callable[[Path], Any], str, str]] = {
    'beyond the table': (lambda root: _label(root, 300), 'MG107', 'Labels outside 0..12: 300. seen'),
    'negative': (lambda root: _label(root, -3), 'MG107', 'Labels outside 0..12: -3. seen'),
    '255': (lambda root: _label(root, 255), 'MG107', 'Labels outside 0..12: 255. seen'),
    'beyond 32 bits': (lambda root: _label(root, 1 << 40), 'MG107', 'Labels outside 0..12: 1099511627776. seen'),
    'fewer labels': (
        lambda root: write(root / 'labels' / '1.bin', np.zeros(POINTS - 1, np.int64)),
        'MG130',
        'labels/1.bin: 39 labels, 40 points',
    ),
    'fewer points': (
        lambda root: write(root / 'points' / '1.bin', np.zeros((POINTS - 2, 6), np.float32)),
        'MG130',
        'labels/1.bin: 40 labels, 38 points',
    ),
    'no label file': (lambda root: (root / 'labels' / '1.bin').unlink(), 'MG129', '1 missing label file: labels/1.bin'),
    'no scan': (lambda root: (root / 'points' / '1.bin').unlink(), 'MG129', '1 missing scan: points/1.bin'),
    'empty': (lambda root: write(root / 'labels' / '1.bin', np.zeros(0)), 'MG132', 'empty: labels/1.bin'),
    'part of a number': (
        lambda root: write(root / 'labels' / '1.bin', np.zeros(POINTS * 8 - 3, np.uint8)),
        'MG132',
        'its size is no multiple of 8 bytes (int64): labels/1.bin',
    ),
    'part of a point': (
        lambda root: write(root / 'points' / '1.bin', np.zeros(POINTS * 24 - 4, np.uint8)),
        'MG132',
        'size is no multiple of 6 float32: points/1.bin',
    ),
    'no labels': (
        lambda root: write(root / 'labels' / '1.bin', np.random.RandomState(0).rand(2000)),
        'MG132',
        'more than 1,024 values: no labels, or not int64: labels/1.bin',
    ),
    'void alone': (lambda root: _every(root, 13), 'MG128', 'all 160 points are ignored'),
    'not listed': (_without_path, 'MG132', 'a sample has no pts_semantic_mask_path: infos.pkl: data_list[1]'),
}


@pytest.mark.parametrize('fault', POINT_FAULTS)
def test_a_fault_of_points_is_named_with_its_file(fault: str, tmp_path: Path, capsys: Output) -> None:
    plant, mg, words = POINT_FAULTS[fault]
    config = points('s3dis', tmp_path / 'data')
    plant(tmp_path / 'data')
    code, text = scanned(config, tmp_path, capsys)
    assert (code, mg in text, words in text) == (1, True, True), text
    if mg == 'MG107':
        assert 'in: labels/1.bin' in text


def test_the_label_map_that_is_offered_trains(tmp_path: Path, capsys: Output) -> None:
    config = points('s3dis', tmp_path / 'data')
    _label(tmp_path / 'data', 300)
    text = scanned(config, tmp_path, capsys)[1]
    assert "dict(type='GuardedPointSegClassMapping', ignore_index=13, label_map={300: 13})" in text
    out = tmp_path / 'out.py'
    assert main(['apply', str(tmp_path / 'config.py'), '-o', str(out), '--scan', '--edit', '1', '--quiet']) == 0
    assert main(['scan', str(out), '--processes', '1']) == 0
    init_default_scope('mmdet3d')
    dataset = DATASETS.build(Config.fromfile(str(out)).train_dataloader.dataset)
    mask = dataset[1]['data_samples'].gt_pts_seg.pts_semantic_mask
    assert mask[3] == 13


def test_the_head_ignores_another_label_than_the_data_set_writes(tmp_path: Path, capsys: Output) -> None:
    config = points('s3dis', tmp_path / 'data')
    config.model.decode_head.ignore_index = 255
    code, text = scanned(config, tmp_path, capsys)
    assert (code, 'Labels outside 0..12: 13.' in text, 'Write ignore_index=13' in text) == (1, True, True), text
    out = tmp_path / 'out.py'
    main(['apply', str(tmp_path / 'config.py'), '-o', str(out), '--scan', '--edit', '1', '--quiet'])
    assert main(['scan', str(out), '--processes', '1']) == 0


def _of(root: Path, change: Callable[[List[Dict[str, Any]]], Any], metainfo: Optional[Dict[str, Any]] = None) -> None:
    infos = read_infos(root)
    change(infos['data_list'])
    write_infos(root, infos['data_list'], infos['metainfo'] if metainfo is None else metainfo)


def _set(key: str, value: Any) -> Callable[[Path], None]:
    return lambda root: _of(root, lambda listed: listed[2]['instances'][1].update({key: value}))


BOX = [2.0, 2.0, 5.0, 3.9, 1.5, 1.6, 0.3]
_PLACE = 'infos.pkl: data_list[2]: instances[1]'
#: What is planted into KITTI -> the code and the words that name it.
OBJECT_FAULTS: Dict[str, Tuple[Callable[[Path], Any], str, str]] = {
    'a number without a category': (_set('bbox_label_3d', 11), 'MG107', f'{_PLACE}: label 11'),
    'below -1': (_set('bbox_label_3d', -2), 'MG105', f'{_PLACE}: label -2'),
    'a text': (_set('bbox_label_3d', 'Car'), 'MG176', f"bbox_label_3d is no whole number: {_PLACE}: 'Car'"),
    'no length': (_set('bbox_3d', [*BOX[:3], 0.0, *BOX[4:]]), 'MG109', f'{_PLACE}: 2, 2, 5, 0, 1.5'),
    'negative': (_set('bbox_3d', [*BOX[:5], -1.6, 0.3]), 'MG109', f'{_PLACE}: 2, 2, 5, 3.9, 1.5, -1.6'),
    'nan': (_set('bbox_3d', [float('nan'), *BOX[1:]]), 'MG109', f'{_PLACE}: nan, 2'),
    'infinite': (_set('bbox_3d', np.array([1e60, *BOX[1:]])), 'MG109', f'{_PLACE}: 1e+60'),
    'three numbers': (_set('bbox_3d', BOX[:3]), 'MG176', f'bbox_3d is not 6 to 9 numbers: {_PLACE}'),
    'no scan': (lambda root: (root / 'points' / '1.bin').unlink(), 'MG150', 'points/1.bin'),
    'no box': (
        lambda root: _of(root, lambda listed: listed[2]['instances'][1].pop('bbox_3d')),
        'MG176',
        f'bbox_3d is not 6 to 9 numbers: {_PLACE}',
    ),
    'no instances': (lambda root: _of(root, lambda listed: listed[2].pop('instances')), 'MG176', 'data_list[2]'),
    'no lidar_points': (
        lambda root: _of(root, lambda listed: listed[2].pop('lidar_points')),
        'MG176',
        "a sample has no 'lidar_points': infos.pkl: data_list[2]",
    ),
    'another order': (
        lambda root: _of(root, len, {'categories': {'Car': 0, 'Pedestrian': 1, 'Cyclist': 2}}),
        'MG141',
        "0 is 'Car' in the file, 'Pedestrian' in METAINFO",
    ),
}


@pytest.mark.parametrize('fault', OBJECT_FAULTS)
def test_a_fault_of_objects_is_named_with_its_place(fault: str, tmp_path: Path, capsys: Output) -> None:
    plant, mg, words = OBJECT_FAULTS[fault]
    config = objects('kitti', tmp_path / 'data')
    plant(tmp_path / 'data')
    code, text = scanned(config, tmp_path, capsys, '--verbose')
    assert (code, mg in text, words in text) == (1, True, True), text


def test_nothing_in_an_info_file_is_called(tmp_path: Path, capsys: Output) -> None:
    class Bomb:
        def __reduce__(self) -> Any:
            return os.mkdir, (str(tmp_path / 'exploded'),)

    config = objects('kitti', tmp_path / 'data')
    _of(tmp_path / 'data', lambda listed: listed[0].update(token=Bomb()))
    code, text = scanned(config, tmp_path, capsys)
    assert (code, (tmp_path / 'exploded').exists()) == (2, False)
    assert 'infos.pkl: it names posix.mkdir, which is no plain data' in text


@pytest.mark.parametrize('make', [points, objects])
def test_nothing_that_can_be_read_is_no_clean_set(make: Any, tmp_path: Path, capsys: Output) -> None:
    config = make('s3dis' if make is points else 'kitti', tmp_path / 'data')
    empty = {'metainfo': {}, 'data_list': []}
    without = {'metainfo': {}, 'data_list': [{'lidar_points': {'lidar_path': '0.bin'}, 'instances': []}]}
    for content in (empty, without, [], {'data_list': {}}):
        (tmp_path / 'data' / 'infos.pkl').write_bytes(pickle.dumps(content))
        code, text = scanned(config, tmp_path, capsys)
        assert code in (1, 2), text
        assert 'infos.pkl' in text or 'nothing was read' in text


def test_damaged_files_do_not_stop_a_scan(tmp_path: Path) -> None:
    """Cut and disturbed info files, and label files of every kind beside sound ones."""
    root = tmp_path / 'data'
    config = objects('kitti', root)
    whole = (root / 'infos.pkl').read_bytes()
    random = np.random.RandomState(0)
    damaged = [whole[: len(whole) * part // 12] for part in range(12)]
    for _ in range(12):
        disturbed = bytearray(whole)
        for place in random.randint(0, len(whole), 5):
            disturbed[place] = random.randint(256)
        damaged.append(bytes(disturbed))
    for content in [*damaged, b'{}', b'\x80\x04.', pickle.dumps({'metainfo': [], 'data_list': [None, 3, 'x', {}]})]:
        (root / 'infos.pkl').write_bytes(content)
        with suppress(ValueError):  # nothing was read, in the words of the test above
            assert scan_objects(config.train_dataloader.dataset).total
