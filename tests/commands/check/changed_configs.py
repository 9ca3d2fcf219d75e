"""Official configs with one thing changed, and parts of such changes."""

from __future__ import annotations

import importlib.util
import re
from functools import lru_cache
from pathlib import Path
from typing import Any, Dict, List, Tuple

from mmguard.config.read import ReadConfig, read_config
from mmguard.findings.engine import diagnose, select_rules
from mmguard.findings.finding import Finding

PSPNET = 'mmseg/pspnet/pspnet_r50-d8_4xb2-40k_cityscapes-512x1024.py'
ADE20K = 'mmseg/pspnet/pspnet_r50-d8_4xb4-80k_ade20k-512x512.py'
PIDNET = 'mmseg/pidnet/pidnet-s_2xb6-120k_1024x1024-cityscapes.py'
SEG_MASK2FORMER = 'mmseg/mask2former/mask2former_r50_8xb2-90k_cityscapes-512x1024.py'
FASTER_RCNN = 'mmdet/faster_rcnn/faster-rcnn_r50_fpn_1x_coco.py'
FASTER_RCNN_VOC = 'mmdet/pascal_voc/faster-rcnn_r50_fpn_1x_voc0712.py'
FASTER_RCNN_CITYSCAPES = 'mmdet/cityscapes/faster-rcnn_r50_fpn_1x_cityscapes.py'
CASCADE = 'mmdet/cascade_rcnn/cascade-mask-rcnn_r50_fpn_1x_coco.py'
RETINANET = 'mmdet/retinanet/retinanet_r50_fpn_1x_coco.py'
DINO = 'mmdet/dino/dino-4scale_r50_8xb2-12e_coco.py'
INSTANCES = 'mmdet/mask2former/mask2former_r50_8xb2-lsj-50e_coco.py'
PANOPTIC = 'mmdet/mask2former/mask2former_r50_8xb2-lsj-50e_coco-panoptic.py'
PANOPTIC_FPN = 'mmdet/panoptic_fpn/panoptic-fpn_r50_fpn_1x_coco.py'
RTMDET = 'mmdet/rtmdet/rtmdet_s_8xb32-300e_coco.py'


def official_file(name: str) -> Path:
    """File of a config that ships in a wheel: ``mmseg/pspnet/....py``."""
    framework, inner = name.split('/', 1)
    spec = importlib.util.find_spec(framework)
    return Path(spec.origin).parent / '.mim' / 'configs' / inner


@lru_cache(maxsize=None)
def _read(name: str) -> ReadConfig:
    return read_config(str(official_file(name)))


def changed(name: str, changes: Dict[str, Any]) -> ReadConfig:
    """An official config with what stands at these paths replaced."""
    original = _read(name)
    data = _copied(original.written)
    for path, value in changes.items():
        *way, last = [int(step) if step.isdigit() else step for step in re.findall(r'[^.\[\]]+', path)]
        place: Any = data
        for step in way:
            place = place[step] if isinstance(step, int) else place.setdefault(step, {})
        place[last] = value
    return ReadConfig(data, original.file)


def _copied(value: Any) -> Any:
    # Not deepcopy: base files share their parts, and a change of one must not be a change of the other.
    if isinstance(value, dict):
        return {key: _copied(inner) for key, inner in value.items()}
    return [_copied(inner) for inner in value] if isinstance(value, list) else value


def found(config: ReadConfig) -> List[Finding]:
    return diagnose(config=config, rules=select_rules())


TRAIN = 'train_dataloader.dataset'
STEPS = f'{TRAIN}.pipeline'
LOAD = [dict(type='LoadImageFromFile'), dict(type='LoadAnnotations')]


def names(count: int) -> Tuple[str, ...]:
    return tuple(f'class{i}' for i in range(count))


def seg_guard(**arguments: Any) -> Dict[str, Any]:
    return dict(type='GuardSegLabels', **{'num_classes': 19, **arguments})


def pack(**arguments: Any) -> Dict[str, Any]:
    return dict(type='PackSegInputs', **arguments)


def train(*steps: Dict[str, Any]) -> Dict[str, Any]:
    """A training pipeline of these steps, after those that load."""
    return {STEPS: [*LOAD, *steps]}


def crops(**more: Any) -> Dict[str, Any]:
    """A training that keeps images without an object, and a crop that rejects them; new objects each time."""
    crop = dict(type='RandomCrop', crop_size=(64, 64), **more)
    return {f'{TRAIN}.filter_cfg': dict(filter_empty_gt=False), **train(crop)}
