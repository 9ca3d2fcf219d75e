"""Masks of instances on their way: the step that empties, resizes or loses one is named, and no file is blamed."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Dict, List, Tuple

import pytest
from small_det_runs import make_coco
from test_trace_instances import FLIP, PACK, trace

from mmguard.labels.spaces import LabelSpaces
from mmguard.tools.trace.render import as_json
from mmguard.tools.trace.story import Story


@pytest.fixture(scope='module')
def corners(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Objects whose masks are a triangle in the lower right corner of their boxes."""
    root = make_coco(str(tmp_path_factory.mktemp('corners')))
    path = Path(root) / 'annotations/instances_train2017.json'
    data = json.loads(path.read_text(encoding='utf-8'))
    for one in data['annotations']:
        x, y, w, h = one['bbox']
        one['segmentation'] = [[x + w, y + h, x + w - 5, y + h, x + w, y + h - 5]]
        one['iscrowd'] = 0
    path.write_text(json.dumps(data), encoding='utf-8')
    return root


def faults(traced: Story) -> List[Tuple[str, str]]:
    return [(leg.name, fault) for leg in traced.legs for fault in leg.masks]


@pytest.fixture(scope='module', autouse=True)
def _register() -> None:
    from mmcv.transforms import BaseTransform
    from mmdet.registry import TRANSFORMS

    @TRANSFORMS.register_module()
    class LoseMask(BaseTransform):
        def transform(self, results: Dict[str, Any]) -> Dict[str, Any]:
            results['gt_masks'] = results['gt_masks'][[0]]
            return results

    @TRANSFORMS.register_module()
    class ResizeMasksAlone(BaseTransform):
        def transform(self, results: Dict[str, Any]) -> Dict[str, Any]:
            results['gt_masks'] = results['gt_masks'].resize((10, 20))
            return results


def test_masks_that_fit_are_not_mentioned(corners: str) -> None:
    tail = [dict(type='Resize', scale=(150, 120), keep_ratio=False), FLIP, dict(type='Pad', size=(160, 160)), PACK]
    for index in range(4):
        assert faults(trace(corners, tail, index)) == []


def test_a_crop_that_leaves_boxes_without_masks_is_named(corners: str) -> None:
    crop = dict(type='RandomCrop', crop_size=(50, 50), allow_negative_crop=True)
    found = [fault for index in range(8) for fault in faults(trace(corners, [crop, PACK], index))]
    assert {step for step, _ in found} == {'RandomCrop'}


def test_masks_of_another_size_and_number(corners: str) -> None:
    traced = trace(corners, [FLIP, dict(type='LoseMask')], 0)
    ((step, said),) = faults(traced)
    assert (step, re.findall(r'\d+', said)) == ('LoseMask', ['1', '2'])
    assert as_json(traced, LabelSpaces())['steps'][-1]['masks'] == [said]
    (step, said), *_ = faults(trace(corners, [dict(type='ResizeMasksAlone'), FLIP], 0))
    assert (step, re.findall(r'\d+', said)[:2]) == ('ResizeMasksAlone', ['10', '20'])


def test_an_empty_mask_of_the_file_is_seen_where_it_is_loaded(corners: str, tmp_path: Path) -> None:
    root = make_coco(str(tmp_path))
    path = Path(root) / 'annotations/instances_train2017.json'
    data = json.loads(path.read_text(encoding='utf-8'))
    for one in data['annotations']:
        one['segmentation'], one['iscrowd'] = [[5, 5, 5, 5, 5, 5]], 0
    path.write_text(json.dumps(data), encoding='utf-8')
    traced = trace(root, [FLIP, PACK], 0)
    assert {step for step, _ in faults(traced)} == {'LoadAnnotations'}
