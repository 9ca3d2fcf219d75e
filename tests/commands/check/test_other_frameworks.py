"""Backbones of MMPretrain are read as any other; configs of frameworks that are not guarded are refused as a whole."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict

import pytest
from changed_configs import official_file
from mmengine.config import Config
from small_runs import LOAD, PACK, make_cityscapes, runner_of, tiny_config
from torch import nn

from mmguard import guard_config
from mmguard.cli import main
from mmguard.commands.apply.guarded import build_tree
from mmguard.config.guards import guard_tree
from mmguard.config.read import load_config
from mmguard.hooks.guard_run import guard_model, guard_run

#: Config with ``custom_imports`` of mmpretrain.models and its ConvNeXt -> number of classes, where its heads set it.
CONVNEXT = {
    'mmseg/convnext/convnext-tiny_upernet_8xb2-amp-160k_ade20k-512x512.py': (150, 'decode_head'),
    'mmdet/convnext/mask-rcnn_convnext-t-p4-w7_fpn_amp-ms-crop-3x_coco.py': (80, 'roi_head.bbox_head'),
}
each_convnext = pytest.mark.parametrize('name', CONVNEXT)


def checked(file: Path, capsys: Any) -> Dict[str, Any]:
    main(['check', str(file), '--no-verify', '--json', '-'])
    return json.loads(capsys.readouterr().out)


@each_convnext
def test_a_config_with_a_backbone_of_mmpretrain_is_checked(name: str, tmp_path: Path, capsys: Any) -> None:
    assert checked(official_file(name), capsys)['findings'] == []
    classes, head = CONVNEXT[name]
    wrong = tmp_path / 'wrong.py'
    *outer, last = ['model', *head.split('.')]
    text = f'{last}=dict(num_classes={classes + 7})'
    for key in reversed(outer[1:]):
        text = f'{key}=dict({text})'
    wrong.write_text(f'_base_ = [{str(official_file(name))!r}]\nmodel = dict({text})\n')
    found = checked(wrong, capsys)['findings']
    assert [(one['code'], f'model.{head}.num_classes' in one['places']) for one in found] == [('MG201', True)]


@each_convnext
def test_a_config_with_a_backbone_of_mmpretrain_is_guarded(name: str) -> None:
    tree = build_tree(load_config(str(official_file(name)), import_custom_modules=False))
    guarded = guard_tree(tree)
    assert guarded.left == []
    assert guarded.tree['model']['backbone'] == tree['model']['backbone']
    assert guarded.tree['train_dataloader']['dataset']['pipeline'][-1]['num_classes'] == CONVNEXT[name][0]
    assert {'mmpretrain.models', 'mmguard'} == set(guarded.tree['custom_imports']['imports'])


def test_a_backbone_of_mmpretrain_is_data_in_yaml(tmp_path: Path, capsys: Any) -> None:
    file = tmp_path / 'config.yaml'
    backbone = {'type': 'mmpretrain.ConvNeXt', 'arch': 'tiny'}
    head = {'type': 'FCNHead', 'num_classes': 3, 'channels': 8, 'in_channels': 8}
    model = {'type': 'EncoderDecoder', 'backbone': backbone, 'decode_head': head}
    file.write_text(json.dumps({'default_scope': 'mmseg', 'model': model}))
    assert checked(file, capsys)['findings'] == []


def test_the_import_of_a_backbone_does_not_import_mmguard(tmp_path: Path, capsys: Any) -> None:
    file = tmp_path / 'config.py'
    base = str(official_file(next(iter(CONVNEXT))))
    file.write_text(f"_base_ = [{base!r}]\ncustom_hooks = [dict(type='LabelGuardHook', guard=True)]\n")
    assert 'MG250' in [one['code'] for one in checked(file, capsys)['findings']]


#: Scopes, of the whole config and in the type of its model.
UNGUARDED = [
    (dict(default_scope='mmyolo'), 'YOLODetector'),
    (dict(default_scope='mmrotate'), 'mmdet.RetinaNet'),
    (dict(default_scope='mmpretrain'), 'ImageClassifier'),
    (dict(default_scope='mmdet3d'), 'PointPillars'),
    (dict(), 'mmyolo.YOLODetector'),
    (dict(default_scope='mmdet'), 'mmpretrain.ImageClassifier'),
]


def unguarded_config(scope: Dict[str, str], model: str) -> Config:
    """A loss and a Pack transform of mmdet, which would be guarded in a config of mmdet."""
    head = dict(type='mmdet.RetinaHead', num_classes=3, loss_cls=dict(type='mmdet.CrossEntropyLoss', use_sigmoid=True))
    dataset = dict(type='mmdet.CocoDataset', data_prefix='train', pipeline=[dict(type='mmdet.PackDetInputs')])
    return Config(dict(**scope, model=dict(type=model, bbox_head=head), train_dataloader=dict(dataset=dataset)))


@pytest.mark.parametrize(('scope', 'model'), UNGUARDED)
def test_a_config_of_another_framework_is_refused_as_a_whole(
    scope: Dict[str, str], model: str, tmp_path: Path, capsys: Any
) -> None:
    config, file, out = unguarded_config(scope, model), tmp_path / 'config.py', tmp_path / 'out.py'
    name = next(one for one in (*scope.values(), model.partition('.')[0]) if one not in ('mmdet', ''))
    with pytest.warns(UserWarning, match=f'a config of {name}'):
        assert guard_config(config).to_dict() == config.to_dict()
    config.dump(str(file))
    for command in (['check'], ['scan'], ['trace'], ['apply', '-o', str(out)]):
        assert main([*command, str(file)]) == 2
        assert f'a config of {name}' in capsys.readouterr().err
    assert not out.exists()


def test_a_run_of_another_framework_is_left_as_it_is(tmp_path: Path) -> None:
    root = make_cityscapes(str(tmp_path / 'data'))
    config = tiny_config(root, str(tmp_path / 'run'), pipeline=[*LOAD, PACK])
    config.model.decode_head.loss_decode = dict(type='CrossEntropyLoss')
    runner = runner_of(config)
    runner.cfg.default_scope = 'mmyolo'
    before = str(runner.model)
    changed, left = guard_run(runner)
    assert (changed, len(left), 'mmyolo' in left[0]) == ([], 1, True)
    assert str(runner.model) == before


def test_a_loss_of_mmpretrain_is_left_with_the_reason() -> None:
    loss = type('CrossEntropyLoss', (nn.Module,), {'__module__': 'mmpretrain.models.losses.cross_entropy_loss'})()
    changed, left = guard_model(nn.ModuleDict({'loss_module': loss}))
    assert changed == []
    assert 'mmpretrain.CrossEntropyLoss' in left[0]
    assert 'ignore_index' in left[0]
