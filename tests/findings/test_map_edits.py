"""What an edit says to whoever trains without OpenMMLab."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from kinds_maps import COCO_STUFF_IDS, of_ids
from situation import findings_of, masks

from mmguard.findings.known_sets import COCO_STUFF_CLASSES


@pytest.mark.parametrize('classes', [150, 171])
def test_a_long_map_is_a_table_to_look_up(classes: int, tmp_path: Path) -> None:
    first = findings_of(masks(of_ids(COCO_STUFF_IDS, 24, 12, 0), classes), tmp_path)[0]
    assert first.code == 'MG117'
    text = first.edits[0].text
    assert 'Without OpenMMLab' in text
    table, fill, _ = re.findall(r'`(table = .*?|for value.*?|label = .*?)`', text)
    names = {'np': np, 'label_map': dict(dict(first.edits[0].options)['label_map'])}
    exec(f'{table}\n{fill}', names)
    for raw, label in COCO_STUFF_CLASSES.items():
        assert names['table'][raw] == label  # type: ignore[index]
    assert names['table'][255] == 255  # type: ignore[index]
