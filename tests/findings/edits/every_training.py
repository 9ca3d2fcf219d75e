"""Every edited config is trained for an iteration by its framework (`make test-edits`; not part of the daily suite)."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Dict, List, Optional, Tuple

import pytest
import torch
from around_files import config_around
from following import BUILDS, CODES, case_of, harm_of, scan, written
from mmcv.transforms import BaseTransform
from mmdet.registry import DATASETS as DET_DATASETS
from mmdet.registry import MODELS as DET_MODELS
from mmdet.registry import TRANSFORMS as DET_TRANSFORMS
from mmdet.structures.mask import BitmapMasks
from mmengine.config import Config
from mmengine.dataset import pseudo_collate
from mmengine.optim import OptimWrapper
from mmengine.registry import init_default_scope
from mmseg.registry import DATASETS as SEG_DATASETS
from mmseg.registry import MODELS as SEG_MODELS
from small_models import small_config, uses_ohem
from targets import Target, target_of, write_edited
from this_stack import is_here
from trained import heads_of, leaves, trained_on

import mmguard  # noqa: F401  # what custom_imports does for a config file

#: Samples of the one batch.
BATCH = 4


@DET_TRANSFORMS.register_module()
class MasksOfBoxes(BaseTransform):
    """The situations have boxes alone: a mask is what its box covers."""

    def transform(self, results: Dict[str, Any]) -> Dict[str, Any]:
        height, width = results['img_shape'][:2]
        boxes = results['gt_bboxes'].numpy().round().astype(int).clip(0)
        masks = torch.zeros(len(boxes), height, width, dtype=torch.uint8).numpy()
        for mask, (x1, y1, x2, y2) in zip(masks, boxes):
            mask[y1:y2, x1:x2] = 1
        results['gt_masks'] = BitmapMasks(masks, height, width)
        return results


@DET_TRANSFORMS.register_module()
class LabelsAreIds(BaseTransform):
    """As in a framework that takes ``category_id`` for the label."""

    def __init__(self, ids: List[int]) -> None:
        self.ids = torch.tensor(ids)

    def transform(self, results: Dict[str, Any]) -> Dict[str, Any]:
        results['gt_bboxes_labels'] = self.ids[torch.from_numpy(results['gt_bboxes_labels'])].numpy()
        return results


def trained(edited: Config, split: str) -> Tuple[Dict[str, float], int]:
    """The losses of one iteration, and how many labels it was given."""
    is_seg = edited.default_scope == 'mmseg'
    init_default_scope(edited.default_scope)
    data = edited[f'{split}_dataloader'].dataset
    for leaf in leaves(data):
        leaf.pipeline = _seg_steps(leaf.pipeline, edited.model) if is_seg else _det_steps(leaf.get('pipeline'), edited)
        leaf.pop('test_mode', None)
    torch.manual_seed(0)
    dataset = (SEG_DATASETS if is_seg else DET_DATASETS).build(data)
    samples = [dataset[place] for place in range(min(BATCH, len(dataset)))]
    small = small_config(edited).model
    if is_seg:  # photographs of several sizes make one batch
        sides = (max(one['inputs'].shape[side] for one in samples) for side in (1, 2))
        # PIDNet's branches meet where its six halvings leave nothing over.
        small.data_preprocessor.size = tuple(-(-side // 64) * 64 if uses_ohem(edited.model) else side for side in sides)
    model = (SEG_MODELS if is_seg else DET_MODELS).build(small)
    model.init_weights()
    model.train()
    optimizer = OptimWrapper(torch.optim.SGD(model.parameters(), lr=0.01))
    losses = model.train_step(pseudo_collate(samples), optimizer)
    return {name: float(value.detach()) for name, value in losses.items()}, sum(_taught(one, edited) for one in samples)


def _taught(sample: Any, edited: Config) -> int:
    labels = sample['data_samples']
    if edited.default_scope == 'mmdet':
        return len(labels.gt_instances)
    ignored = heads_of(edited.model)[0].get('ignore_index', 255)
    return int((labels.gt_sem_seg.data != ignored).sum())


def _seg_steps(pipeline: List[Any], model: Any) -> List[Any]:
    steps = [step for step in pipeline if 'Pack' not in str(step['type'])]
    if uses_ohem(model):  # PIDNet learns edges, too
        ignored = heads_of(model)[0].get('ignore_index', 255)
        steps.append(dict(type='GenerateEdge', edge_width=4, ignore_index=ignored))
    return [*steps, dict(type='PackSegInputs')]


def _det_steps(pipeline: Optional[List[Any]], edited: Config) -> List[Any]:
    ids = edited.get('labels_of_categories')
    guards = [step for step in pipeline or [] if 'Guard' in str(step['type'])]
    return [
        dict(type='LoadImageFromFile'),
        dict(type='LoadAnnotations', with_bbox=True),
        *([dict(type='LabelsAreIds', ids=ids)] if ids else []),
        dict(type='Resize', scale=(128, 96), keep_ratio=False),
        dict(type='MasksOfBoxes'),
        *guards,
        dict(type='PackDetInputs'),
    ]


#: Stock training of these raises before the edit: the small models bear what real ones do, and no more.
CRASHES = {
    'detection_configs: DETR: class_weight without no-object': AssertionError,
    'reports: mmsegmentation#3574': IndexError,
    'segmentation_configs: open-mmlab/mmsegmentation#1553': IndexError,
}


@pytest.mark.parametrize('name', [name for name in CRASHES if is_here(CODES[name])])
def test_what_crashes_is_seen_to_crash(name: str) -> None:
    with TemporaryDirectory() as folder, pytest.raises(CRASHES[name]):
        trained_on_files(target_of(BUILDS[name], Path(folder) / 'as_it_is'), Path(folder))


@pytest.mark.parametrize('name', [name for name in BUILDS if is_here(CODES[name])])
def test_what_was_edited_trains(name: str) -> None:
    case = case_of(name)
    code, followed = case.first.code, case.answered
    if followed is None:
        pytest.skip(f'{code}: nothing is wrong' if case.is_fine else f'{code}: no edit that a machine can write')
    with TemporaryDirectory() as folder:
        root = Path(folder)
        after = written(BUILDS[name], followed.edit, followed.root, root / 'edited')
        if followed.is_open:
            after = followed_on(after)
            before = target_of(BUILDS[name], root / 'before')
            there = trained_on(before.path, before.options)
            assert not harm_of(name, there, trained_on(after.path, after.options))
        losses, labels = trained_on_files(after, root)
    assert losses
    assert all(torch.isfinite(torch.tensor(value)) for value in losses.values()), f'{code}: {losses}'
    assert labels, f'{code}: there was nothing to train on'


def followed_on(target: Target) -> Target:
    """With what the scan says of errors that remain, as its reader would go on: at most two edits more."""
    for _ in range(2):
        errors = [finding for finding in scan(target).findings if finding.severity == 'error']
        edits = [edit for finding in errors for edit in finding.edits if edit.config]
        if edits and target.is_config:
            target = Target(write_edited(target.path, edits[0].config), target.options)
    return target


def trained_on_files(target: Target, root: Path) -> Tuple[Dict[str, float], int]:
    """Of a config, or of a stock one around files."""
    if target.is_config:
        return trained(Config.fromfile(str(target.path)), target.options['splits'][0])
    return trained(config_around(target, root), 'train')
