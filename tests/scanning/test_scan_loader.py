"""The verdict that labels are fine is given where the config's own loader returns what the scan counts."""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any, Dict, List

import numpy as np
import pytest
from coco_cases import ann, coco
from label_files import BLOCKS, write
from put_file import put_config
from scans import codes, scan

from mmguard.cli import main
from mmguard.formats.files import SAMPLE
from mmguard.scanning.config_maps import ConfigSource, split_sets

pytest.importorskip('mmseg')

#: As mmseg 1.0.0rc3 did: the label map of the data set first, the shift of 0 after it.
OWN_LOADERS = """
from mmdet.datasets import CocoDataset
from mmdet.datasets.transforms import LoadAnnotations as DetLoadAnnotations
from mmdet.registry import DATASETS
from mmdet.registry import TRANSFORMS as DET_TRANSFORMS
from mmseg.datasets import BaseSegDataset
from mmseg.datasets.transforms import LoadAnnotations
from mmseg.registry import DATASETS as SEG_DATASETS
from mmseg.registry import TRANSFORMS

SEEN = []


@TRANSFORMS.register_module(name='LoadMappedAnnotations', force=True)
class LoadMappedAnnotations(LoadAnnotations):
    def _load_seg_map(self, results):
        shifts, results['reduce_zero_label'] = results['reduce_zero_label'], False
        self.reduce_zero_label = False
        super()._load_seg_map(results)
        if shifts:
            label = results['gt_seg_map']
            label[label == 0] = 255
            label -= 1
            label[label == 254] = 255


@TRANSFORMS.register_module(name='LoadSeenAnnotations', force=True)
class LoadSeenAnnotations(LoadAnnotations):
    def _load_seg_map(self, results):
        SEEN.append(results['seg_map_path'])
        super()._load_seg_map(results)


@TRANSFORMS.register_module(name='LoadNoAnnotations', force=True)
class LoadNoAnnotations(LoadAnnotations):
    def _load_seg_map(self, results):
        raise KeyError('a key that the data set does not give')


@SEG_DATASETS.register_module(name='FiveDataset', force=True)
class FiveDataset(BaseSegDataset):
    METAINFO = dict(classes=tuple('abcde'))


@DET_TRANSFORMS.register_module(name='LoadIdsAnnotations', force=True)
class LoadIdsAnnotations(DetLoadAnnotations):
    def transform(self, results):
        results = super().transform(results)
        results['gt_bboxes_labels'] = results['gt_bboxes_labels'] * 6 + 2
        return results


@DATASETS.register_module(name='IdsDataset', force=True)
class IdsDataset(CocoDataset):
    def load_data_list(self):
        listed = super().load_data_list()
        for image in listed:
            for one in image['instances']:
                one['bbox_label'] = self.cat_ids[one['bbox_label']] - 1
        return listed
"""


@pytest.fixture(autouse=True)
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    pytest.importorskip('mmdet')
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / 'own_loaders.py').write_text(OWN_LOADERS)
    yield
    sys.modules.pop('own_loaders', None)


def seg_config(root: Path, loader: str = 'LoadAnnotations', files: int = 3, names: str = 'abcde', **more: Any) -> Path:
    """Five classes in the files; ``loader`` empty: a pipeline without one."""
    for number in range(files):
        write(root / 'labels' / f'{number}.png', np.roll(BLOCKS, number))
        write(root / 'images' / f'{number}.jpg', np.zeros((*BLOCKS.shape, 3), np.uint8))
    (root / 'images').mkdir(parents=True, exist_ok=True)
    (root / 'labels').mkdir(parents=True, exist_ok=True)
    pipeline = [dict(type='LoadImageFromFile'), *([dict(type=loader)] if loader else []), dict(type='PackSegInputs')]
    dataset: Dict[str, Any] = dict(
        type='BaseSegDataset',
        data_root=str(root),
        data_prefix=dict(img_path='images', seg_map_path='labels'),
        metainfo=dict(classes=tuple(names)),
        pipeline=pipeline,
    )
    dataset.update(more)
    model = dict(type='EncoderDecoder', decode_head=dict(type='FCNHead', num_classes=len(names)))
    return write_config(root, default_scope='mmseg', model=model, train_dataloader=dict(batch_size=2, dataset=dataset))


def write_config(root: Path, **parts: Any) -> Path:
    return put_config(root / 'config.py', **parts, custom_imports=dict(imports=['own_loaders']))


def test_the_loader_of_the_config_confirms_the_verdict(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    reported = scan(capsys, seg_config(tmp_path))
    assert (reported['code'], codes(reported)) == (0, ['MG100'])
    assert reported['facts']['loader'] == {'files': 3}


def test_a_loader_in_another_order_takes_the_verdict_back(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    # Two of five classes, b and c: the map of the data set is {0: 255, 1: 0, 2: 1, ...}.
    config = seg_config(tmp_path, 'LoadMappedAnnotations', type='FiveDataset', names='bc', reduce_zero_label=True)
    reported = scan(capsys, config)
    assert reported['code'] == 1
    assert 'MG178' in codes(reported)
    assert 'MG100' not in codes(reported)
    loader = reported['facts']['loader']
    assert loader['files'] == 3
    both = loader['differing']['labels/0.png']
    assert both[0] != both[1]


def test_a_loader_that_stops_is_a_finding(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    reported = scan(capsys, seg_config(tmp_path, 'LoadNoAnnotations'))
    assert (reported['code'], reported['findings'][0]['code']) == (1, 'MG178')
    assert 'KeyError' in json.dumps(reported['facts']['loader'])


@pytest.mark.parametrize('loader', ['', 'LoadWhatNobodyWrote'])
def test_without_a_loader_nothing_is_claimed(loader: str, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    reported = scan(capsys, seg_config(tmp_path, loader))
    assert 'MG100' in codes(reported)
    assert not reported['facts'].get('loader', {}).get('files')


def test_a_handful_of_files_is_decoded_again(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    reported = scan(capsys, seg_config(tmp_path, 'LoadSeenAnnotations', files=40))
    assert reported['facts']['files'] == 40
    assert reported['facts']['loader'] == {'files': SAMPLE}
    seen: List[str] = sys.modules['own_loaders'].SEEN
    assert len(set(seen)) == len(seen) == SAMPLE


def test_a_data_set_that_lists_no_file_is_code_2(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    assert main(['scan', str(seg_config(tmp_path, files=0))]) == 2
    assert "img_suffix='.jpg'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ('kind', 'loader', 'agrees'),
    [
        ('CocoDataset', '', True),
        ('IdsDataset', '', False),
        ('CocoDataset', 'LoadAnnotations', True),
        ('CocoDataset', 'LoadIdsAnnotations', False),
    ],
)
def test_the_data_set_of_a_detection_config_is_asked_too(
    kind: str, loader: str, agrees: bool, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    record = coco([ann(n, n // 2, (3, 9)[n % 2], (2, 3, 20, 30)) for n in range(20)], 10, size=(64, 64))
    record['categories'] = [dict(id=number, name=name) for number, name in ((3, 'cat'), (9, 'dog'))]
    (tmp_path / 'a.json').write_text(json.dumps(record))
    for image in record['images']:
        write(tmp_path / image['file_name'], np.zeros((64, 64, 3), np.uint8))
    metainfo = dict(classes=('cat', 'dog'))
    dataset: Dict[str, Any] = dict(
        type=kind, data_root=str(tmp_path), ann_file='a.json', metainfo=metainfo, pipeline=[]
    )
    if loader:
        resize = dict(type='Resize', scale=(32, 32), keep_ratio=True)
        dataset['pipeline'] = [dict(type='LoadImageFromFile'), dict(type=loader, with_bbox=True), resize]
    dataset['data_prefix'] = dict(img='')
    head = dict(type='RetinaHead', num_classes=2)
    config = write_config(
        tmp_path,
        default_scope='mmdet',
        model=dict(type='RetinaNet', bbox_head=head),
        train_dataloader=dict(batch_size=2, dataset=dataset),
    )
    reported = scan(capsys, config)
    assert reported['facts']['loader']['files'] == SAMPLE
    assert (reported['code'], codes(reported)[0]) == ((0, 'MG100') if agrees else (1, 'MG178'))
    if not agrees:
        differing = next(iter(reported['facts']['loader']['differing'].values()))
        assert [[int(value) for value in counts] for counts in differing] == [[2, 8], [0, 1]]


@pytest.mark.parametrize(('split', 'code'), [('test', 0), ('val', 2)])
def test_a_split_without_label_maps(split: str, code: int, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    config = seg_config(tmp_path)
    dataset = dict(type='BaseSegDataset', data_root=str(tmp_path), data_prefix=dict(img_path='images'), pipeline=[])
    config.write_text(f'{config.read_text()}{split}_dataloader = dict(batch_size=1, dataset={dataset!r})\n')
    reported = scan(capsys, config)
    assert reported['code'] == code
    assert any('3 images' in note for note in reported['notes']) == (split == 'test')


def test_what_mmseg_warns_of_is_not_said_for_every_edit(tmp_path: Path) -> None:
    """Its loader warns where it is built, and each edit that is tried builds one."""
    pipeline = [dict(type='LoadAnnotations', reduce_zero_label=False)]
    config = pytest.importorskip('mmengine').Config.fromfile(str(seg_config(tmp_path, files=2)))
    (split,) = split_sets(config, ['train'])
    source = ConfigSource(split._replace(pipeline=pipeline), 5, 255)
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        facts = source.compare_with_loader()
    assert (facts.files, facts.unknown) == (2, '')


OWN_SETS = {
    # The samples were listed before the map was there: mmseg's loader never sees it.
    'a map that comes late': """
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.label_map = {3: 1, 4: 2}
""",
    'labels that change after the pipeline': """
    def __getitem__(self, place):
        results = super().__getitem__(place)
        results['gt_seg_map'][results['gt_seg_map'] == 4] = 0
        return results
""",
    'a shift that only a method says': """
    def prepare_data(self, place):
        return self.pipeline({**self.get_data_info(place), 'reduce_zero_label': True})
""",
    'a shift that only the attribute says': """
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.reduce_zero_label = True
""",
}


@pytest.mark.parametrize('body', OWN_SETS.values(), ids=OWN_SETS)
def test_samples_of_the_built_data_set_count_not_its_attributes(
    body: str, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    config = seg_config(tmp_path, type='OwnSet')
    with open(tmp_path / 'own_loaders.py', 'a') as file:
        file.write(f"\n\n@SEG_DATASETS.register_module(name='OwnSet', force=True)\nclass OwnSet(BaseSegDataset):{body}")
    reported = scan(capsys, config)
    assert (reported['code'], codes(reported)[0]) == (1, 'MG178')
    assert reported['facts']['loader']['differing'].keys() == {f'labels/{number}.png' for number in range(3)}
    assert 'MG100' not in codes(reported)
