"""The edits of label maps: for each rule the right one is offered, and what would do harm is not."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable, Dict, NamedTuple

import numpy as np
import pytest
from drawn_scenes import VOID, blob, colored, each, scenes, soft
from mask_files import OWN_COLORS, VOC_COLORS
from mask_values import COCO_STUFF_IDS, blobs, of_ids
from PIL import Image
from segmentation_configs import FIVE, LOVEDA
from situation import Build, findings_of, masks, seg_config, seg_model, with_options
from targets import find_unwritten

from mmguard.findings import Finding
from mmguard.findings.edits import Edit
from mmguard.findings.known_sets import COCO_STUFF_CLASSES

BLOBS = blobs(255, 6)
#: The classes of FIVE are drawn in these colors, in another order than that of their numbers.
PALETTE = [(0, 0, 142), (128, 64, 128), (70, 70, 70), (107, 142, 35), (244, 35, 232)]

ROADS = [(0, 0, 0), (120, 120, 120), (0, 0, 200), (100, 150, 225), (100, 200, 0)]
OTHER_ROADS = [(0, 0, 0), (0, 255, 0), (0, 0, 255), (255, 0, 0), (255, 255, 0)]
LOVEDA_COLORS = [
    (255, 255, 255), (255, 0, 0), (255, 255, 0), (0, 0, 255), (159, 129, 183), (0, 255, 0), (255, 195, 128),
]  # fmt: skip


class Case(NamedTuple):
    """A situation, and the code of the finding that is looked at."""

    code: str
    build: Build
    matches: Callable[[Edit], bool]  #: True if an edit is the right one (or, of harm, if it does it).


def writes(applicability: str = 'asks', **values: Any) -> Callable[[Edit], bool]:
    """Look for an edit of label maps, options or files that writes these values."""
    return lambda edit: edit.applicability == applicability and not find_unwritten(edit, values)


def converts(applicability: str = 'asks', **values: Any) -> Callable[[Edit], bool]:
    """Look for an edit that rewrites files."""
    return lambda edit: bool(edit.files) and writes(applicability, **values)(edit)


def is_safe(edit: Edit) -> bool:
    return edit.applicability == 'safe'


def is_in_validation(edit: Edit) -> bool:
    return 'val_dataloader' in repr(edit.config)


def is_any(edit: Edit) -> bool:
    return True


def of_both(build: Build) -> Build:
    """Training and validation are looked at."""
    return with_options(build, splits=('train', 'val'))


def five(arrays: Any, val: Any = None, names: Any = None, **settings: Any) -> Build:
    names = FIVE if names is None else names
    build = seg_config(arrays, names, seg_model(len(names)), val=val, **settings)
    return build if val is None else of_both(build)


def drawn(labels: Any, colors: Any) -> Any:
    return each(labels, lambda label: colored(label, colors))


def grayed(labels: Any, colors: Any, weights: Any = (0.299, 0.587, 0.114), shift: float = 0.5) -> Any:
    """The same drawn in colors, and converted to gray."""
    return each(drawn(labels, colors), lambda rgb: np.floor(rgb @ np.array(weights) + shift).astype(np.uint8))


def with_palette(labels: Any, colors: Any, val: Any = None) -> Build:
    return five(labels, val, metainfo=dict(classes=FIVE, palette=colors))


def mostly_white() -> Any:
    return [np.where(blob(1, seed=s) == 1, 0, 255).astype(np.uint8) for s in range(6)]


def behind_background(number: int) -> Any:
    """Objects of ``number`` classes, one in a file, in a background of 0."""
    return [np.where(blob(1, seed=s) == 1, s % number + 1, 0).astype(np.uint8) for s in range(2 * number)]


def quarters(value: int) -> Any:
    """0, 1 and another value that fills most of the files."""
    found = []
    for seed in range(6):
        label = np.full((60, 80), value, np.uint8)
        label[:10], label[10:20, : 20 + seed] = 0, 1
        found.append(label)
    return found


RAW = scenes([7, 8, 11, 21, 23, 24, 26, 33, 0, 1], 4)
TRAIN_IDS = scenes(range(9), 4)
CITY = [f'class {i}' for i in range(19)]
STUFF = [f'class {i}' for i in range(171)]

#: Those of other rules are followed by machine in edits/, with what their values mean.
RIGHT: Dict[str, Case] = {
    'void behind the classes': Case('MG102', masks(scenes(range(12), 6), 11), writes(label_map={11: 255})),
    'LoveDA': Case(
        'MG102',
        seg_config(
            scenes(range(8), 8), None, seg_model(7), type='LoveDADataset', reduce_zero_label=False, img_suffix='.jpg'
        ),
        writes('safe', reduce_zero_label=True),
    ),
    'gaps, one id in the validation alone': Case(
        'MG116', five(scenes([0, 1, 2, 5, 9], 7), scenes([0, 2, 9], 4)), writes(label_map={5: 3, 9: 4})
    ),
    'the palette of the config': Case(
        'MG120',
        five(drawn(scenes(range(5), 5), PALETTE), metainfo=dict(classes=FIVE, palette=PALETTE)),
        converts('safe', colors={color: label for label, color in enumerate(PALETTE)}),
    ),
    'reduced, and the background is in no list': Case(
        'MG124',
        five(behind_background(5), reduce_zero_label=True),
        writes(reduce_zero_label=False, classes=('background', *FIVE)),
    ),
    'Pillow made the colors of the config gray': Case(
        'MG121',
        with_palette(
            [np.asarray(Image.fromarray(x).convert('L')) for x in drawn(scenes(range(5), 5), PALETTE)], PALETTE
        ),
        writes(label_map={16: 0, 90: 1, 70: 2, 119: 3, 120: 4}),
    ),
    'the gray of building is above that of road': Case(
        'MG121',
        with_palette(grayed(scenes(range(5), 5), ROADS), ROADS, grayed(scenes([0, 1, 4], 3), ROADS)),
        writes(label_map={120: 1, 23: 2, 144: 3, 147: 4}),
    ),
    'the mean of the colors, and a class is missing': Case(
        'MG121',
        with_palette(grayed(scenes([0, 2, 3, 4], 5), ROADS, (1 / 3, 1 / 3, 1 / 3), 0.001), ROADS),
        writes(label_map={66: 2, 158: 3, 100: 4}),
    ),
    'one channel of the colors': Case(
        'MG121',
        with_palette(grayed(scenes(range(5), 5), PALETTE, (0, 1, 0)), PALETTE),
        writes(label_map={64: 1, 70: 2, 142: 3, 35: 4}),
    ),
    'the gray of the palette of the type, one class white': Case(
        'MG121',
        seg_config(
            grayed(scenes(range(7), 8), LOVEDA_COLORS),
            None,
            seg_model(7),
            type='LoveDADataset',
            reduce_zero_label=False,
            img_suffix='.jpg',
        ),
        writes(label_map={255: 0, 76: 1, 226: 2, 29: 3, 144: 4, 150: 5, 205: 6}),
    ),
    'a level that only the validation holds': Case(
        'MG125',
        five(scenes([0, 60, 180], 6), scenes([0, 60, 120, 240], 4)),
        writes(label_map={60: 1, 120: 2, 180: 3, 240: 4}),
    ),
}

HARM: Dict[str, Case] = {
    'train ids in the validation are mapped again': Case('MG101', five(RAW, TRAIN_IDS, CITY), is_in_validation),
    'a class of a quarter is ignored': Case('MG102', masks(scenes(range(4), 8), 3), writes(reduce_zero_label=True)),
    'void of the validation is the object': Case(
        'MG103', five(BLOBS, scenes([0, 1, VOID], 4), ['ground', 'house']), is_in_validation
    ),
    'most is 255: nobody is asked': Case('MG133', masks(mostly_white(), 2), is_safe),
    '255 may be the class that never occurs': Case(
        'MG133', with_options(masks(scenes([0, 1, VOID], 6), 3), ignore_index=-100), is_safe
    ),
    'pictures of five classes are thresholded': Case(
        'MG106', masks([np.random.default_rng(s).integers(0, 256, (60, 80)).astype('u1') for s in range(4)], 5), is_any
    ),
    'most of the pixels are ignored': Case('MG107', masks(quarters(7), 2), writes(label_map={7: 255})),
    'the list may not be what the files are numbered by': Case(
        'MG108', seg_config(scenes(range(4), 6), FIVE, seg_model(3)), is_safe
    ),
    'a class is ignored by the shift': Case(
        'MG115',
        with_options(masks(scenes(range(1, 7), 6), 6), ignore_index=5),
        lambda e: e.options.get('ignore_index') != 255,
    ),
    'a validation from 0 is shifted': Case(
        'MG115', five(scenes(range(1, 6), 6), scenes(range(5), 6)), is_in_validation
    ),
    'each split has its own numbers': Case(
        'MG116', five(scenes([0, 1, 2, 5, 9], 7), scenes([0, 1, 2, 6, 7], 4)), is_any
    ),
    'converted COCO-Stuff is mapped again': Case(
        'MG117', five(scenes([0, 1, 12, 24, 181], 5), scenes([0, 1, 11, 25, 170], 4), STUFF), is_in_validation
    ),
    'a number of a color is guessed': Case('MG120', masks(drawn(scenes(range(4), 5), OWN_COLORS), 4), is_any),
    'a palette of other colors': Case(
        'MG120',
        five(drawn(scenes(range(5), 5), VOC_COLORS), metainfo=dict(classes=FIVE, palette=PALETTE[::-1])),
        converts('safe', colors={color: label for label, color in enumerate(PALETTE[::-1])}),
    ),
    'ids of 16 bits are cut': Case(
        'MG122', masks(each(scenes([0, 1, 2], 4), lambda x: x.astype('u2') * 600), 5), is_any
    ),
    'the gray of unknown colors in order of size': Case('MG116', five(scenes([0, 23, 120, 144, 147], 5)), is_any),
    'the gray of other colors than those of the config': Case(
        'MG125', with_palette(grayed(scenes(range(5), 5), OTHER_ROADS), PALETTE), is_any
    ),
    'the gray of unknown colors in a folder': Case('MG125', masks(scenes([0, 29, 76, 150], 6), 4), is_any),
    'fewer levels than classes': Case('MG125', masks(scenes([0, 100, 255], 6), 4), is_any),
    'other levels in the validation': Case(
        'MG125', five(scenes([0, 127, 255], 6), scenes([0, 90, 200], 4), FIVE[:3]), is_any
    ),
    'three classes are made two': Case('MG136', masks(each(scenes([0, 1, 2, VOID], 6), soft), 3), is_any),
    'unknown LoveDA names': Case('MG102', five(scenes(range(8), 8), names=LOVEDA), writes(label_map={7: 255})),
}


def find(case: Case, root: Path) -> Finding:
    """Find what the case is about."""
    return next(finding for finding in findings_of(case.build, root) if finding.code == case.code)


@pytest.mark.parametrize('name', list(RIGHT))
def test_the_right_edit_is_offered(name: str, tmp_path: Path) -> None:
    finding = find(RIGHT[name], tmp_path)
    assert any(RIGHT[name].matches(edit) for edit in finding.edits), finding.edits


@pytest.mark.parametrize('name', list(HARM))
def test_what_does_harm_is_not_offered(name: str, tmp_path: Path) -> None:
    finding = find(HARM[name], tmp_path)
    assert not [edit for edit in finding.edits if HARM[name].matches(edit)], finding.edits


def test_gray_that_is_mapped_in_order_of_size_is_not_fine(tmp_path: Path) -> None:
    files = grayed(scenes(range(5), 5), ROADS)
    for table, codes in (({120: 1, 23: 2}, []), ({23: 1, 120: 2}, ['MG121'])):
        guard = dict(type='GuardSegLabels', num_classes=5, label_map={**table, 144: 3, 147: 4})
        pipeline = [dict(type='LoadAnnotations'), guard, dict(type='PackSegInputs')]
        build = five(files, metainfo=dict(classes=FIVE, palette=ROADS), pipeline=pipeline)
        found = findings_of(build, tmp_path / str(len(codes)))
        assert [finding.code for finding in found if finding.code == 'MG121'] == codes
        assert not codes or 'MG100' not in {finding.code for finding in found}


@pytest.mark.parametrize('classes', [150, 171])
def test_a_long_map_is_complete(classes: int, tmp_path: Path) -> None:
    first = findings_of(masks(of_ids(COCO_STUFF_IDS, 24, 12, 0), classes), tmp_path)[0]
    assert first.code == 'MG117'
    label_map = dict(dict(first.edits[0].options)['label_map'])
    assert {raw: label_map.get(raw, raw) for raw in COCO_STUFF_CLASSES} == COCO_STUFF_CLASSES
    assert label_map.get(255, 255) == 255


@pytest.mark.parametrize(
    ('values', 'options', 'label_map'),
    [
        pytest.param(
            (10, 20, 30, 90),
            dict(label_map=((10, 0), (20, 1), (30, 2))),
            {10: 0, 20: 1, 30: 2, 90: 255},
            id='after a map',
        ),
        pytest.param((0, 1, 2, 3, 9), dict(reduce_zero_label=True), {8: 255}, id='after a shift'),
    ],
)
def test_a_map_adds_to_the_options_of_the_scan(
    values: Any, options: Dict[str, Any], label_map: Dict[int, int], tmp_path: Path
) -> None:
    drawn = each(scenes(range(len(values)), 6), lambda label: np.array(values, np.uint8)[label])
    first = findings_of(with_options(masks(drawn, 3), **options), tmp_path)[0]
    assert first.code == 'MG107'
    written = dict(first.edits[0].options)
    assert dict(written['label_map']) == label_map
    again = findings_of(lambda _: (tmp_path / 'masks', dict(num_classes=3, **{**options, **written})), tmp_path)
    assert [finding.code for finding in again] == ['MG100']
