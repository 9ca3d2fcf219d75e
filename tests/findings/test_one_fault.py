"""One fault is one finding, whichever command looks for it."""

from __future__ import annotations

from pathlib import Path

import pytest
from situation import coco_data, coco_json, faster, findings_of, some_boxes, write_config
from this_stack import IS_ONEDL

from mmguard.cli import main


@pytest.mark.skipif(IS_ONEDL, reason='needs mmdet')
def test_a_list_that_stayed_at_the_wrapper_is_one_fault(tmp_path: Path) -> None:
    """No other finding advises a head of as many classes as the type has."""
    coco_json(tmp_path / 'train/ann.json', {24: 'person', 25: 'rider'}, some_boxes([24, 25], 3))
    inner = dict(coco_data(tmp_path, None), type='CityscapesDataset')
    outer = dict(type='RepeatDataset', times=8, dataset=inner, metainfo=dict(classes=('person',)))
    config = dict(default_scope='mmdet', model=faster(1), train_dataloader=dict(batch_size=2, dataset=outer))
    found = findings_of(lambda root: write_config(root, **config), tmp_path)
    assert [one.code for one in found if one.severity == 'error'] == ['MG203']


def test_check_reads_the_switch_of_detr(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    included, path = tmp_path / 'own.yml', tmp_path / 'rtdetr.yml'
    path.write_text("__include__: ['own.yml']\n", encoding='utf-8')
    for number, remaps, code in ((5, True, 1), (5, False, 0), (80, True, 0)):
        included.write_text(f'num_classes: {number}\nremap_mscoco_category: {remaps}\n', encoding='utf-8')
        assert main(['check', str(path)]) == code
        assert ('MG162' in capsys.readouterr().out) == bool(code)


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
