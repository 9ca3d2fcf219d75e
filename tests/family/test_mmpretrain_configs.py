"""A config of mmpretrain of each kind, and of each folder; all of them: every_mmpretrain_config.py."""

from __future__ import annotations

import os.path as osp

import pytest
from mmpretrain.registry import MODELS
from mmpretrain_configs import ROOT, check, guards, one_of_each_folder

from mmguard.config.label_spaces import from_config
from mmguard.config.load import load_config
from mmguard.config.read import from_mmengine
from mmguard.labels.spaces import from_model, of_loss
from mmguard.tools.apply.guarded import guard_tree, tree_of

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
        tree = guard_tree(tree_of(load_config(osp.join(ROOT, name)))).tree
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
    of_its_loss = [space.num_classes for space in of_loss(model, 'head.loss_module').values()]
    is_bare = 'lenet' in name  # its backbone classifies
    assert of_its_loss == ([] if is_bare else [said.instances.num_classes])


def test_one_config_of_each_folder() -> None:
    assert sum(map(check, one_of_each_folder())) >= 105


@pytest.mark.parametrize('classifier', ['ArcFaceClsHead', 'LinearClsHead'])
def test_retrieval_is_left_and_named(classifier: str) -> None:
    tree = tree_of(load_config(osp.join(ROOT, 'arcface/resnet50-arcface_8xb32_inshop.py')))
    tree['model']['head']['type'] = classifier
    guarded = guard_tree(tree)
    assert list(guards(guarded.tree)) == []
    assert any(line.startswith('train_dataloader.dataset.pipeline: ') for line in guarded.left)
    said = [line for line in guarded.left if line.startswith('model.head.loss') and classifier in line]
    assert bool(said) == (classifier == 'ArcFaceClsHead')
