"""Values planted at known steps by real transforms of mmseg and mmcv are traced to these steps."""

from __future__ import annotations

import os.path as osp
import random
import re
from collections import Counter
from pathlib import Path
from typing import Any, Dict, List, Optional

import numpy as np
import pytest
from mmengine.config import Config
from mmseg.datasets import CityscapesDataset
from mmseg.datasets.transforms import LoadAnnotations
from mmseg.registry import DATASETS, TRANSFORMS
from PIL import Image
from small_runs import GUARD, LOAD, NUM_CLASSES, PACK, PLANTED, dataset_config, label_map, write_pair

from mmguard.commands.samples import open_program
from mmguard.commands.trace.render import find_invalid, find_mistakes
from mmguard.commands.trace.tracer import SampleTrace, Tracer
from mmguard.errors import CannotRun
from mmguard.labels.spaces import from_options

#: Resizes the label map as if it were an image: what a hand-written pipeline does.
RESIZE_AS_IMAGE = dict(
    type='KeyMapper',
    mapping=dict(img='gt_seg_map'),
    auto_remap=True,
    transforms=[dict(type='Resize', scale=(100, 100), interpolation='bilinear')],
)


@DATASETS.register_module()
class CityscapesMappedWrongly(CityscapesDataset):
    """Maps a class out of the classes, and counts as if that were right."""

    @classmethod
    def get_label_map(cls, new_classes: Any = None) -> Optional[Dict[int, int]]:
        return {13: 40}


def config(root: str, pipeline: List[Dict[str, Any]], **dataset: Any) -> Config:
    return Config(
        dict(
            default_scope='mmseg',
            model=dict(decode_head=dict(type='FCNHead', num_classes=NUM_CLASSES)),
            train_dataloader=dict(dataset={**dataset_config(root, 'train', pipeline), **dataset}),
        )
    )


def story(root: str, middle: List[Dict[str, Any]], index: int = 1, **dataset: Any) -> SampleTrace:
    return Tracer(config(root, [*LOAD, *middle, PACK], **dataset)).trace(index)


def news(traced: SampleTrace, value: int) -> List[Any]:
    """``(step, change)`` of all steps that made a value."""
    return [(leg.name, change) for leg in traced.legs[1:] for change in leg.changes if change.makes == value]


def test_a_value_on_disk_is_there_before_any_step_and_no_step_made_it(cityscapes: str) -> None:
    traced = Tracer(config(cityscapes, [*LOAD, PACK, GUARD])).trace(2)
    assert traced.legs[0].name == 'disk'
    assert set(PLANTED[2]) <= set(traced.legs[0].after.values)
    assert set(PLANTED[2]) <= {change.makes for change in traced.legs[0].changes if change.origin == 'from disk'}
    for value in PLANTED[2]:
        assert news(traced, value) == []
        ((step, change),) = [(n, c) for n, c in news(traced, 255) if c.value == value]
        assert step == 'GuardSegLabels'
        assert change.count == traced.legs[0].after.values[value]
        assert "on_invalid='ignore'" in change.origin


def test_a_16_bit_value_that_the_loader_wraps_is_traced_to_the_loader(tmp_path: Path) -> None:
    label = label_map(0, ()).astype(np.uint16)
    label[20:30, 20:30] = 261
    stem = str(tmp_path / '{}/train/a_{}.png')
    image, path = stem.format('leftImg8bit', 'leftImg8bit'), stem.format('gtFine', 'gtFine_labelTrainIds')
    write_pair(image, path, label.astype(np.uint8), seed=0)
    Image.fromarray(label).save(path)
    traced = story(str(tmp_path), [], index=0)
    assert traced.legs[0].after.values[261] == 100
    ((step, change),) = news(traced, 5)
    assert (step, change.value, change.what, change.count) == ('LoadAnnotations', 261, 'becomes', 100)
    assert '256' in change.origin


@pytest.mark.parametrize('mapped', [False, True])
@pytest.mark.parametrize('shifted', [False, True])
def test_the_shift_of_a_loader_is_named_before_its_label_map(
    clean_cityscapes: str, mapped: bool, shifted: bool
) -> None:
    kind = 'CityscapesMappedWrongly' if mapped else 'CityscapesDataset'
    traced = story(clean_cityscapes, [], type=kind, reduce_zero_label=shifted)
    parts = ['reduce_zero_label'] * shifted + ['label_map'] * mapped
    for step, change in news(traced, 40 if mapped else 255):
        assert (step, change.value) == ('LoadAnnotations', 13 + shifted if mapped else 0)
        assert re.findall(r'\w+_label|label_map', change.origin) == parts
    became = {label: label for label in range(19)}
    if shifted:
        became = {0: 255, **{label: label - 1 for label in range(1, 19)}}
    became = {label: 40 if mapped and to == 13 else to for label, to in became.items()}
    assert {c.value: c.to for c in traced.legs[2].changes} == {k: v for k, v in became.items() if k != v}


def test_a_label_map_of_the_guard_is_named(cityscapes: str) -> None:
    guard = dict(GUARD, label_map={24: 11})
    traced = Tracer(config(cityscapes, [*LOAD, PACK, guard])).trace(0)
    ((step, change),) = news(traced, 11)
    assert (step, change.value) == ('GuardSegLabels', 24)
    assert change.origin.endswith('GuardSegLabels: {24: 11}')


def test_a_resize_with_the_wrong_interpolation_is_traced_to_its_step(clean_cityscapes: str) -> None:
    # Only what lies between 18 and 255 is new; between two classes there are classes.
    traced = story(clean_cityscapes, [dict(type='RandomFlip', prob=1.0), RESIZE_AS_IMAGE])
    invalid = find_invalid(traced, from_options(NUM_CLASSES))['pixels']
    assert len(invalid) >= 3
    for value in invalid:
        ((step, change),) = news(traced, value)
        assert step == 'KeyMapper'
        assert "interpolation='bilinear'" in change.origin


def test_resizing_with_nearest_makes_nothing(clean_cityscapes: str) -> None:
    traced = story(clean_cityscapes, [dict(type='Resize', scale=(130, 130), interpolation='bilinear')])
    assert traced.legs[3].after.size == (130, 130)
    assert traced.legs[3].changes == []


ROTATE = dict(type='RandomRotate', prob=1.0, degree=(20, 20))
PAD = dict(type='Pad', size=(70, 80), pad_val=dict(img=0, seg=225))
APPLY = dict(type='RandomApply', prob=1.0, transforms=[PAD])
FILLS: Dict[str, List[Dict[str, Any]]] = {
    'RandomRotate': [dict(type='Resize', scale=(80, 80)), dict(ROTATE, seg_pad_val=225)],
    'Pad': [dict(type='RandomChoice', transforms=[[APPLY]])],
    'SegDataPreProcessor': [],
}


@pytest.mark.parametrize('step', FILLS)
def test_a_fill_value_is_traced_to_its_step(clean_cityscapes: str, step: str) -> None:
    made = config(clean_cityscapes, [*LOAD, *FILLS[step], PACK])
    if not FILLS[step]:
        made.model.data_preprocessor = dict(type=step, size=(70, 80), seg_pad_val=225)
    traced = Tracer(made).trace(1)
    ((found, change),) = news(traced, 225)
    (after,) = [leg.after for leg in traced.legs if leg.name == step]
    assert (found, change.what, change.count) == (step, 'appears', after.values[225])
    assert re.search(r'(?:seg_pad_val|pad_val\.seg)=225', change.origin)
    assert step == 'RandomRotate' or change.count == 70 * 80 - 64 * 64


def test_a_fill_value_that_was_there_before_grows(clean_cityscapes: str) -> None:
    traced = story(clean_cityscapes, [dict(ROTATE, seg_pad_val=255)])
    before, after = traced.legs[2].after.values[255], traced.legs[3].after.values[255]
    assert before == 36
    ((step, change),) = news(traced, 255)
    assert (step, change.what, change.count) == ('RandomRotate', 'grows', after - before)


def test_values_that_a_crop_cuts_off_vanish_there(clean_cityscapes: str) -> None:
    traced = story(clean_cityscapes, [dict(type='RandomCrop', crop_size=(10, 64))])
    cropped = traced.legs[3]
    gone = {change.value for change in cropped.changes if change.what == 'vanishes'}
    assert gone == set(traced.legs[2].after.values) - set(cropped.after.values)
    assert len(gone) >= 12


def test_a_mosaic_names_the_image_that_a_value_comes_from(cityscapes: str) -> None:
    inner = dataset_config(cityscapes, 'train', LOAD)
    mosaic = dict(type='RandomMosaic', prob=1.0, img_scale=(64, 64), seg_pad_val=150)
    made = config(cityscapes, [])
    made.train_dataloader.dataset = dict(type='MultiImageMixDataset', dataset=inner, pipeline=[mosaic, PACK, GUARD])
    tracer, named = Tracer(made), 0
    for index in range(8):
        traced = tracer.trace(index)
        assert [leg.name for leg in traced.legs[-3:]] == ['RandomMosaic', 'PackSegInputs', 'GuardSegLabels']
        for change in traced.legs[3].changes:
            if change.what == 'appears' and change.value not in (150, 255):
                number = int(osp.basename(change.origin).split('_')[1])
                assert change.value in PLANTED[number]
                named += 1
    assert named >= 3


def test_watching_changes_nothing(cityscapes: str) -> None:
    """With the same seed a watched pipeline gives what the data set itself gives."""
    middle = [
        dict(type='RandomResize', scale=(128, 64), ratio_range=(0.5, 2.0)),
        dict(type='RandomCrop', crop_size=(40, 40), cat_max_ratio=0.75),
        dict(type='RandomFlip', prob=0.5),
        dict(type='RandomRotate', prob=0.5, degree=30),
    ]
    tracer = Tracer(config(cityscapes, [*LOAD, *middle, PACK]), seed=7)
    shown = [tracer.trace(index).legs[-1].after.values for index in range(8)]
    made = config(cityscapes, [*LOAD, *middle, PACK])
    with open_program(made).scope():
        plain = DATASETS.build(made.train_dataloader.dataset)
        for index in range(8):
            random.seed(7 + index)
            np.random.seed(7 + index)
            label = plain[index]['data_samples'].gt_sem_seg.data.numpy()
            assert dict(Counter(label.ravel().tolist())) == shown[index]


def test_a_file_that_cannot_be_read_ends_the_story_there(tmp_path: Path) -> None:
    image, label = (
        tmp_path / 'leftImg8bit/train/a_leftImg8bit.png',
        tmp_path / 'gtFine/train/a_gtFine_labelTrainIds.png',
    )
    write_pair(str(image), str(label), label_map(0, ()), seed=0)
    label.write_bytes(label.read_bytes()[:60])
    traced = story(str(tmp_path), [], index=0)
    assert traced.error
    assert [leg.name for leg in traced.legs] == ['disk', 'LoadImageFromFile']
    assert traced.legs[0].after.note


def test_what_cannot_be_traced_is_named(cityscapes: str) -> None:
    with pytest.raises(CannotRun, match='val_dataloader'):
        Tracer(config(cityscapes, LOAD), split='val')
    with pytest.raises(CannotRun, match='NoSuchTransform'):
        Tracer(config(cityscapes, [dict(type='NoSuchTransform')]))
    with pytest.raises(CannotRun, match='data_root'):
        Tracer(config(cityscapes, LOAD, data_prefix=dict(img_path='gtFine', seg_map_path='gtFine')))
    tracer = Tracer(config(cityscapes, LOAD))
    for sample in ('8', '-1', 'no/such.png'):
        with pytest.raises(CannotRun, match=sample):
            tracer.find(sample)


@TRANSFORMS.register_module()
class LoadMappedInPlace(LoadAnnotations):
    """Map one value after the other, as mmseg 0.x did: what is mapped already is mapped again."""

    def _load_seg_map(self, results: Dict[str, Any]) -> None:
        said, results['label_map'] = results['label_map'], None
        super()._load_seg_map(results)
        for old, new in said.items():
            results['gt_seg_map'][results['gt_seg_map'] == old] = new


@TRANSFORMS.register_module()
class LoadUnmapped(LoadAnnotations):
    def _load_seg_map(self, results: Dict[str, Any]) -> None:
        super()._load_seg_map({**results, 'label_map': None})
        results['gt_seg_map'] = np.array(Image.open(results['seg_map_path']))


@pytest.mark.parametrize(
    ('loader', 'mapped', 'wrong'),
    [
        ('LoadMappedInPlace', {6: 9, 9: 7}, [6]),
        ('LoadMappedInPlace', {0: 1, 1: 0}, [0]),
        ('LoadMappedInPlace', {2: 3, 3: 4, 4: 5, 8: 8}, [2, 3]),
        ('LoadUnmapped', {11: 10, 12: 10}, [11, 12]),
        ('LoadAnnotations', {6: 9, 9: 7, 0: 1, 1: 0}, []),
        ('LoadMappedInPlace', {5: 4, 6: 5, 7: 6}, []),
    ],
)
def test_a_label_map_that_the_loader_does_not_follow(
    clean_cityscapes: str, monkeypatch: pytest.MonkeyPatch, loader: str, mapped: Dict[int, int], wrong: List[int]
) -> None:
    monkeypatch.setattr(CityscapesMappedWrongly, 'get_label_map', classmethod(lambda cls, new_classes=None: mapped))
    pipeline = [LOAD[0], dict(type=loader), PACK]
    traced = Tracer(config(clean_cityscapes, pipeline, type='CityscapesMappedWrongly')).trace(1)
    assert [leg.name for leg in traced.legs if leg.faults] == [loader] * bool(wrong)
    found = [int(fault.what.split()[0]) for leg in traced.legs for fault in leg.faults]
    assert found == wrong
    assert len(find_mistakes(traced, from_options(NUM_CLASSES))) == len(wrong)
