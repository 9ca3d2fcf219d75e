"""``mmguard trace`` as it is called."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Callable, Dict, List

import pytest
from small_runs import GUARD, LOAD, PACK, seg_config

from mmguard.cli import main

Write = Callable[[str, List[Dict[str, Any]]], str]


@pytest.fixture
def write_config(tmp_path: Path) -> Write:
    return lambda root, pipeline: seg_config(tmp_path, root, pipeline)


@pytest.mark.same_everywhere
@pytest.mark.parametrize('is_clean', [False, True])
def test_the_table_and_the_exit_code(
    is_clean: bool, cityscapes: str, clean_cityscapes: str, write_config: Write, capsys: Any, snapshot: Any
) -> None:
    root = clean_cityscapes if is_clean else cityscapes
    assert main(['trace', write_config(root, [*LOAD, PACK, GUARD])]) == (0 if is_clean else 1)
    section = 'clean labels' if is_clean else 'invalid values that a guard takes out'
    shown = capsys.readouterr().out
    snapshot('trace', section, shown[shown.index('┏') :])  # the path before the table is broken where it is long


def test_a_value_is_searched_in_all_samples(cityscapes: str, write_config: Write, capsys: Any) -> None:
    config = write_config(cityscapes, [*LOAD, PACK])
    assert main(['trace', config, '--value', '254', '--json', '-']) == 1
    captured = capsys.readouterr()
    record = json.loads(captured.out)
    assert record['sample'] == 6
    assert '254' in captured.err
    assert record['steps'][0]['values']['254'] > 0
    assert record['invalid'] == {'pixels': [200, 254], 'instances': []}


def test_a_value_that_is_nowhere(cityscapes: str, write_config: Write, tmp_path: Path) -> None:
    target = tmp_path / 'out.json'
    assert main(['trace', write_config(cityscapes, [*LOAD, PACK]), '--value', '77', '--json', str(target)]) == 0
    written = {'written_by': 'mmguard', 'found': False, 'value': 77, 'samples': 8}
    assert json.loads(target.read_text()) == written


def test_a_sample_by_its_file(cityscapes: str, write_config: Write, capsys: Any) -> None:
    config = write_config(cityscapes, [*LOAD, PACK])
    args = ['trace', config, '--sample', 'aachen_000005_000019_leftImg8bit.png', '--json', '-']
    assert main(args) == 1
    record = json.loads(capsys.readouterr().out)
    assert (record['sample'], record['invalid']['pixels']) == (5, [19])
    steps = ['disk', 'LoadImageFromFile', 'LoadAnnotations', 'PackSegInputs']
    assert [step['step'] for step in record['steps']] == steps


@pytest.mark.parametrize(
    ('args', 'named'),
    [
        (['no_such_config.py'], 'no_such_config.py'),
        (['mmseg::pspnet/no_such.py'], 'pspnet/no_such.py'),
        # It is read; that the data are not here is what cannot be helped.
        (['mmseg::pspnet/pspnet_r50-d8_4xb2-40k_cityscapes-512x1024.py', '--sample', '9'], 'data_root'),
        (['CONFIG', '--split', 'test'], 'test_dataloader'),
        (['CONFIG', '--sample', '99'], '0 to 7'),
    ],
)
def test_what_cannot_run_exits_with_2(
    cityscapes: str, write_config: Write, capsys: Any, args: List[str], named: str
) -> None:
    config = write_config(cityscapes, [*LOAD, PACK])
    assert main(['trace', *(config if arg == 'CONFIG' else arg for arg in args)]) == 2
    assert named in capsys.readouterr().err
