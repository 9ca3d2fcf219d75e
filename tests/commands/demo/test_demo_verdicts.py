"""What the demo says, and its exit code, where it cannot run or does not come out as it must."""

from __future__ import annotations

import sys

import pytest

from mmguard.cli import main

pytest.importorskip('mmseg')


@pytest.mark.parametrize('module', ['mmseg', 'mmcv.ops'])
def test_without_mmseg_it_says_what_to_install(module, monkeypatch, capsys, tmp_path):
    monkeypatch.setitem(sys.modules, module, None)
    assert main(['demo', '--out', str(tmp_path / 'demo')]) == 2
    message = ' '.join(capsys.readouterr().err.split())
    assert 'pip install mmsegmentation' in message or 'mim install "mmcv' in message
    assert not (tmp_path / 'demo').exists()


def test_somebody_elses_folder_and_one_that_cannot_be_made(capsys, tmp_path):
    (tmp_path / 'thesis.tex').write_text('mine')
    for folder in (tmp_path, tmp_path / 'thesis.tex', tmp_path / 'thesis.tex' / 'demo'):
        assert main(['demo', '--out', str(folder)]) == 2
        assert capsys.readouterr().err.startswith('mmguard demo: ')
    assert [path.name for path in tmp_path.iterdir()] == ['thesis.tex']


@pytest.mark.parametrize(
    ('name', 'code', 'output'),
    [
        ('the stock training survives', 0, ''),
        ('the disk is full', 1, 'Traceback (most recent call last):\nOSError: no space\n'),
        ('the stock training is killed', -9, ''),
    ],
)
def test_stock_must_die_and_of_a_label(name, code, output, dataset, monkeypatch, capsys, tmp_path, snapshot):
    monkeypatch.setattr('mmguard.commands.demo.train.train_in_child', lambda stem, folder: (code, output))
    monkeypatch.setattr('mmguard.commands.demo.dataset.write_dataset', lambda folder: dataset.planted)  # drawn once
    assert main(['demo', '--out', str(tmp_path / 'demo')]) == 2
    snapshot('demo', name, capsys.readouterr().err)
