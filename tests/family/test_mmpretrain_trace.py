"""`mmguard trace` of an image of mmpretrain, step by step."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict

import pytest
from small_cls import cls_config, make_multi, make_single

from mmguard import guard_config
from mmguard.cli import main

SINGLE = (make_single, {})
SEVERAL = (
    make_multi,
    dict(head=dict(type='MultiLabelLinearClsHead'), dataset=dict(type='MultiLabelDataset', ann_file='train.json')),
)


@pytest.mark.parametrize(('make', 'said'), [SINGLE, SEVERAL], ids=['one label', 'several labels'])
def test_an_invalid_label_is_followed_to_where_it_is_left_out(
    make: Any, said: Dict[str, Any], tmp_path: Path, capsys: Any
) -> None:
    stock = cls_config(make(tmp_path / 'data'), tmp_path, **said)
    for config, ends in ((stock, False), (guard_config(stock), True)):
        file = tmp_path / 'config.py'
        config.dump(str(file))
        main(['trace', str(file), '--sample', '1', '--json', '-'])
        story = json.loads(capsys.readouterr().out)
        changed = {change['value'] for step in story['steps'] for change in step['changes']}
        assert changed == {3}
        assert (story['steps'][-1]['step'] == 'GuardClsLabels') is ends
