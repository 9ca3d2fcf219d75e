"""The output folder is the demo's own, and files in it are whole."""

from __future__ import annotations

import re

import pytest

from mmguard.errors import CannotRun
from mmguard.tools.demo.folder import make_anew


def test_made_anew(tmp_path):
    folder = make_anew(tmp_path / 'a' / 'demo')
    (folder / 'runs').mkdir(exist_ok=True)
    (folder / 'runs' / 'old.txt').write_text('old')
    kept = tmp_path / 'kept'
    kept.mkdir(exist_ok=True)
    (kept / 'file').write_text('mine')
    (folder / 'link').symlink_to(kept)
    make_anew(folder)
    assert [path.name for path in folder.iterdir()] == ['.mmguard_demo']
    assert (kept / 'file').read_text() == 'mine'


def test_somebody_elses_folder_is_left_alone(tmp_path):
    (tmp_path / 'thesis.tex').write_text('mine')
    with pytest.raises(CannotRun, match='--out'):
        make_anew(tmp_path)
    with pytest.raises(CannotRun, match=re.escape(str(tmp_path / 'thesis.tex'))):
        make_anew(tmp_path / 'thesis.tex')
    assert (tmp_path / 'thesis.tex').read_text() == 'mine'
