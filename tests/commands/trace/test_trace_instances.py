"""Instances on their way through real transforms of mmdet."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any, Dict, List, Sequence, Tuple

import pytest
import torch
from mmengine.config import Config
from put_file import put
from small_det_data import coco_dataset, make_coco

from mmguard.cli import main
from mmguard.commands.trace.tracer import SampleTrace, Tracer
from mmguard.labels.instances import describe_boxes

LOAD = [dict(type='LoadImageFromFile'), dict(type='LoadAnnotations', with_bbox=True, with_mask=True)]
PACK = dict(type='PackDetInputs')
FLIP = dict(type='RandomFlip', prob=1.0)


@pytest.fixture(scope='module')
def coco(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Labels 80 and 82 are none of the head's 80 classes; image 7 has an invalid crowd."""
    return make_coco(str(tmp_path_factory.mktemp('coco')))


def config(root: str, pipeline: Sequence[Dict[str, Any]]) -> Config:
    model = dict(bbox_head=dict(type='BBoxHead', num_classes=80))
    loader = dict(dataset=coco_dataset(root, pipeline))
    return Config(dict(default_scope='mmdet', model=model, train_dataloader=loader))


def changes_of(traced: SampleTrace) -> List[Tuple[str, str, int]]:
    """``(step, what, label)`` of all changes of instances by steps."""
    return [
        (leg.name, change.what, change.value)
        for leg in traced.legs[1:]
        for change in leg.changes
        if change.kind == 'instances'
    ]


def trace(root: str, tail: Sequence[Dict[str, Any]], index: int) -> SampleTrace:
    return Tracer(config(root, [*LOAD, *tail])).trace(index)


@pytest.mark.parametrize('index', range(8))
def test_moving_every_instance_loses_none(coco: str, index: int) -> None:
    tail = [dict(type='Resize', scale=(150, 120), keep_ratio=False), FLIP, dict(type='Pad', size=(160, 160)), PACK]
    traced = trace(coco, tail, index)
    assert traced.error == ''
    assert changes_of(traced) == []
    first, last = traced.legs[0].after, traced.legs[-1].after
    assert first.labels == last.labels != {}


@pytest.mark.parametrize('on_invalid', ['ignore', 'drop', 'clip'])
def test_the_guard_is_named_for_what_it_takes_out(coco: str, on_invalid: str) -> None:
    guard = dict(type='GuardInstanceLabels', num_classes=80, on_invalid=on_invalid)
    for pipeline in ([FLIP, guard, PACK], [FLIP, PACK, guard]):  # unpacked and packed
        traced = trace(coco, pipeline, 3)
        found = changes_of(traced)
        assert found[-2:] == [('GuardInstanceLabels', 'vanishes', 80), ('GuardInstanceLabels', 'vanishes', 82)]
        assert found[:-2] == [('GuardInstanceLabels', 'appears', 79)] * (on_invalid == 'clip')
        assert {c.origin for leg in traced.legs[1:] for c in leg.changes} == {
            f'sanitized by GuardInstanceLabels: {on_invalid=}'
        }


def test_instances_cut_off_by_a_crop_vanish_there(coco: str) -> None:
    missing = 0
    for index in range(8):
        traced = trace(coco, [dict(type='RandomCrop', crop_size=(50, 50), allow_negative_crop=True), PACK], index)
        before, crop = traced.legs[2].after.labels, traced.legs[3]
        assert {change.what for change in crop.changes} <= {'vanishes', 'shrinks'}
        gone = sum(change.count for change in crop.changes)
        assert gone == sum(before.values()) - sum(crop.after.labels.values())
        missing += gone
    assert missing


def test_an_image_left_empty_is_reported(coco: str) -> None:
    traced = trace(coco, [dict(type='FilterAnnotations', min_gt_bbox_wh=(90, 90), keep_empty=True), PACK], 0)
    assert traced.error


def test_a_mosaic_names_the_images(coco: str) -> None:
    made = config(coco, [LOAD[0], dict(type='LoadAnnotations', with_bbox=True)])
    made.train_dataloader.dataset = dict(
        type='MultiImageMixDataset',
        dataset=made.train_dataloader.dataset.to_dict(),
        pipeline=[dict(type='Mosaic', img_scale=(96, 96)), PACK, dict(type='GuardInstanceLabels', num_classes=80)],
    )
    tracer, named = Tracer(made), 0
    for index in range(6):
        traced = tracer.trace(index)
        assert [leg.name for leg in traced.legs[-3:]] == ['Mosaic', 'PackDetInputs', 'GuardInstanceLabels']
        for change in traced.legs[3].changes:
            if change.what == 'appears' and change.value >= 80:
                named += Path(change.origin.split()[-1]).stem in {f'{n:012d}' for n in (1, 3, 4)}
    assert named >= 3


def test_standard_output_is_for_json_alone(coco: str, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """pycocotools prints what it does."""
    path = tmp_path / 'config.py'
    made = config(coco, [*LOAD, PACK])
    made.custom_imports = dict(imports=['mmguard'], allow_failed_imports=False)
    made.dump(str(path))
    assert main(['trace', str(path), '--sample', '3', '--json', '-']) == 1
    record = json.loads(capsys.readouterr().out)
    assert record['invalid'] == {'pixels': [], 'instances': [80, 82]}
    assert record['steps'][0]['labels'] == {'82': 1, '4': 1, '7': 1, '80': 1}


@pytest.fixture(scope='module', autouse=True)
def _register_faulty() -> None:
    from mmcv.transforms import BaseTransform
    from mmdet.registry import TRANSFORMS

    @TRANSFORMS.register_module(force=True)  # set up again where a worker returns to this file
    class BreakBoxes(BaseTransform):
        """Give all boxes these corners, in a part of the draws."""

        def __init__(self, corners: List[Any], prob: float = 1.0) -> None:
            self.corners, self.prob = corners, prob

        def transform(self, results: Dict[str, Any]) -> Dict[str, Any]:
            if self.prob == 1 or random.random() < self.prob:
                results['gt_bboxes'].tensor[:] = torch.tensor(list(map(float, self.corners)))
            return results

    @TRANSFORMS.register_module(force=True)  # set up again where a worker returns to this file
    class AddKeypoints(BaseTransform):
        def transform(self, results: Dict[str, Any]) -> Dict[str, Any]:
            return {**results, 'gt_keypoints': [[1, 2, 2]]}


def run(root: str, tail: Sequence[Dict[str, Any]], folder: Path, *args: str) -> Tuple[int, Dict[str, Any]]:
    """Return the exit code of `mmguard trace`, and its JSON; all labels are classes of the head."""
    made = config(root, [LOAD[0], dict(type='LoadAnnotations', with_bbox=True), *tail])
    made.model.bbox_head.num_classes = 83
    made.dump(str(folder / 'config.py'))
    code = main(['trace', str(folder / 'config.py'), '--json', str(folder / 'out.json'), *args])
    return code, json.loads((folder / 'out.json').read_text())


@pytest.mark.parametrize(
    ('corners', 'reason'),
    [
        ([0.0, 7.5, 0.0, 30.0], 'box_no_area'),
        ([12.0, 40.0, 31.0, 22.0], 'box_no_area'),
        ([5.0, 'nan', 9.0, 9.0], 'box_not_finite'),
        (['nan'] * 4, 'box_not_finite'),
        ([900.0, 3.0, 950.0, 60.0], 'box_outside'),
        ([3.0, -80.0, 20.0, -1.0], 'box_outside'),
    ],
)
def test_a_box_that_a_step_breaks_is_code_1(coco: str, corners: List[Any], reason: str, tmp_path: Path) -> None:
    code, record = run(coco, [FLIP, dict(type='BreakBoxes', corners=corners), PACK], tmp_path)
    assert code == 1
    (step,) = [step for step in record['steps'] if step['faults']]
    (what,) = describe_boxes({reason: 1})
    assert (step['step'], {fault['what'] for fault in step['faults']}) == ('BreakBoxes', {what})
    assert len(record['samples'][0]['mistakes']) == 1


def test_one_sample_of_a_random_pipeline_proves_little(coco: str, tmp_path: Path) -> None:
    broken = dict(type='BreakBoxes', corners=[4, 4, 4, 9], prob=0.1)
    assert run(coco, [broken, PACK], tmp_path)[0] == 0
    code, record = run(coco, [broken, PACK], tmp_path, '--samples', '40')
    mistaken = [one for one in record['samples'] if one['mistakes']]
    assert (code, len(record['samples']), record['random']) == (1, 40, True)
    assert 0 < len(mistaken) < 20
    assert len({one['sample'] for one in record['samples']}) == 8
    # The first is shown, and can be had again.
    again = run(coco, [broken, PACK], tmp_path, '--sample', str(record['sample']), '--seed', str(mistaken[0]['seed']))
    assert (again[0], again[1]['samples'], again[1]['steps']) == (1, mistaken[:1], record['steps'])
    code, record = run(coco, [broken, PACK], tmp_path, '--samples', '40', '--sample', '2')
    assert (code, {one['sample'] for one in record['samples']}) == (1, {2})


@pytest.mark.parametrize(
    ('tail', 'checked', 'not_checked', 'is_random'),
    [
        ([PACK], ['boxes', 'labels of instances'], [], False),
        ([dict(type='AddKeypoints')], ['boxes', 'labels of instances'], ['gt_keypoints'], False),
        ([dict(type='RandomFlip', prob=0.5), PACK], ['boxes', 'labels of instances'], [], True),
    ],
)
def test_only_what_was_checked_is_called_valid(
    coco: str, tail: List[Dict[str, Any]], checked: List[str], not_checked: List[str], is_random: bool, tmp_path: Path
) -> None:
    code, record = run(coco, tail, tmp_path)
    assert (code, record['checked'], record['not_checked'], record['random']) == (0, checked, not_checked, is_random)


def test_labels_without_a_number_of_classes_are_not_called_valid(coco: str, tmp_path: Path) -> None:
    made = config(coco, [LOAD[0], dict(type='LoadAnnotations', with_bbox=True)])
    made.pop('model')
    made.dump(str(tmp_path / 'config.py'))
    assert main(['trace', str(tmp_path / 'config.py'), '--json', str(tmp_path / 'out.json')]) == 0
    record = json.loads((tmp_path / 'out.json').read_text())
    assert record['checked'] == ['boxes']
    assert len(record['not_checked']) == 1


def test_a_box_of_voc_is_named_by_the_numbers_in_its_file(tmp_path: Path) -> None:
    from format_cases import NAMES, voc

    for name, content in voc().items():
        put(tmp_path / name, content.replace(b'<xmax>25</xmax>', b'<xmax>5</xmax>', 1))
    made = config(str(tmp_path), [*LOAD, PACK])
    made.train_dataloader.dataset = dict(
        type='XMLDataset',
        data_root=str(tmp_path),
        ann_file='ImageSets/Main/train.txt',
        data_prefix=dict(sub_data_root=''),
        metainfo=dict(classes=NAMES),
        pipeline=made.train_dataloader.dataset.pipeline,
    )
    first = Tracer(made, 'train', 0).trace(0).legs[0]
    assert [fault.where.partition(' at ')[2] for fault in first.faults] == ['(5, 5, 5, 20)']
