"""Label maps of edits, as they apply to the files and as they apply after the options of the scan."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict

import numpy as np
import pytest
from drawn_scenes import each, scenes
from mask_values import COCO_STUFF_IDS, of_ids
from situation import findings_of, masks, with_options

from mmguard.findings.known_sets import COCO_STUFF_CLASSES


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
