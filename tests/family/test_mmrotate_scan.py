"""`mmguard scan` of MMRotate's data sets: what it calls clean they load, with its counts; what it names stops them."""

from __future__ import annotations

import copy
import json
from collections import Counter
from pathlib import Path
from typing import Any, Dict, List, Tuple

import mmrotate_here  # noqa: F401
import numpy as np
import pytest
from mmengine.config import Config
from mmrotate.registry import DATASETS
from oriented_files import make_dota, make_xml, of_dior, of_hrsc, rboxes, row
from scans import edits, scanned

from mmguard.cli import main
from mmguard.compat.stack import config_file

BOX = [(20.0, 20.0), (40.0, 20.0), (40.0, 30.0), (20.0, 30.0)]
#: Folder of mmrotate's configs -> what its data set is called, and what is said of it here.
CONFIGS = {
    'dota': ('mmrotate::rotated_retinanet/rotated-retinanet-rbox-le90_r50_fpn_1x_dota.py', dict(
        ann_file='labelTxt/', data_prefix=dict(img_path='images/'))),
    'dior': ('mmrotate::rotated_retinanet/rotated-retinanet-rbox-le90_r50_fpn_1x_dior.py', dict(
        ann_file='ImageSets/trainval.txt', data_prefix=dict(img_path='JPEGImages-trainval'))),
    'hrsc': ('mmrotate::rotated_retinanet/rotated-retinanet-rbox-le90_r50_fpn_rr-6x_hrsc.py', dict(
        ann_file='ImageSets/trainval.txt', data_prefix=dict(sub_data_root='FullDataSet/'))),
}  # fmt: skip
TYPES = {'dota': 'DOTADataset', 'dior': 'DIORDataset', 'hrsc': 'HRSCDataset'}


def config_of(kind: str, root: Path, **settings: Any) -> Tuple[Config, Path]:
    """A config of mmrotate's own, that reads a small data set."""
    name, places = CONFIGS[kind]
    path = config_file(name)
    config = Config.fromfile(path)
    pipeline = [*config.train_pipeline[:3], config.train_pipeline[-1]]
    pipeline[2].type = 'mmrotate.ConvertBoxType'
    dataset = dict(type=TYPES[kind], data_root=str(root), pipeline=pipeline, **places)
    dataset.update(filter_cfg=dict(filter_empty_gt=False), **settings)
    config.train_dataloader.dataset = dataset
    for part in ('val_dataloader', 'val_evaluator', 'val_cfg', 'test_dataloader', 'test_evaluator', 'test_cfg'):
        config[part] = None
    file = root / 'config.py'
    config.dump(str(file))
    return config, file


def loaded(config: Config) -> List[Dict[str, Any]]:
    """What the class of the config makes of the files."""
    settings = {**config.train_dataloader.dataset, 'pipeline': [], 'lazy_init': True}
    return DATASETS.build(settings).load_data_list()  # type: ignore[no-any-return]


def counted(data: List[Dict[str, Any]]) -> Dict[str, int]:
    labels = Counter(one['bbox_label'] for image in data for one in image['instances'] if not one['ignore_flag'])
    return {str(label): count for label, count in sorted(labels.items())}


def make(kind: str, root: Path, planted: Dict[int, List[str]] = {}) -> Path:  # noqa: B006
    if kind == 'dota':
        return make_dota(root, planted=planted)
    make_xml(root, kind, planted=planted)
    return root


@pytest.mark.parametrize('kind', sorted(CONFIGS))
def test_what_is_clean_is_loaded_as_it_is_counted(kind: str, tmp_path: Path) -> None:
    more = {'dota': [row(BOX, 'ship', 2)], 'dior': [of_dior(BOX, 'SHIP')], 'hrsc': [of_hrsc((30, 20, 20, 9, 1.5))]}
    config, file = config_of(kind, make(kind, tmp_path, {3: more[kind]}))
    code, found, facts = scanned(file, tmp_path / 'scan.json', '--split', 'train')
    assert (code, found, facts['total']) == (0, {}, 43)
    data = loaded(config)
    assert counted(data) == facts['histogram']
    assert facts['class_names'] == list(
        DATASETS.build({**config.train_dataloader.dataset, 'pipeline': []}).metainfo['classes']
    )
    dataset = DATASETS.build(config.train_dataloader.dataset)
    assert len(dataset) == 14
    assert sum(len(dataset[number]['data_samples'].gt_instances) for number in range(14)) == 43


def test_corners_are_those_of_mmrotate(tmp_path: Path) -> None:
    from mmguard.tools.scan.annotations.oriented.quads import turned

    config, _ = config_of('hrsc', make('hrsc', tmp_path))
    first = loaded(config)[0]['instances']
    assert np.allclose([one['bbox'] for one in first], [np.ravel(turned(box)) for box in rboxes(0)], atol=1e-3)


#: What ends the loading, one in each file, and what the scan says of it.
STOPS: Dict[str, List[Tuple[str, Any, str]]] = {
    'dota': [
        (row(BOX, 'plame'), KeyError, 'MG154'),
        ('1 2 3 4 5 6 7 plane 0', ValueError, 'MG176'),
        (row(BOX, 'plane', '').strip(), IndexError, 'MG176'),
        (row(BOX, 'plane', 'easy'), ValueError, 'MG176'),
        (row(BOX, 'small vehicle'), KeyError, 'MG176'),
        (row(BOX).replace(' ', ','), ValueError, 'MG176'),
        ('imagesource:GoogleEarth', ValueError, 'MG176'),
        ('', IndexError, 'MG176'),
        ('0 0.1 0.1 0.5 0.1 0.5 0.4 0.1 0.4', (IndexError, KeyError), 'MG176'),
    ],
    'dior': [
        (of_dior(BOX, 'airplan'), KeyError, 'MG154'),
        (of_dior(BOX).replace('robndbox', 'bndbox'), AttributeError, 'MG176'),
        (of_dior(BOX, ''), AttributeError, 'MG176'),
        (of_dior(BOX).replace('40.0', 'x', 1), ValueError, 'MG176'),
    ],
    'hrsc': [
        (of_hrsc((30, 20, 20, 9, 'left')), ValueError, 'MG176'),
        (of_hrsc((30, 20, 20, 9, 1), head=('', 4)), (ValueError, TypeError), 'MG176'),
    ],
}


@pytest.mark.parametrize('kind', sorted(STOPS))
def test_what_is_named_stops_the_loading_and_can_be_corrected(kind: str, tmp_path: Path) -> None:
    planted = {number: [text] for number, (text, _, _) in enumerate(STOPS[kind])}
    config, file = config_of(kind, make(kind, tmp_path / 'set', planted))
    code, found, _ = scanned(file, tmp_path / 'scan.json', '--split', 'train')
    assert (code, set(found)) == (1, {expected for _, _, expected in STOPS[kind]})
    facts = json.loads((tmp_path / 'scan.json').read_text())['datasets'][0]['facts']
    for number, (text, error, expected) in enumerate(STOPS[kind]):
        with pytest.raises(error):
            loaded(one_file(config, kind, tmp_path, number))
        where = f'P{number:04d}.txt: line 4' if kind == 'dota' else f'{number:05d}.xml: line 6'
        assert expected == 'MG154' or where in json.dumps(facts['annotations']['unreadable']), text
    assert loaded(one_file(config, kind, tmp_path, 13))
    numbers = [word for number in edits(tmp_path / 'scan.json') for word in ('--edit', str(number))]
    assert main(['fix', str(file), '--out', str(tmp_path / 'fixed'), *numbers, '--split', 'train']) == 0
    config.train_dataloader.dataset['ann_file' if kind == 'dota' else 'ann_subdir'] = str(tmp_path / 'fixed')
    assert len(loaded(config)) == 14
    config.dump(str(file))
    code, found, facts = scanned(file, tmp_path / 'scan.json', '--split', 'train')
    assert (code, found, facts['histogram']) == (0, {}, counted(loaded(config)))


def one_file(config: Config, kind: str, place: Path, number: int) -> Config:
    """The config, with one label file alone."""
    part, settings = copy.deepcopy(config), config.train_dataloader.dataset
    if kind == 'dota':
        folder = place / f'only {number}'
        folder.mkdir()
        name = f'P{number:04d}.txt'
        (folder / name).write_bytes((place / 'set/labelTxt' / name).read_bytes())
        part.train_dataloader.dataset.ann_file = str(folder)
    else:
        (place / 'one.txt').write_text(f'{number:05d}\n')
        part.train_dataloader.dataset.ann_file = str(place / 'one.txt')
    assert settings.ann_file != part.train_dataloader.dataset.ann_file
    return part


def test_ships_by_their_kind(tmp_path: Path) -> None:
    """Classwise, 31 numbers are known; another one is a KeyError."""
    root = make('hrsc', tmp_path, {1: [of_hrsc((30, 20, 20, 9, 1), '100000006')]})
    config, file = config_of('hrsc', root, classwise=True)
    config.model.bbox_head.num_classes = 31
    config.dump(str(file))
    code, found, facts = scanned(file, tmp_path / 'scan.json', '--split', 'train')
    assert (code, found, facts['histogram']) == (0, {}, counted(loaded(config)))
    assert facts['histogram'] == {'0': 42, '5': 1}
    labels = tmp_path / 'FullDataSet/Annotations/00001.xml'
    labels.write_text(labels.read_text().replace('100000006', '100000021'))
    with pytest.raises(KeyError, match='100000021'):
        loaded(config)
    code, found, _ = scanned(file, tmp_path / 'scan.json', '--split', 'train')
    assert (code, set(found)) == (1, {'MG154'})
    assert '100000021' in found['MG154']


def test_difficult_objects_are_ignored_as_diff_thr_says(tmp_path: Path) -> None:
    root = make('dota', tmp_path, {1: [row(BOX, 'ship', 3)], 2: [row(BOX, 'ship', 1)]})
    config, file = config_of('dota', root, diff_thr=1)
    _, found, facts = scanned(file, tmp_path / 'scan.json', '--split', 'train')
    assert (found, facts['histogram'], facts['annotations']['crowds']) == ({}, counted(loaded(config)), 1)


def test_other_images_and_classes(tmp_path: Path) -> None:
    root = make('dota', tmp_path)
    _, file = config_of('dota', root, type='DOTAv15Dataset', img_suffix='tif')
    found = scanned(file, tmp_path / 'scan.json', '--split', 'train')[1]
    assert 'P0000.tif (there is P0000.png)' in found['MG150']
    words = ['apply', str(file), '-o', str(tmp_path / 'out.py'), '--scan', '--edit', '1', '--split', 'train', '--quiet']
    assert main(words) == 0
    assert Config.fromfile(str(tmp_path / 'out.py')).train_dataloader.dataset.img_suffix == 'png'
    _, file = config_of('dota', root, metainfo=dict(classes=('ship', 'plane', 'harbour')))
    found = scanned(file, tmp_path / 'scan.json', '--split', 'train')[1]
    assert "14 annotations of 'harbor'" in found['MG154']


def test_a_test_split_without_labels_is_left_alone(tmp_path: Path, capsys: Any) -> None:
    config, file = config_of('dota', make('dota', tmp_path))
    config.test_dataloader = dict(dataset={**config.train_dataloader.dataset, 'ann_file': '', 'test_mode': True})
    config.dump(str(file))
    assert main(['scan', str(file)]) == 0
    assert 'DOTADataset without ann_file has no labels' in capsys.readouterr().out


@pytest.mark.parametrize('kind', sorted(CONFIGS))
def test_a_set_without_a_label_is_not_clean(kind: str, tmp_path: Path) -> None:
    root = make(kind, tmp_path)
    for file in [*root.rglob('*.txt')]:
        file.write_text('')
    assert main(['scan', str(config_of(kind, root)[1]), '--split', 'train']) == 2


def test_two_lists_of_one_folder(tmp_path: Path) -> None:
    """As DIOR has them: train and val together; what is wrong in the second alone is named, too, and corrected."""
    root = make('dior', tmp_path, {9: [of_dior(BOX), of_dior(BOX)]})
    config, file = config_of('dior', root)
    stems = (root / 'ImageSets/trainval.txt').read_text().splitlines()
    parts = []
    for name, own in (('train', stems[:7]), ('val', stems[7:])):
        (root / f'ImageSets/{name}.txt').write_text('\n'.join(own))
        parts.append({**config.train_dataloader.dataset, 'ann_file': f'ImageSets/{name}.txt'})
    config.train_dataloader.dataset = dict(type='ConcatDataset', ignore_keys=['DATASET_TYPE'], datasets=parts)
    config.dump(str(file))
    code, found, facts = scanned(file, tmp_path / 'scan.json', '--split', 'train')
    assert (code, set(found), facts['total']) == (1, {'MG166'}, 44)
    assert '00009.xml: line 7' in found['MG166']
    assert main(['fix', str(file), '--out', str(tmp_path / 'fixed'), '--edit', '1', '--split', 'train']) == 0
    assert (tmp_path / 'fixed/00009.xml').read_text().count('<object>') == 4
