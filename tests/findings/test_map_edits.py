"""What an edit says to whoever trains without OpenMMLab."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any, Dict

import numpy as np
import pytest
from drawn_scenes import each, scenes
from mask_values import COCO_STUFF_IDS, of_ids
from PIL import Image
from situation import findings_of, masks, with_options

from mmguard.cli import main
from mmguard.findings.known_sets import COCO_STUFF_CLASSES


@pytest.mark.parametrize('classes', [150, 171])
def test_a_long_map_is_a_table_to_look_up(classes: int, tmp_path: Path) -> None:
    first = findings_of(masks(of_ids(COCO_STUFF_IDS, 24, 12, 0), classes), tmp_path)[0]
    assert first.code == 'MG117'
    text = first.edits[0].text
    assert 'without OpenMMLab' in text
    table, fill, _ = re.findall(r'`(table = .*?|for value.*?|label = .*?)`', text)
    names = {'np': np, 'label_map': dict(dict(first.edits[0].options)['label_map'])}
    exec(f'{table}\n{fill}', names)
    for raw, label in COCO_STUFF_CLASSES.items():
        assert names['table'][raw] == label  # type: ignore[index]
    assert names['table'][255] == 255  # type: ignore[index]


@pytest.mark.parametrize(
    ('values', 'options'),
    [
        pytest.param((10, 20, 30, 90), dict(label_map=((10, 0), (20, 1), (30, 2))), id='behind a map'),
        pytest.param((0, 1, 2, 3, 9), dict(reduce_zero_label=True), id='behind a shift'),
    ],
)
def test_files_written_anew_are_right_without_the_options_of_the_scan(
    values: Any, options: Dict[str, Any], tmp_path: Path
) -> None:
    drawn = each(scenes(range(len(values)), 6), lambda label: np.array(values, np.uint8)[label])
    first = findings_of(with_options(masks(drawn, 3), **options), tmp_path)[0]
    assert first.code == 'MG107'
    typed = re.findall('`mmguard (fix .*?)`', first.edits[0].text)[0]
    assert main(shlex.split(typed)) == 0
    written = tmp_path / 'masks_fixed'
    assert [found.code for found in findings_of(lambda _: (written, dict(num_classes=3)), tmp_path)] == ['MG100']
    labels = {0: 255, 1: 0, 2: 1, 3: 2, 9: 255} if 'reduce_zero_label' in options else {10: 0, 20: 1, 30: 2, 90: 255}
    for label, path in zip(drawn, sorted(written.glob('*.png'))):
        wanted = np.vectorize(labels.__getitem__)(label)
        assert (np.asarray(Image.open(path)) == wanted).all()
