"""Classifiers of mmpretrain through their Runner, with labels that the head does not know: stock beside guarded."""

from __future__ import annotations

import math
import os.path as osp
import traceback
from pathlib import Path
from typing import Any, Dict, List

import mmcv
import mmpretrain.models
import mmrotate.models
import pytest
import torch
from mmpretrain.registry import MODELS
from mmpretrain_configs import ROOT, check, guards, one_of_each_folder
from mmyolo.registry import MODELS as YOLO_MODELS
from small_cls import BATCH, CLASSES, IMAGES, PLANTED, cls_config, make_multi, make_single, name_of
from small_runs import Run, train

from mmguard import LabelGuardError, guard_config
from mmguard.cli import main
from mmguard.config.label_spaces import from_config
from mmguard.config.read import from_mmengine, load_config
from mmguard.labels.heads import from_loss, from_model
from mmguard.tools.apply.guarded import build_tree, guard_tree

MIXED = [dict(type='Mixup', alpha=0.8), dict(type='CutMix', alpha=1.0)]
MULTI = dict(type='MultiLabelDataset', ann_file='train.json')
SMOOTHED = dict(type='LinearClsHead', loss=dict(type='LabelSmoothLoss', label_smooth_val=0.1))
SIGMOID = dict(type='LinearClsHead', loss=dict(type='CrossEntropyLoss', use_sigmoid=True))
#: Head, what mixes images, how stock dies: of the label as an index, of an assert, of a one-hot encoding.
SINGLE = {
    'cross entropy': (None, (), IndexError),
    'smoothed': (SMOOTHED, (), AssertionError),
    'mixed': (None, MIXED, RuntimeError),
    'mixed and smoothed': (SMOOTHED, MIXED, RuntimeError),
    'mixed, a sigmoid per class': (SIGMOID, MIXED, RuntimeError),
}


def expected() -> List[Dict[str, Any]]:
    """What the log must say, from what was planted alone."""
    return [
        {
            'source': f'images/{name_of(number)}',
            'skipped': 1,
            'remapped': 0,
            'values': {str(value): 1},
            'kind': 'instances',
        }
        for number, value in PLANTED.items()
    ]


def logged(run: Run) -> List[Dict[str, Any]]:
    samples = (sample for line in run.lines() for sample in line['samples'])
    return [{key: value for key, value in sample.items() if key in expected()[0]} for sample in samples]


def losses(run: Run) -> List[float]:
    return [scalars['loss'] for scalars in run.scalars if 'loss' in scalars]


def totals(run: Run) -> Dict[str, Any]:
    return run.modes['train']['totals']


@pytest.mark.parametrize(('head', 'augments', 'death'), SINGLE.values(), ids=SINGLE)
def test_stock_dies_and_guarded_trains_and_names_the_files(
    head: Any, augments: Any, death: type, tmp_path: Path
) -> None:
    root = make_single(tmp_path / 'data')
    with pytest.raises(death):
        train(cls_config(root, tmp_path / 'stock', head, augments))
    run = train(guard_config(cls_config(root, tmp_path / 'guarded', head, augments)))
    assert run.runner.iter == IMAGES // BATCH
    assert logged(run) == expected()
    assert 'images/01.png' in run.guard_lines[0]
    assert totals(run)['instances']['total'] == IMAGES
    assert totals(run)['instances']['skipped'] == len(PLANTED)
    assert all(count['skipped'] == 0 for count in totals(run)['losses'].values()), 'nothing is counted twice'
    assert all(map(math.isfinite, losses(run)))


def test_several_labels_of_an_image(tmp_path: Path) -> None:
    root = make_multi(tmp_path / 'data')
    head = dict(type='MultiLabelLinearClsHead')
    with pytest.raises(RuntimeError):
        train(cls_config(root, tmp_path / 'stock', head, dataset=MULTI))
    run = train(guard_config(cls_config(root, tmp_path / 'guarded', head, dataset=MULTI)))
    assert logged(run) == expected()
    assert totals(run)['instances']['total'] == 2 * IMAGES + len(PLANTED)


def test_an_image_without_a_label_counts_in_the_stock_average(tmp_path: Path) -> None:
    """-100 is a label that PyTorch leaves out: stock trains on, with a loss that is too small by the share of them."""
    root = make_single(tmp_path / 'data', dict.fromkeys((0, 1, 2, 4, 5, 6, 8, 9, 10), -100))
    stock = train(cls_config(root, tmp_path / 'stock'))
    guarded = train(guard_config(cls_config(root, tmp_path / 'guarded')))
    assert losses(guarded)[0] == pytest.approx(BATCH * losses(stock)[0], rel=1e-4)


def test_a_guarded_loss_alone_names_the_files(tmp_path: Path) -> None:
    config = guard_config(cls_config(make_single(tmp_path / 'data'), tmp_path / 'run'))
    config.train_dataloader.dataset.pipeline.pop()
    run = train(config)
    samples = [sample for line in run.lines() for sample in line['loss_samples']]
    assert [sample['source'] for sample in samples] == [sample['source'] for sample in expected()]
    assert totals(run)['losses']['head.loss_module']['skipped'] == len(PLANTED)


def test_clean_labels_train_as_without_guards(tmp_path: Path) -> None:
    root = make_single(tmp_path / 'data', {})
    for augments in ((), MIXED):
        stock = train(cls_config(root, tmp_path / f'stock{len(augments)}', augments=augments))
        guarded = train(guard_config(cls_config(root, tmp_path / f'guarded{len(augments)}', augments=augments)))
        assert losses(guarded) == pytest.approx(losses(stock), rel=1e-6)
        for name, weight in stock.runner.model.state_dict().items():
            torch.testing.assert_close(guarded.runner.model.state_dict()[name], weight)
        assert totals(guarded)['instances'] == {**totals(guarded)['instances'], 'total': IMAGES, 'skipped': 0}


@pytest.mark.parametrize('augments', [(), MIXED], ids=['plain', 'mixed'])
def test_a_validation_counts_such_an_image_as_wrong_and_reports_it(augments: Any, tmp_path: Path) -> None:
    config = cls_config(make_single(tmp_path / 'data'), tmp_path / 'run', augments=augments, validate=True)
    run = train(guard_config(config))
    assert [sample['source'] for line in run.lines('val') for sample in line['samples']] == [
        sample['source'] for sample in expected()
    ]
    (top1,) = [scalars['accuracy/top1'] for scalars in run.scalars if 'accuracy/top1' in scalars]
    assert top1 <= 100 * (IMAGES - len(PLANTED)) / IMAGES


def test_raise_names_the_file(tmp_path: Path) -> None:
    config = guard_config(cls_config(make_single(tmp_path / 'data'), tmp_path / 'run'))
    config.train_dataloader.dataset.pipeline[-1].on_invalid = 'raise'
    with pytest.raises(LabelGuardError, match=rf'images/01\.png: .*0\.\.{len(CLASSES) - 1}'):
        train(config)


@pytest.mark.parametrize('head', [SMOOTHED, None], ids=['asserted', 'one-hot'])
def test_explain_knows_how_stock_dies(head: Any, tmp_path: Path, capsys: Any) -> None:
    root = make_single(tmp_path / 'data')
    with pytest.raises((AssertionError, RuntimeError)) as death:
        train(cls_config(root, tmp_path / 'stock', head, () if head else MIXED))
    log = tmp_path / 'traceback.txt'
    log.write_text(''.join(traceback.format_exception(death.type, death.value, death.tb)), encoding='utf-8')
    capsys.readouterr()
    main(['explain', str(log)])
    text = capsys.readouterr().out
    assert all(named in text for named in ('MG407', 'GuardClsLabels', 'PackInputs'))


#: A head, a loss, a mixing of images or a model of each kind -> the arguments of the guard of its training.
KINDS = {
    'resnet/resnet50_8xb32_in1k.py': {'num_classes': 1000},
    'resnet/resnet50_8xb16-mixup_cifar10.py': {'num_classes': 10, 'multi_label': True, 'to_onehot': True},
    'resnet/resnet50_8xb256-rsb-a1-600e_in1k.py': {'num_classes': 1000, 'to_onehot': True},
    'vision_transformer/vit-base-p16_64xb64_in1k.py': {'num_classes': 1000, 'to_onehot': True},
    'csra/resnet101-csra_1xb16_voc07-448px.py': {'num_classes': 20, 'multi_label': True, 'to_onehot': True},
    'vgg/vgg16_8xb16_voc.py': {'num_classes': 20, 'multi_label': True, 'to_onehot': True},
    'vgg/vgg11_8xb32_in1k.py': {'num_classes': 1000},
    'arcface/resnet50-arcface_8xb32_inshop.py': None,
    'conformer/conformer-tiny-p16_8xb128_in1k.py': {'num_classes': 1000, 'to_onehot': True},
    'lenet/lenet5_mnist.py': {'num_classes': 10},
    'mae/mae_vit-base-p16_8xb512-amp-coslr-300e_in1k.py': None,
    'mocov2/mocov2_resnet50_8xb32-coslr-200e_in1k.py': None,
    'blip/blip-base_8xb32_retrieval.py': None,
    'clip/clip_vit-base-p16_zeroshot-cls_cifar100.py': None,
}
BUILT = ('resnet/resnet18_8xb32_in1k.py', 'resnet/resnet18_8xb16_cifar10.py', 'lenet/lenet5_mnist.py')


def test_the_guard_of_each_kind() -> None:
    for name, arguments in KINDS.items():
        tree = guard_tree(build_tree(load_config(osp.join(ROOT, name)))).tree
        wanted = [arguments] if arguments else []
        of_training = list(guards(tree.get('train_dataloader')))
        assert [{k: v for k, v in guard.items() if k != 'type'} for guard in of_training] == wanted


@pytest.mark.parametrize('name', BUILT)
def test_the_model_says_the_same_as_its_config(name: str) -> None:
    read = from_mmengine(load_config(osp.join(ROOT, name)))
    said = from_config(read)
    model = MODELS.build(read.data['model'])
    built = from_model(model, said.names)
    assert said.instances is not None
    assert built.instances is not None
    assert built.instances.num_classes == said.instances.num_classes
    of_its_loss = [space.num_classes for space in from_loss(model, 'head.loss_module').values()]
    is_bare = 'lenet' in name  # its backbone classifies
    assert of_its_loss == ([] if is_bare else [said.instances.num_classes])


def test_one_config_of_each_folder() -> None:
    assert sum(map(check, one_of_each_folder())) >= 105


@pytest.mark.parametrize('classifier', ['ArcFaceClsHead', 'LinearClsHead'])
def test_retrieval_is_left_and_named(classifier: str) -> None:
    tree = build_tree(load_config(osp.join(ROOT, 'arcface/resnet50-arcface_8xb32_inshop.py')))
    tree['model']['head']['type'] = classifier
    guarded = guard_tree(tree)
    assert list(guards(guarded.tree)) == []
    assert any(line.startswith('train_dataloader.dataset.pipeline: ') for line in guarded.left)
    said = [line for line in guarded.left if line.startswith('model.head.loss') and classifier in line]
    assert bool(said) == (classifier == 'ArcFaceClsHead')


def test_every_framework_registers_its_models_beside_the_others() -> None:
    assert mmcv.__version__ == '2.1.0', 'as it was before mmyolo was imported'
    assert 'YOLOv8Head' in YOLO_MODELS
    assert mmpretrain.models.MODELS.get('LinearClsHead')
    assert mmrotate.models.RotatedFCOSHead
