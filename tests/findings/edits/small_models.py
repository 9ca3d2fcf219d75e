"""Models of a few weights with the heads of an edited config: as many classes, the same ignored label and losses."""

from __future__ import annotations

import copy
from typing import Any, Dict, List, Mapping

from mmengine.config import Config, ConfigDict
from small_det_runs import load_stock, shrink_model
from small_runs import UNET, _shrink_mask2former, _without_sync
from this_stack import base_line
from trained import heads_of

#: What a decode head says about labels.
OF_LABELS = ('num_classes', 'out_channels', 'threshold', 'ignore_index', 'loss_decode', 'loss_cls')
#: And a head of a detector. The mask losses of the situations are none: mmdet's own stays.
OF_CLASSES = ('num_classes', 'num_things_classes', 'num_stuff_classes', 'loss_cls')
#: Where these stand.
DET_HEADS = ('bbox_head', 'roi_head.bbox_head', 'roi_head.mask_head', 'panoptic_head', 'panoptic_fusion_head')
#: The name of a detector -> the family of tests/small_det_runs.py that it is made of.
FAMILIES = dict(
    RetinaNet='retinanet', FasterRCNN='faster_rcnn', CascadeRCNN='faster_rcnn', DINO='dino', Mask2Former='mask2former'
)
SCALED = dict(mean=[127.5] * 3, std=[60.0] * 3)


def small_config(config: Config) -> Config:
    """An edited config with such a model, ready to be trained for an iteration."""
    small = copy.deepcopy(config)
    build = small_seg_model if config.default_scope == 'mmseg' else small_detector
    small.model = ConfigDict(build(config.model))
    _without_sync(small.model)
    return small


def _stock(name: str) -> ConfigDict:
    model = Config.fromstring(base_line(name), '.py').model
    model.init_cfg = None
    model.backbone.init_cfg = None
    return model


# ---- segmentation


def small_seg_model(model: Mapping[str, Any]) -> ConfigDict:
    """Mask2Former and PIDNet stay what they are; every other head becomes an FCNHead on a small UNet."""
    heads = heads_of(model)
    if heads[0]['type'] == 'Mask2FormerHead':
        small = _mask2former(heads[0])
    elif uses_ohem(model):
        small = _pidnet(heads[0])
    else:
        small = _unet(heads)
    preprocessor = dict(model.get('data_preprocessor') or dict(type='SegDataPreProcessor', seg_pad_val=255))
    small.data_preprocessor = {**preprocessor, **SCALED}
    small.test_cfg = dict(mode='whole')
    return small


def uses_ohem(model: Mapping[str, Any]) -> bool:
    """PIDHead alone takes OhemCrossEntropy: every other head gives it an argument that it does not know."""
    return any('OhemCrossEntropy' in str(head.get('loss_decode')) for head in heads_of(model))


def _said(head: Mapping[str, Any]) -> Dict[str, Any]:
    return {key: copy.deepcopy(head[key]) for key in OF_LABELS if key in head}


def _mask2former(head: Mapping[str, Any]) -> ConfigDict:
    small = _stock('mmseg::mask2former/mask2former_r50_8xb2-90k_cityscapes-512x1024.py')
    small.backbone.update(depth=18, base_channels=8, stem_channels=8)
    _shrink_mask2former(small.decode_head)
    _set(small.decode_head, _said(head))
    return small


def _pidnet(head: Mapping[str, Any]) -> ConfigDict:
    small = _stock('mmseg::pidnet/pidnet-s_2xb6-120k_1024x1024-cityscapes.py')
    small.backbone.update(channels=8, ppm_channels=8)
    said = _said(head)
    of_pixels, edges = dict(type='CrossEntropyLoss'), small.decode_head.loss_decode[2]
    if not isinstance(said['loss_decode'], (list, tuple)):  # PIDNet's own has four
        said['loss_decode'] = [of_pixels, said['loss_decode'], edges, copy.deepcopy(said['loss_decode'])]
    _set(small.decode_head, dict(in_channels=32, channels=16, **said))
    return small


def _unet(heads: List[Mapping[str, Any]]) -> ConfigDict:
    """Of two stages each sees the features, too."""
    norm = dict(type='BN')
    conv = dict(type='FCNHead', in_channels=4, in_index=1, channels=4, num_convs=1, concat_input=False, norm_cfg=norm)
    small = [{**conv, 'dropout_ratio': 0, **_said(head)} for head in heads]
    backbone = dict(UNET, norm_cfg=norm)
    return ConfigDict(type='EncoderDecoder', backbone=backbone, decode_head=small[0], auxiliary_head=small[1:] or None)


# ---- detection


def small_detector(model: Mapping[str, Any]) -> ConfigDict:
    """mmdet's own model of the same family, shrunk, with the number of classes and the losses of the heads.

    Raises:
        KeyError: No family is known for it.
    """
    kind = model['type']
    family = 'mask_rcnn' if 'mask_head' in model.get('roi_head', {}) else kind
    own = dict(DETR=_detr, SingleStageDetector=_ssd).get(kind)
    small = shrink_model(load_stock(FAMILIES.get(family, family))).model if own is None else own()
    if kind == 'CascadeRCNN':
        _in_stages(small, len(model['roi_head']['bbox_head']))
    small.data_preprocessor = dict(type='DetDataPreprocessor', pad_mask=True, pad_size_divisor=32, **SCALED)
    for path in DET_HEADS:
        for head, said in zip(_at(small, path), _at(model, path)):
            _set(head, {key: copy.deepcopy(said[key]) for key in OF_CLASSES if key in said})
    return small


def _at(node: Any, path: str) -> List[Any]:
    """The heads there: of a cascade several."""
    for name in path.split('.'):
        node = node.get(name) or {}
    return list(node) if isinstance(node, (list, tuple)) else [node] if node else []


def _set(head: ConfigDict, said: Mapping[str, Any]) -> None:
    """In the place of what was there: ``update`` would merge two losses."""
    for key, value in said.items():
        head[key] = value


def _in_stages(model: ConfigDict, number: int) -> None:
    """A Faster R-CNN as a cascade."""
    model.type = 'CascadeRCNN'
    heads = [copy.deepcopy(model.roi_head.bbox_head) for _ in range(number)]
    weights = [1.0] * number
    model.roi_head.update(type='CascadeRoIHead', num_stages=number, stage_loss_weights=weights, bbox_head=heads)
    model.train_cfg.rcnn = [copy.deepcopy(model.train_cfg.rcnn) for _ in range(number)]


def _detr() -> ConfigDict:
    # The 256 channels stay, as in DINO.
    small = _stock('mmdet::detr/detr_r50_8xb2-150e_coco.py')
    small.backbone.update(depth=18, base_channels=8, stem_channels=8)
    small.neck.in_channels = [64]
    small.num_queries = 20
    for part, layers in ((small.encoder, 1), (small.decoder, 2)):
        part.num_layers = layers
        part.layer_cfg.ffn_cfg.feedforward_channels = 32
    return small


def _ssd() -> ConfigDict:
    """Its head, which tells classes apart with a softmax, on the four levels of a small ResNet."""
    small = _stock('mmdet::ssd/ssd300_coco.py')
    levels = (8, 16, 32, 64)
    norm = dict(type='BN')
    small.backbone = dict(type='ResNet', depth=18, base_channels=8, stem_channels=8, norm_cfg=norm)
    small.neck = None
    small.bbox_head.in_channels = levels
    small.bbox_head.anchor_generator = dict(
        type='SSDAnchorGenerator',
        scale_major=False,
        input_size=128,
        strides=[4, 8, 16, 32],
        ratios=[[2]] * len(levels),
        min_sizes=[8, 16, 32, 64],
        max_sizes=[16, 32, 64, 96],
    )
    return small
