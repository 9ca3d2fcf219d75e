"""Edits that break the program are not offered, those that could not be built say so."""

from __future__ import annotations

import copy
import json
import os
import shutil
from pathlib import Path

import own_datasets
import pytest
from mmengine.config import Config
from programs import tree_of, write_config

from mmguard.cli import main
from mmguard.config.read import ReadConfig
from mmguard.findings.edits import Edit
from mmguard.findings.engine import verify_edits
from mmguard.findings.finding import Finding
from mmguard.properties.builder import BROKEN, VERIFIED, Builder, Verification

pytestmark = pytest.mark.slow


def verified(tree, *edits, code='MG201'):
    """Return the edits of a finding that are left, with a program."""
    config = ReadConfig(copy.deepcopy(tree))
    finding = Finding(code, 'title', 'evidence', 'advice', 0.5, edits=edits)
    with Builder(seconds=200) as builder:
        (found,) = verify_edits([finding], config, builder.compare)
    return found.edits


def set_heads(heads, number):
    return Edit('Set the number of classes.', config=tuple((f'{head}.num_classes', number) for head in heads), number=1)


def test_a_question_whose_other_answer_breaks_the_program_has_the_advice():
    config = ReadConfig(dict(model=dict(a=1)))
    asks = Edit('first', question='Is it so?', config=(('model.a', 2),), number=1)
    other = Edit('second', config=(('model.a', 3),), number=2)
    finding = Finding('MG201', 'title', 'evidence', 'advice', 0.5, edits=(asks, other))

    def verify(before, after):
        return Verification(BROKEN if after.written['model']['a'] == 3 else VERIFIED)

    ((left,),) = [one.edits for one in verify_edits([finding], config, verify)]
    assert (left.number, left.if_not) == (1, finding.advice)


# ---- fewer outputs than the labels of the program need


@pytest.mark.parametrize(
    ('config', 'heads', 'few', 'enough'),
    [
        ('mmdet::faster_rcnn/faster-rcnn_r50_fpn_1x_coco.py', ('model.roi_head.bbox_head',), 9, 85),
        # The last label is the number of classes: the loss trains it as background and says nothing.
        ('mmdet::fcos/fcos_r50-caffe_fpn_gn-head_1x_coco.py', ('model.bbox_head',), 19, 90),
        ('mmseg::segformer/segformer_mit-b0_8xb2-160k_ade20k-512x512.py', ('model.decode_head',), 120, 160),
    ],
)
def test_heads_that_the_labels_do_not_fit(config, heads, few, enough):
    edits = verified(tree_of(config), set_heads(heads, few), set_heads(heads, enough))
    assert [edit.config[0][1] for edit in edits] == [enough]
    assert edits[0].verified is True


@pytest.mark.parametrize(
    ('config', 'heads'),
    [
        ('mmdet::retinanet/retinanet_r50_fpn_1x_coco.py', ('model.bbox_head',)),
        ('mmdet::faster_rcnn/faster-rcnn_r50_fpn_1x_coco.py', ('model.roi_head.bbox_head',)),
        ('mmdet::yolox/yolox_s_8xb8-300e_coco.py', ('model.bbox_head',)),
    ],
)
def test_labels_are_known_where_a_step_cannot_be_built(config, heads):
    tree = tree_of(config)
    tree['custom_imports'] = dict(imports=['own_datasets'])
    tree['train_dataloader']['dataset']['pipeline'].append(dict(type='NeedsPackage'))
    edits = verified(tree, set_heads(heads, 13), set_heads(heads, 80))
    assert [edit.config[0][1] for edit in edits] == [80]


# ---- losses


@pytest.mark.parametrize(
    ('config', 'path', 'wrong', 'right'),
    [
        (
            'mmseg::segformer/segformer_mit-b0_8xb2-160k_ade20k-512x512.py',
            'model.decode_head.loss_decode',
            dict(type='CrossEntropyLoss', class_weight=[1.0] * 140),
            dict(type='CrossEntropyLoss', avg_non_ignore=True),
        ),
        (
            'mmdet::retinanet/retinanet_r50_fpn_1x_coco.py',
            'model.bbox_head.loss_cls',
            dict(type='FocalLoss', use_sigmoid=False),
            dict(type='FocalLoss', use_sigmoid=True, gamma=1.0),
        ),
        (
            'mmdet::faster_rcnn/faster-rcnn_r50_fpn_1x_coco.py',
            'model.roi_head.bbox_head.loss_cls',
            dict(type='CrossEntropyLoss', class_weight=[1.0] * 80),
            dict(type='CrossEntropyLoss', class_weight=[1.0] * 81),
        ),
    ],
)
def test_a_loss_that_does_not_fit(config, path, wrong, right):
    edits = [Edit('Set it.', config=((path, loss),)) for loss in (wrong, right)]
    assert [edit.config[0][1] for edit in verified(tree_of(config), *edits)] == [right]


# ---- arguments that the data set sets itself


@pytest.mark.parametrize(
    ('config', 'dataset', 'argument', 'is_here'),
    [
        ('mmseg::segformer/segformer_mit-b0_8xb2-160k_ade20k-512x512.py', 'SetsReduceZero', 'reduce_zero_label', True),
        ('mmdet::retinanet/retinanet_r50_fpn_1x_coco.py', 'SetsFilter', 'filter_cfg', True),
        ('mmdet::fcos/fcos_r50-caffe_fpn_gn-head_1x_coco.py', 'SetsSeed', 'serialize_data', True),
        ('mmdet::retinanet/retinanet_r50_fpn_1x_coco.py', 'SetsFilter', 'filter_cfg', False),
    ],
)
def test_an_argument_that_the_class_passes_itself(config, dataset, argument, is_here):
    tree = tree_of(config)
    tree['custom_imports'] = dict(imports=['own_datasets'])
    node = tree['train_dataloader']['dataset']
    node.update(dict(type=dataset) if is_here else dict(type=dataset, data_root='/nowhere'))
    node.pop(argument, None)
    value = {'reduce_zero_label': True, 'filter_cfg': None, 'serialize_data': False}[argument]
    edit = Edit('Set it.', config=((f'train_dataloader.dataset.{argument}', value),), number=1)
    other = Edit('Set the size.', config=(('train_dataloader.dataset.indices', 2),), number=2)
    (left,) = verified(tree, edit, other)
    assert (left.number, left.verified, not left.doubt) == (2, is_here, is_here)


def test_numbers_stay_and_what_is_no_config_is_not_built():
    files = Edit('Renumber.', files={'a.json': {'to': 1}}, config=(('train_dataloader', None),), verified=True)
    lines = Edit('Write it.', lines=('x = 1',), number=2)
    names = Edit('List your names.', is_manual=True, config=(('train_dataloader.dataset', {}),), number=3)
    left = verified({'train_dataloader': {}}, files, lines, names)
    assert [(edit.number, edit.verified) for edit in left] == [(0, True), (2, None), (3, False)]


# ---- the command


@pytest.fixture
def broken_edit(tmp_path, monkeypatch):
    """Return a config with two edits: of a data set that passes the argument itself, and of the number of classes."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(own_datasets.__file__, tmp_path)
    tree = tree_of('mmseg::segformer/segformer_mit-b0_8xb2-160k_ade20k-512x512.py')
    tree['custom_imports'] = dict(imports=['own_datasets'])
    for split in ('train', 'val', 'test'):
        node = tree[f'{split}_dataloader']['dataset']
        node['type'] = 'SetsReduceZero'
        del node['reduce_zero_label']
    tree['model']['decode_head']['num_classes'] = 160
    return write_config(tmp_path, tree)


def edits_of(*words):
    main([*words, '--json', 'found.json'])
    with open('found.json', encoding='utf-8') as file:
        record = json.load(file)
    findings = [one for part in record.get('datasets', [record]) for one in part['findings']]
    return {edit['number']: edit for one in findings for edit in one['edits'] if edit['config']}


@pytest.mark.parametrize('command', ['check', 'scan'])
def test_commands_offer_only_what_breaks_nothing(broken_edit, command, capsys):
    left_out, offered = edits_of(command, broken_edit, '--no-verify'), edits_of(command, broken_edit)
    broken = {
        number for number, edit in left_out.items() if any('reduce_zero_label' in path for path in edit['config'])
    }
    assert broken or command == 'scan'  # which offers no edit there
    assert set(offered) == set(left_out) - broken
    assert {edit['verified'] for edit in left_out.values()} == {False}
    assert all(edit['doubt'] for edit in left_out.values())
    assert [(edit['verified'], edit['doubt']) for edit in offered.values()] == [(True, '')] * len(offered)


def test_apply_writes_only_what_breaks_nothing(broken_edit, capsys):
    left_out = edits_of('check', broken_edit, '--no-verify')
    broken = next(n for n, edit in left_out.items() if any('reduce_zero_label' in path for path in edit['config']))
    right = next(n for n, edit in left_out.items() if not any('reduce_zero_label' in path for path in edit['config']))
    apply = ['apply', broken_edit, '-o', 'out.py', '--edit']
    assert main([*apply, str(broken)]) == 2
    assert not os.path.exists('out.py')
    assert main([*apply, str(broken), '--no-verify']) == 0
    assert main([*apply, str(right), '--force']) == 0


@pytest.mark.parametrize('takes_steps', [True, False])
def test_what_is_verified_is_what_is_written(takes_steps, broken_edit, capsys):
    """With the guards, whose step this data set does not take."""
    if not takes_steps:
        tree = Config.fromfile(broken_edit).to_dict()
        node = tree['train_dataloader']['dataset']
        node.update(type='TakesNoStep', steps=len(node['pipeline']))
        broken_edit = write_config(Path(broken_edit).parent, tree)
    edits = edits_of('check', broken_edit, '--no-verify')
    right = next(n for n, edit in edits.items() if not any('reduce_zero_label' in path for path in edit['config']))
    apply = ['apply', broken_edit, '--edit', str(right), '-o']
    assert main([*apply, 'edited.py']) == 0
    assert main([*apply, 'guarded.py', '--guard']) == (0 if takes_steps else 2)
    assert os.path.exists('guarded.py') is takes_steps
