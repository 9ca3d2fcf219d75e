"""`mmguard fix` writes below `--out` only, and nothing that lies outside of its target becomes a file there."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Dict

import pytest
from format_cases import CASES

from mmguard.cli import main
from mmguard.commands.fix.copies import place_in
from mmguard.files.containment import OutsideError
from mmguard.formats.format import NotCorrected

pytest.importorskip('rich')

#: Formats of which a folder is corrected.
FORMATS = {case.name: case for case in CASES if case.name in ('maps', 'voc', 'yolo')}
#: A folder of labels, a file that is copied as it is.
FOLDER = {'maps': 'labels', 'voc': 'Annotations', 'yolo': 'labels'}
IMAGE = {'voc': 'JPEGImages/a.jpg', 'yolo': 'images/a.jpg'}


def run(target: Path, out: Path) -> int:
    return main(['fix', str(target), '-o', str(out), '--num-classes', '3'])


def contents(folder: Path) -> Dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob('*') if path.is_file()}


@pytest.fixture(params=FORMATS)
def kind(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    FORMATS[request.param].write(tmp_path / 'set')
    return str(request.param)


def test_a_label_file_that_is_a_link_out_of_the_target_is_left_out(kind: str, tmp_path: Path) -> None:
    label = tmp_path / 'set' / FORMATS[kind].main
    (tmp_path / 'key').write_bytes(label.read_bytes())
    label.unlink()
    label.symlink_to(tmp_path / 'key')
    assert run(tmp_path / 'set', tmp_path / 'out') == 1
    assert not os.path.lexists(tmp_path / 'out' / FORMATS[kind].main)
    left_out = json.loads((tmp_path / 'out' / 'mmguard.manifest').read_text())['left_out']
    assert [one['file'] for one in left_out] == [FORMATS[kind].main]


@pytest.mark.parametrize('kind', IMAGE)
def test_an_image_that_is_a_link_out_of_the_target_stays_one(kind: str, tmp_path: Path) -> None:
    FORMATS[kind].write(tmp_path / 'set')
    key, linked = tmp_path / 'key', tmp_path / 'set' / IMAGE[kind]
    shutil.move(str(linked), str(key))
    linked.symlink_to(key)
    for _ in range(2):
        assert run(tmp_path / 'set', tmp_path / 'out') == 0
        copy = tmp_path / 'out' / IMAGE[kind]
        assert copy.is_symlink()
        assert copy.samefile(key)
    linked.unlink()
    shutil.copy(str(key), str(linked))
    assert run(tmp_path / 'set', tmp_path / 'out') == 0
    assert not copy.is_symlink()
    assert copy.samefile(linked)
    copy.unlink()
    os.link(key, copy)  # as earlier versions made it
    linked.unlink()
    linked.symlink_to(key)
    assert run(tmp_path / 'set', tmp_path / 'out') == 0
    assert copy.is_symlink()


@pytest.mark.parametrize('kind', IMAGE)
def test_an_image_that_is_a_link_in_the_target_becomes_a_file(kind: str, tmp_path: Path) -> None:
    FORMATS[kind].write(tmp_path / 'set')
    linked = tmp_path / 'set' / IMAGE[kind]
    linked.rename(linked.with_name('real.bin'))
    linked.symlink_to('real.bin')
    assert run(tmp_path / 'set', tmp_path / 'out') == 0
    assert not (tmp_path / 'out' / IMAGE[kind]).is_symlink()


def test_a_text_that_is_copied_as_it_is_may_be_no_link_out_of_the_target(tmp_path: Path) -> None:
    FORMATS['voc'].write(tmp_path / 'set')
    (tmp_path / 'key').write_text('PRIVATE')
    (tmp_path / 'set' / 'ImageSets' / 'Main' / 'val.txt').symlink_to(tmp_path / 'key')
    assert run(tmp_path / 'set', tmp_path / 'out') == 1
    assert b'PRIVATE' not in b''.join(contents(tmp_path / 'out').values())


@pytest.mark.parametrize('kind', FOLDER)
def test_a_link_in_out_leads_no_copy_elsewhere_and_deletes_nothing(kind: str, tmp_path: Path) -> None:
    FORMATS[kind].write(tmp_path / 'set')
    assert run(tmp_path / 'set', tmp_path / 'out') == 0
    shutil.rmtree(tmp_path / 'out' / FOLDER[kind])
    (tmp_path / 'out' / FOLDER[kind]).symlink_to(tmp_path / 'set' / FOLDER[kind])
    before = contents(tmp_path / 'set')
    assert run(tmp_path / 'set', tmp_path / 'out') == 1
    assert contents(tmp_path / 'set') == before


def test_a_link_at_the_place_of_a_copy_or_of_the_manifest_is_not_written_through(kind: str, tmp_path: Path) -> None:
    for name in (FORMATS[kind].main, 'mmguard.manifest'):
        assert run(tmp_path / 'set', tmp_path / 'out') == 0
        label = tmp_path / 'set' / FORMATS[kind].main
        before = label.read_bytes()
        (tmp_path / 'out' / name).unlink()
        (tmp_path / 'out' / name).symlink_to(label)
        assert run(tmp_path / 'set', tmp_path / 'out') in (1, 2)
        assert label.read_bytes() == before
        shutil.rmtree(tmp_path / 'out')


@pytest.mark.parametrize('out', ['set', 'set/new', 'link', 'link/new', 'set/../set/new', '.', 'up/set'])
def test_out_is_never_the_target_in_it_or_around_it_however_it_is_spelled(out: str, kind: str, tmp_path: Path) -> None:
    (tmp_path / 'link').symlink_to('set')
    (tmp_path / 'up').symlink_to('.')
    before = contents(tmp_path)
    assert run(tmp_path / 'set', tmp_path / out) == 2
    assert contents(tmp_path) == before


@pytest.mark.parametrize(
    'name', ['../a.png', '/a.png', r'..\a.png', r'C:\a.png', r'\\host\a.png', 'a\0.png', 'a\n.png']
)
def test_a_name_that_leads_out_of_the_copy_has_no_place_in_it(name: str, tmp_path: Path) -> None:
    with pytest.raises(NotCorrected) as raised:
        place_in(tmp_path, name).__enter__()
    assert isinstance(raised.value.__cause__, OutsideError)


def test_the_second_of_two_into_one_folder_refuses_also_with_other_options(tmp_path: Path) -> None:
    FORMATS['maps'].write(tmp_path / 'set')
    # The first one stands still while it writes its first copy.
    words = (
        'import sys, mmguard.commands.fix.copies as copies\nfrom mmguard.cli import main\n'
        'write = copies.write_whole\n'
        'def wait(*args, **more):\n    print("writing", flush=True)\n    sys.stdin.read()\n    write(*args, **more)\n'
        'copies.write_whole = wait\nsys.exit(main(sys.argv[1:]))'
    )
    first = subprocess.Popen(
        [sys.executable, '-c', words, 'fix', str(tmp_path / 'set'), '-o', str(tmp_path / 'out'), '--num-classes', '3'],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert first.stdout.readline() == b'writing\n'
    begun = contents(tmp_path / 'out')
    assert run(tmp_path / 'set', tmp_path / 'out') == 2
    assert main(['fix', str(tmp_path / 'set'), '-o', str(tmp_path / 'out'), '--num-classes', '2']) == 2
    assert contents(tmp_path / 'out') == begun
    first.communicate(b'')
    assert first.returncode == 0
    assert sorted(contents(tmp_path / 'out')) == [*(f'labels/{number}.png' for number in range(3)), 'mmguard.manifest']
    assert run(tmp_path / 'set', tmp_path / 'out') == 0
