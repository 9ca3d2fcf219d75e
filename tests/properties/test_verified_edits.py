"""Edits that break the program are not offered, those that could not be built say so."""

from __future__ import annotations

import copy
import json

import pytest
from programs import tree_of

from mmguard.cli import main
from mmguard.config.changes import changed
from mmguard.config.read import ReadConfig
from mmguard.findings.edits import Edit
from mmguard.findings.engine import verify_edits
from mmguard.findings.finding import Finding
from mmguard.properties.builder import Builder, Verifier

pytestmark = pytest.mark.slow


def verified(tree, *edits, code='MG201'):
    """Return the edits of a finding that are left, with a program."""
    config = ReadConfig(copy.deepcopy(tree))
    finding = Finding(code, 'title', 'evidence', 'advice', 0.5, edits=edits)
    with Builder(seconds=200) as builder:
        (found,) = verify_edits([finding], config, Verifier(builder))
    return found.edits


def set_heads(heads, number):
    return Edit('Set the number of classes.', config=tuple((f'{head}.num_classes', number) for head in heads), number=1)


# ---- fewer outputs than the labels of the program need


@pytest.mark.parametrize(
    ('config', 'heads', 'few', 'enough'),
    [
        (
            'mmdet::mask_rcnn/mask-rcnn_r50_fpn_1x_coco.py',
            ('model.roi_head.bbox_head', 'model.roi_head.mask_head'),
            9,
            85,
        ),
        ('mmdet::fcos/fcos_r50-caffe_fpn_gn-head_1x_coco.py', ('model.bbox_head',), 3, 90),
        (
            'mmseg::fcn/fcn_r50-d8_4xb2-40k_cityscapes-512x1024.py',
            ('model.decode_head', 'model.auxiliary_head'),
            12,
            24,
        ),
    ],
)
def test_heads_that_the_labels_do_not_fit(config, heads, few, enough):
    edits = verified(tree_of(config), set_heads(heads, few), set_heads(heads, enough))
    assert [edit.config[0][1] for edit in edits] == [enough]
    assert edits[0].verified is True


# ---- arguments that the data set sets itself


@pytest.mark.parametrize(
    ('config', 'dataset', 'argument'),
    [
        ('mmseg::segformer/segformer_mit-b0_8xb2-160k_ade20k-512x512.py', 'SetsReduceZero', 'reduce_zero_label'),
        ('mmdet::retinanet/retinanet_r50_fpn_1x_coco.py', 'SetsFilter', 'filter_cfg'),
        ('mmdet::fcos/fcos_r50-caffe_fpn_gn-head_1x_coco.py', 'SetsSeed', 'serialize_data'),
    ],
)
def test_an_argument_that_the_class_passes_itself(config, dataset, argument):
    tree = tree_of(config)
    tree['custom_imports'] = dict(imports=['own_datasets'])
    node = tree['train_dataloader']['dataset']
    node['type'] = dataset
    node.pop(argument, None)
    value = {'reduce_zero_label': True, 'filter_cfg': None, 'serialize_data': False}[argument]
    edit = Edit('Set it.', config=((f'train_dataloader.dataset.{argument}', value),), number=1)
    other = Edit('Set the size.', config=(('train_dataloader.dataset.indices', 2),), number=2)
    assert [one.number for one in verified(tree, edit, other)] == [2]


def test_the_same_where_the_data_are_not_here():
    tree = tree_of('mmdet::retinanet/retinanet_r50_fpn_1x_coco.py')
    tree['custom_imports'] = dict(imports=['own_datasets'])
    node = tree['train_dataloader']['dataset']
    node.update(type='SetsFilter', data_root='/nowhere')
    del node['filter_cfg']
    broken = Edit('Set it.', config=(('train_dataloader.dataset.filter_cfg', None),), number=1)
    other = Edit('Set the size.', config=(('train_dataloader.dataset.indices', 2),), number=2)
    (left,) = verified(tree, broken, other)
    assert (left.number, left.verified) == (2, False)
    assert left.doubt


def test_numbers_stay_and_label_edits_count_as_read():
    files = Edit('Renumber.', files=(('a.json', (('to', 1),)),), number=1)
    lines = Edit('Write it.', lines=('x = 1',))
    left = verified({'train_dataloader': {}}, files, lines)
    assert [(edit.number, edit.verified) for edit in left] == [(1, True), (0, None)]


def test_without_a_verifier_all_are_marked():
    edit = set_heads(('model.head',), 3)
    finding = Finding('MG201', 'title', 'evidence', 'advice', 0.5, edits=(edit,))
    config = ReadConfig({'model': {'head': {}}})
    (found,) = verify_edits([finding], config, None, 'left out')
    assert (found.edits[0].verified, found.edits[0].doubt) == (False, 'left out')
    assert changed(config, edit.config).data['model']['head'] == {'num_classes': 3}


# ---- the command


def write_config(folder, tree):
    path = folder / 'mine.py'
    path.write_text('\n'.join(f'{key} = {value!r}' for key, value in tree.items()))
    return str(path)


def test_check_verifies(tmp_path, capsys):
    tree = tree_of('mmseg::segformer/segformer_mit-b0_8xb2-160k_ade20k-512x512.py')
    tree['model']['decode_head']['num_classes'] = 160
    path, report = write_config(tmp_path, tree), tmp_path / 'found.json'
    states = []
    for words in ([], ['--no-verify']):
        assert main(['check', path, '--json', str(report), *words]) == 1
        record = json.loads(report.read_text())
        states += [edit['verified'] for found in record['findings'] for edit in found['edits'] if edit['config']]
    assert states == [True, False]
    capsys.readouterr()
