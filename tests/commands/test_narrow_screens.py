"""Tables fit 50 columns, and names of files are whole."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from screens import WIDTH, check_tables_fit
from volume_facts import voxels

from mmguard.cli import main
from mmguard.facts.labels import LabelFacts
from mmguard.facts.volumes import CaseFault
from mmguard.scanning.run import SetResult

Image = pytest.importorskip('PIL.Image')
pytest.importorskip('rich')

NAME = 'frankfurt_000001_063045_gtFine_labelTrainIds.png'


@pytest.fixture(autouse=True)
def narrow(monkeypatch):
    monkeypatch.setenv('COLUMNS', str(WIDTH))


def test_a_scan_of_label_maps(tmp_path, capsys):
    label = np.random.default_rng(0).integers(0, 9, (600, 800)).astype(np.uint8)
    label[:3] = 200
    (tmp_path / 'leftover').mkdir()
    for number in range(3):
        Image.fromarray(label).save(tmp_path / 'leftover' / f'{number}_{NAME}')
    assert main(['scan', str(tmp_path), '--num-classes', '4', '--processes', '1']) == 1
    shown = capsys.readouterr().out
    check_tables_fit(shown)
    table = shown.partition('worst files')[2]
    assert all(f'leftover/{number}_{NAME}' in table for number in range(3))


@pytest.mark.parametrize(
    'facts',
    [
        voxels(
            {0: 640_000_000, 1: 9_000_000, 7: 70_000}, ('value', CaseFault('liver_003', f'labelsTr/{NAME}', 'a', 9_000))
        ),
        LabelFacts(
            num_classes=3,
            class_names=['road', 'motorway-construction', 'wall'],
            histogram={0: 7, 1: 1_234_567_890, 2: 36_412_007, 255: 5_000_000},
            kind='pixels',
            total=1_276_000_000,
        ),
    ],
)
def test_large_numbers_and_long_names_in_a_scan(facts):
    from mmguard.commands.scan.output import as_text

    shown = as_text([SetResult(facts, name='train')], [], WIDTH)
    check_tables_fit(shown)
    assert (f'labelsTr/{NAME}' in shown) == (facts.volumes is not None)


def test_a_trace(tmp_path: Path, cityscapes, capsys):
    pytest.importorskip('mmseg')
    from small_runs import GUARD, LOAD, PACK, seg_config

    assert main(['trace', seg_config(tmp_path, cityscapes, [*LOAD, GUARD, PACK]), '--value', '33']) == 1
    shown = capsys.readouterr().out
    check_tables_fit(shown)
    assert f'sample 0: {cityscapes}/leftImg8bit/train/aachen/aachen_000000_000019_leftImg8bit.png\n' in shown
