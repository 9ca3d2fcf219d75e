"""The output folder is the demo's own, and files in it are whole."""

from __future__ import annotations

import pytest

from mmguard.demo.folder import NotOurFolder, make_anew, write_text, write_whole


def test_made_anew(tmp_path):
    folder = make_anew(tmp_path / 'a' / 'demo')
    write_text(folder / 'runs' / 'old.txt', 'old')
    kept = tmp_path / 'kept'
    write_text(kept / 'file', 'mine')
    (folder / 'link').symlink_to(kept)
    make_anew(folder)
    assert [path.name for path in folder.iterdir()] == ['.mmguard_demo']
    assert (kept / 'file').read_text() == 'mine'


def test_somebody_elses_folder_is_left_alone(tmp_path):
    write_text(tmp_path / 'thesis.tex', 'mine')
    with pytest.raises(NotOurFolder, match='--out'):
        make_anew(tmp_path)
    with pytest.raises(NotOurFolder, match='is a file'):
        make_anew(tmp_path / 'thesis.tex')
    assert (tmp_path / 'thesis.tex').read_text() == 'mine'


def test_an_interrupted_write_leaves_the_old_file(tmp_path):
    write_text(tmp_path / 'file', 'old')

    def write(file):
        file.write(b'half of it')
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_whole(tmp_path / 'file', write)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [('file', 'old')]
