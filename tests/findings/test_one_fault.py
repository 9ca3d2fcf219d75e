"""One fault is one finding, whichever command looks for it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, Optional, Sequence

import pytest
from drawn_scenes import photo
from label_files import write
from situation import checked, coco_data, coco_json, faster, findings_of, some_boxes, write_config
from this_stack import IS_ONEDL

from mmguard.cli import main
from mmguard.config.read import read_config
from mmguard.findings import diagnose
from mmguard.findings.rules.labels.yolo import RowsOfAnotherTask


@pytest.mark.skipif(IS_ONEDL, reason='needs mmdet')
def test_a_list_that_stayed_at_the_wrapper_is_one_fault(tmp_path: Path) -> None:
    """No other finding advises a head of as many classes as the type has."""
    coco_json(tmp_path / 'train/ann.json', {24: 'person', 25: 'rider'}, some_boxes([24, 25], 3))
    inner = dict(coco_data(tmp_path, None), type='CityscapesDataset')
    outer = dict(type='RepeatDataset', times=8, dataset=inner, metainfo=dict(classes=('person',)))
    config = dict(default_scope='mmdet', model=faster(1), train_dataloader=dict(batch_size=2, dataset=outer))
    found = findings_of(lambda root: write_config(root, **config), tmp_path)
    assert [one.code for one in found if one.severity != 'info'] == ['MG203']


@pytest.mark.skipif(IS_ONEDL, reason='needs mmdet')
@pytest.mark.parametrize('is_in_config', [True, False])
@pytest.mark.parametrize(
    ('names', 'things'),
    [(('sky', 'car'), ('car',)), (tuple('abcde'), ('b', 'c', 'd')), (('road', 'bus', 'sea', 'ship'), ('ship', 'bus'))],
)
def test_stuff_among_the_things_is_one_fault(
    names: Sequence[str], things: Sequence[str], is_in_config: bool, tmp_path: Path
) -> None:
    """Not a head with too few classes: more of them would leave the semantic head without things."""
    mmdet = pytest.importorskip('mmdet.datasets')
    known = dict(classes=names, thing_classes=things, stuff_classes=tuple(set(names) - set(things)))
    own = type('OwnPanopticDataset', (mmdet.CocoPanopticDataset,), {} if is_in_config else {'METAINFO': known})
    registry = pytest.importorskip('mmdet.registry').DATASETS
    registry.register_module(name='OwnPanopticDataset', force=True, module=own)
    dataset = dict(type='OwnPanopticDataset', ann_file='train.json', **({'metainfo': known} if is_in_config else {}))
    try:
        parts = dict(default_scope='mmdet', model=faster(len(things)), train_dataloader=dict(dataset=dataset))
        found = checked(lambda root: write_config(root, **parts), tmp_path)
    finally:
        del registry.module_dict['OwnPanopticDataset']
    assert [one.code for one in found if one.severity != 'info'] == ['MG391']


@pytest.mark.skipif(IS_ONEDL, reason='needs mmseg')
@pytest.mark.parametrize(
    ('attributes', 'written'),
    [
        (dict(CLASSES=('ground', 'crack')), ('ground', 'crack')),
        (dict(CLASSES=['a', 'b', 'c'], PALETTE=[[0, 0, 0], [1, 1, 1], [2, 2, 2]]), ('a', 'b', 'c')),
        (dict(METAINFO=dict(classes='water')), None),
        (dict(METAINFO=dict(classes=('bus', 'car'))), None),
        (dict(METAINFO=dict(classes=('bus', 'car')), CLASSES=('bus',)), None),
    ],
)
def test_classes_of_a_data_set_class_that_are_not_read(
    attributes: Dict[str, Any], written: Optional[Sequence[str]], tmp_path: Path
) -> None:
    base = pytest.importorskip('mmseg.datasets').BaseSegDataset
    registry = pytest.importorskip('mmseg.registry').DATASETS
    registry.register_module(name='OwnMaps', force=True, module=type('OwnMaps', (base,), attributes))
    model = dict(type='EncoderDecoder', decode_head=dict(type='FCNHead', num_classes=2))
    try:
        data = dict(dataset=dict(type='OwnMaps'))
        path = write_config(tmp_path, default_scope='mmseg', model=model, train_dataloader=data)
        config = read_config(str(path))
        found = [one for one in diagnose(config=config) if one.code in ('MG205', 'MG390')]
    finally:
        del registry.module_dict['OwnMaps']
    is_string = attributes.get('METAINFO') == dict(classes='water')
    assert [one.code for one in found] == (['MG205'] if is_string else ['MG390'] if written else [])
    if written:
        assert tuple(dict(found[0].edits[0].config)['train_dataloader.dataset.metainfo.classes']) == tuple(written)


@pytest.mark.parametrize(
    ('hidden', 'names', 'files'),
    [
        ('.ipynb_checkpoints', 'abcde', 2),
        ('.cache', ('cat', 'dog', 'cow'), 0),  # labels 1 to 3, then
        ('.thumbnails', ('nut', 'bolt', 'pin', 'rod'), 1),
        ('.trash', ('0', '1', '2', '3', '4', '5', '6'), 12),
    ],
)
def test_a_hidden_folder_among_those_of_the_classes_is_one_fault(
    hidden: str, names: Sequence[str], files: int, tmp_path: Path
) -> None:
    """Not one class too many, and not labels from 1."""
    for name, number in [*dict.fromkeys(names, 6).items(), (hidden, files)]:
        (tmp_path / 'train' / name).mkdir(parents=True)
        for place in range(number):
            write(tmp_path / 'train' / name / f'{place}.jpg', photo(place, 60, 80))
    found = findings_of(lambda root: (root / 'train', dict(num_classes=len(names))), tmp_path)
    assert [(one.code, one.severity, one.edits) for one in found] == [('MG393', 'error', ())]


#: Kind of rows -> one of them; four corners that are not parallel to the image are an oriented box.
ROWS = {
    'boxes': '{} 0.5 0.4 0.2 0.1',
    'outlines': '{} 0.1 0.1 0.4 0.1 0.5 0.3 0.2 0.6 0.1 0.3',
    'oriented boxes': '{} 0.3 0.2 0.5 0.3 0.4 0.5 0.2 0.4',
}


@pytest.mark.parametrize(
    ('names', 'most', 'others', 'number', 'has_yaml'),
    [
        (['scratch', 'dent'], 'boxes', 'outlines', 9, True),  # detection, to which masks were added
        (['leaf', 'stem', 'root'], 'outlines', 'boxes', 4, True),  # segmentation, of which some were drawn as boxes
        ([f'ship {kind}' for kind in range(5)], 'oriented boxes', 'boxes', 1, False),
    ],
)
def test_which_task_is_trained_only_the_user_knows(
    names: Sequence[str], most: str, others: str, number: int, has_yaml: bool, tmp_path: Path
) -> None:
    """What most rows are does not decide it: no edit makes one of the other, whichever there are more of."""
    (tmp_path / 'labels').mkdir()
    for place in range(24):
        write(tmp_path / f'images/{place:02}.jpg', photo(place, 60, 80))
        rows = [ROWS[others if place < number else most].format(label) for label in range(len(names))]
        (tmp_path / f'labels/{place:02}.txt').write_text('\n'.join(rows), encoding='utf-8')
    (tmp_path / 'own.yaml').write_text(json.dumps(dict(train='images', val='images', names=list(names))))
    target = tmp_path / 'own.yaml' if has_yaml else tmp_path / 'labels'
    (finding,) = findings_of(lambda root: (target, {} if has_yaml else dict(num_classes=len(names))), tmp_path)
    assert (finding.code, finding.severity, finding.edits) == ('MG165', 'error', ())
    named = {Path(file.partition(': ')[0]).name for file in finding.files}
    assert named <= {f'{place:02}.txt' for place in range(number)}
    assert named
    assert finding.advice == RowsOfAnotherTask.advice.format()


def test_check_and_scan_agree_on_the_switch_of_detr(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Ids that COCO has as well give the labels that are meant, as long as none of its gaps is among them."""
    path = tmp_path / 'own.yml'
    path.write_text(
        'num_classes: 8\nremap_mscoco_category: True\n'
        f'train_dataloader:\n  dataset:\n    ann_file: {tmp_path}/ann.json\n',
        encoding='utf-8',
    )
    for ids, code in ((range(1, 9), 0), (range(8), 1), (range(2, 10), 1)):
        coco_json(tmp_path / 'ann.json', {number: f'class {number}' for number in ids}, some_boxes(list(ids), 3))
        for command in ('check', 'scan'):
            assert main([command, str(path)]) == code, (command, ids)
            assert ('MG162' in capsys.readouterr().out) == bool(code)
