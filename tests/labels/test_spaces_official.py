"""Every config that ships with mmseg and mmdet: one answer from the config, the built model, and each tool.

One config of each folder here, all of them in every_official_config.py, which `make test-edits` runs. Models are built
on the meta device, with a small backbone: no head asks which one it is.
"""

from __future__ import annotations

import copy
import warnings
from pathlib import Path
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

import pytest

pytest.importorskip('mmseg')
pytest.importorskip('mmdet')

import mmdet.datasets  # noqa: F401 - a model may have a preprocessor from there
import torch
from mmengine.config import Config, ConfigDict
from mmengine.registry import MODELS, init_default_scope

from benchmarks.official_configs import shipped_configs
from mmguard.config.agreement import find_ignored_labels, find_leading
from mmguard.config.guarded_pipelines import guard_pipelines
from mmguard.config.guards import guard_tree
from mmguard.config.parts import GUARD_KINDS, find_heads, from_config, walk
from mmguard.config.read import ReadConfig, from_mmengine, read_config
from mmguard.findings.rules.config.guards import GuardNumClasses
from mmguard.labels.spaces import LabelSpaces, from_loss, from_model, from_options, split_path

#: Models that cannot be built here, by what they need; their heads are read from the config alone.
NOT_BUILT = {
    'boxinst/': 'skimage',
    'glip/': 'transformers',
    'grounding_dino/': 'transformers',
    'misc/d2_': 'detectron2',
    'reid/': 'mmpretrain',
    'cascade_rpn/cascade-rpn_r50': 'num_classes of its head, which the config does not write',
}
#: The backbone of a small model is a ResNet, but for those whose neck or head needs their own.
OWN_BACKBONES = ('TridentResNet',)
#: These build what meta tensors cannot: they draw depths of dropout from a tensor.
ON_CPU = ('san/', 'segmenter/')

#: By what the losses of these do with a label; tests/labels/test_spaces.py runs some of them. Pixels, instances.
KNOWN = {
    'mmseg/pspnet/pspnet_r50-d8_4xb2-40k_cityscapes-512x1024.py': (19, None),
    'mmseg/stdc/stdc1_4xb12-80k_cityscapes-512x1024.py': (19, None),
    'mmseg/maskformer/maskformer_r50-d32_8xb2-160k_ade20k-512x512.py': (150, None),
    'mmseg/mask2former/mask2former_r50_8xb2-90k_cityscapes-512x1024.py': (19, None),
    'mmseg/knet/knet-s3_r50-d8_fcn_8xb2-adamw-80k_ade20k-512x512.py': (150, None),
    'mmseg/vpd/vpd_sd_4xb8-25k_nyu-480x480.py': (None, None),
    'mmdet/panoptic_fpn/panoptic-fpn_r50_fpn_1x_coco.py': (133, 80),
    'mmdet/maskformer/maskformer_r50_ms-16xb1-75e_coco.py': (133, 80),
    'mmdet/mask2former/mask2former_r50_8xb2-lsj-50e_coco-panoptic.py': (133, 80),
    'mmdet/mask2former/mask2former_r50_8xb2-lsj-50e_coco.py': (None, 80),
    'mmdet/mask2former_vis/mask2former_r50_8xb2-8e_youtubevis2021.py': (None, 40),
    'mmdet/htc/htc_r50_fpn_1x_coco.py': (183, 80),
    'mmdet/htc/htc-without-semantic_r50_fpn_1x_coco.py': (None, 80),
    'mmdet/scnet/scnet_r50_fpn_1x_coco.py': (183, 80),
    'mmdet/rpn/rpn_r50_fpn_1x_coco.py': (None, 80),
    'mmdet/faster_rcnn/faster-rcnn_r50_fpn_1x_coco.py': (None, 80),
    'mmdet/qdtrack/qdtrack_faster-rcnn_r50_fpn_8xb2-4e_mot17halftrain_test-mot17halfval.py': (None, 1),
    'mmdet/soft_teacher/soft-teacher_faster-rcnn_r50-caffe_fpn_180k_semi-0.1-coco.py': (None, 80),
    'mmdet/seesaw_loss/mask-rcnn_r50_fpn_seesaw-loss_random-ms-2x_lvis-v1.py': (None, 1203),
    'mmdet/mm_grounding_dino/coco/grounding_dino_swin-t_finetune_16xb4_1x_coco.py': (None, 80),
    'mmdet/mm_grounding_dino/grounding_dino_swin-t_pretrain_obj365.py': (None, None),
    'mmdet/reid/reid_r50_8xb32-6e_mot15train80_test-mot15val20.py': (None, None),
}


class Official(NamedTuple):
    """A config: its name, what it says, the root of the installed frameworks."""

    name: str
    read: ReadConfig
    root: str


def load(wanted: List[Tuple[str, Path]]) -> Iterator[Official]:
    for root, file in wanted:
        try:
            read = read_config(str(file))
        except Exception:  # a base that is not in the wheel; the test of `check` counts those
            continue
        if '_base_' not in file.parts and 'type' in read.part('model'):
            yield Official(str(file.relative_to(root)).replace('.mim/configs/', ''), read, root)


def one_of_each_folder() -> List[Tuple[str, Path]]:
    known = {name.rpartition('/')[2] for name in KNOWN}
    first: Dict[Path, Tuple[str, Path]] = {}
    for root, file in shipped_configs():
        first.setdefault(file.parent if file.name not in known else file, (root, file))
    return list(first.values())


def numbers(spaces: LabelSpaces) -> Tuple[Any, ...]:
    pixels, instances = spaces.pixels, spaces.instances
    return (
        None if pixels is None else pixels.num_classes,
        None if pixels is None else pixels.ignore_index,
        None if instances is None else instances.num_classes,
    )


def family(read: ReadConfig) -> Tuple[Any, ...]:
    parts = frozenset(('.'.join(split_path(head.path)), head.name) for head in find_heads(read))
    return read.scope, read.part('model')['type'], parts


def small(node: Any, scope: str) -> Any:
    """A model that is trained on the same labels: with a small backbone, without weights, trackers and the like."""
    if isinstance(node, (list, tuple)):
        return type(node)(small(value, scope) for value in node)
    if not isinstance(node, dict):
        return 'BN' if node == 'MMSyncBN' else node  # it asks a process group
    built = {}
    for key, value in node.items():
        if key == 'backbone' and value.get('type') not in OWN_BACKBONES:
            value = dict(type=f'{scope}.ResNet', depth=18)
        built[key] = None if key in ('init_cfg', 'pretrained', 'teacher_ckpt') else small(value, scope)
    return built


def build(official: Official, monkeypatch: pytest.MonkeyPatch) -> Any:
    read = official.read
    model = read.part('model')
    if isinstance(model.get('tracker'), dict):  # it needs packages of its own, and sees no label
        model = model['detector']
    monkeypatch.chdir(Path(official.root) / read.scope / '.mim')  # distillation names the config of its teacher
    init_default_scope(read.scope)
    device = 'cpu' if any(part in official.name for part in ON_CPU) else 'meta'
    with warnings.catch_warnings(), torch.device(device):
        warnings.simplefilter('ignore')
        return MODELS.build(ConfigDict(small(model, read.scope)))


def heads_of(spaces: LabelSpaces) -> Set[Tuple[Any, ...]]:
    """Head -> what it takes; heads that a model makes of one part count once."""
    outer = ('model', 'detector', 'student')
    return {
        ('.'.join(n for n in split_path(s.place.partition(' ')[0]) if n not in outer), s.num_classes, s.ignore_index)
        for s in spaces.heads
    }


def check_model(official: Official, model: Any) -> None:
    said = from_config(official.read)
    built = from_model(model, said.names)
    assert numbers(built) == numbers(said), official.name
    assert heads_of(said) <= heads_of(built), official.name
    for name, module in model.named_modules():  # what a guarded loss there would name the files by
        if split_path(name) and 'loss' in split_path(name)[-1]:
            for kind, space in from_loss(model, name).items():
                allowed = {head.num_classes for head in built.heads if head.kind == kind}
                assert space.num_classes in allowed, (official.name, name, type(module))


def guards_in(tree: Any) -> Iterator[Tuple[str, Dict[str, Any]]]:
    for split in ('train', 'val', 'test'):
        for _, node in walk(tree.get(f'{split}_dataloader'), ''):
            kind = GUARD_KINDS.get(str(node.get('type')).rpartition('.')[2])
            if kind is not None:
                yield kind, node


def check_guards(official: Official, tree: Dict[str, Any]) -> None:
    """What `apply` writes is what `check` wants."""
    spaces = from_config(official.read)
    for kind, guard in guards_in(tree):
        space = spaces.get(kind)
        assert guard['num_classes'] == space.num_classes, official.name
        assert kind == 'instances' or guard.get('ignore_index', 255) == space.ignore_index, official.name
    assert list(GuardNumClasses().look(ReadConfig(tree))) == []


def check_tools(official: Official) -> None:
    read, said = official.read, from_config(official.read)
    if official.name in KNOWN:
        pixels, _, instances = numbers(said)
        assert (pixels, instances) == KNOWN[official.name], official.name
    assert said.find_disagreeing('pixels') == said.find_disagreeing('instances') == [], official.name
    # As `trace` asks, and `replay` where it builds no model.
    loaded = from_mmengine(Config(copy.deepcopy(read.data)))
    assert numbers(from_options(None, None, from_config(loaded, 'train'))) == numbers(said), official.name
    # The places that `check` holds against each other follow the same head.
    place = find_leading(read, find_ignored_labels(read))
    assert place is None or (said.pixels is not None and place.value == said.pixels.ignore_index), official.name
    tree = copy.deepcopy(read.data)
    guard_pipelines(tree, said)
    check_guards(official, tree)


def not_built(official: Official) -> Optional[str]:
    return next((what for part, what in NOT_BUILT.items() if part in official.name), None)


def check_models(configs: List[Official], monkeypatch: pytest.MonkeyPatch) -> int:
    """One of each family, as many as are returned."""
    families: Set[Tuple[Any, ...]] = set()
    for official in configs:
        kind = family(official.read)
        if kind not in families and not_built(official) is None:
            check_model(official, build(official, monkeypatch))
            families.add(kind)
    return len(families)


def test_one_answer_for_a_config_of_each_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    configs = list(load(one_of_each_folder()))
    assert {official.name for official in configs} >= set(KNOWN)
    for official in configs:
        check_tools(official)
        check_guards(official, guard_tree(official.read.data).tree)
    assert check_models(configs[::2], monkeypatch) > 50  # seconds; every_official_config.py builds all families
