"""Each file that `mmguard scan` counts is in the copy or is named, whatever the target holds."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Dict, List

import numpy as np
import pytest
from label_files import write
from put_file import put
from security_rows import COCO, write_yolo

from mmguard.cli import main
from mmguard.commands.fix import copies
from mmguard.commands.fix.copies import MANIFEST
from mmguard.formats.files import walk

FORGED = ('manifest.json', 'mmguard.manifest')


def run(target: Path, out: Path, *words: Any) -> int:
    return main(['fix', str(target), '-o', str(out), '--num-classes', '2', *map(str, words)])


def read_manifest(out: Path) -> Dict[str, Any]:
    manifest: Dict[str, Any] = json.loads((out / MANIFEST).read_text())
    return manifest


def list_copies(out: Path) -> List[str]:
    return sorted(str(path.relative_to(out)) for path in out.rglob('*') if path.is_file() and path.name != MANIFEST)


def write_map(path: Path, value: int = 7) -> None:
    write(path, np.full((4, 4), value, np.uint8))


@pytest.mark.parametrize('name', FORGED)
def test_a_forged_manifest_does_not_say_that_files_are_corrected(name: str, tmp_path: Path) -> None:
    write_map(tmp_path / 'maps' / 'a.png')
    assert run(tmp_path / 'maps', tmp_path / 'first') == 0
    manifest = read_manifest(tmp_path / 'first')
    manifest['files'][0]['sha256_after'] = manifest['files'][0]['sha256_before']
    (tmp_path / 'maps' / name).write_text(json.dumps(manifest))
    assert run(tmp_path / 'maps', tmp_path / 'second') == 0
    assert (tmp_path / 'second' / 'a.png').read_bytes() == (tmp_path / 'first' / 'a.png').read_bytes()


@pytest.mark.parametrize('name', FORGED)
def test_a_forged_manifest_hides_no_folder(name: str, tmp_path: Path) -> None:
    write_yolo(tmp_path / 'set' / 'sub')
    (tmp_path / 'set' / 'sub' / 'data.yaml').unlink()
    (tmp_path / 'set' / 'sub' / 'labels' / name).write_text('{\n "written_by": "mmguard fix",\n "files": []}')
    run(tmp_path / 'set', tmp_path / 'out')
    assert 'sub/labels/a.txt' in list_copies(tmp_path / 'out')


def test_a_label_file_named_like_a_manifest_is_kept(tmp_path: Path) -> None:
    (tmp_path / 'manifest.json').write_text(json.dumps(COCO))
    assert run(tmp_path / 'manifest.json', tmp_path / 'out') == 0
    assert json.loads((tmp_path / 'out' / 'manifest.json').read_text())['categories'] == COCO['categories']
    write_map(tmp_path / 'maps' / 'a.png')
    os.rename(tmp_path / 'maps' / 'a.png', tmp_path / 'maps' / f'{MANIFEST}.png')
    assert run(tmp_path / 'maps', tmp_path / 'other') == 0
    assert list_copies(tmp_path / 'other') == [f'{MANIFEST}.png']


@pytest.mark.parametrize('kind', ['maps', 'yolo', 'voc'])
def test_files_of_linked_folders_are_copied_or_named(kind: str, tmp_path: Path) -> None:
    names = {'maps': 'a.png', 'yolo': 'labels/a.txt', 'voc': 'Annotations/a.xml'}
    for root in (tmp_path / 'set', tmp_path / 'away'):
        if kind == 'maps':
            write_map(root / 'a.png')
        elif kind == 'yolo':
            write_yolo(root).joinpath('data.yaml').unlink()
        else:
            put(root / 'Annotations' / 'a.xml', '<annotation><size><width>9</width><height>9</height></size>')
    (tmp_path / 'set' / 'more').symlink_to(tmp_path / 'away')
    assert run(tmp_path / 'set', tmp_path / 'out') == 1
    manifest = read_manifest(tmp_path / 'out')
    named = {entry['file'] for key in ('files', 'left_out') for entry in manifest[key]}
    assert {names[kind], f'more/{names[kind]}'} <= named


def test_an_image_next_to_a_label_file_that_is_left_out_stays(tmp_path: Path) -> None:
    write_yolo(tmp_path / 'set', label='0 x y z\n')
    (tmp_path / 'set' / 'data.yaml').unlink()
    for name in ('images/a.png', 'labels/a.txt'):
        os.rename(tmp_path / 'set' / name, tmp_path / 'set' / os.path.basename(name))
    (tmp_path / 'set' / 'b.png').write_bytes((tmp_path / 'set' / 'a.png').read_bytes())
    (tmp_path / 'set' / 'b.txt').write_text('0 .5 .5 .1 .1\n')
    os.rename(tmp_path / 'set' / 'a.txt', tmp_path / 'away.txt')
    (tmp_path / 'set' / 'a.txt').symlink_to(tmp_path / 'away.txt')
    assert run(tmp_path / 'set', tmp_path / 'out') == 1
    assert list_copies(tmp_path / 'out') == ['a.png', 'b.png', 'b.txt']


def test_a_walk_leaves_out_folders_of_the_system_and_other_disks(tmp_path: Path, monkeypatch: Any) -> None:
    write_map(tmp_path / 'set' / 'disk' / 'a.png')
    write_map(tmp_path / 'set' / 'b.png')
    (tmp_path / 'set' / 'link').symlink_to('/proc/self')
    (tmp_path / 'set' / 'own').symlink_to(tmp_path / 'set' / 'disk')

    def stat_of_disk(path: Any, **how: Any) -> Any:
        status = true_stat(path, **how)
        is_disk = path in (str(tmp_path / 'set' / 'disk'), str(tmp_path / 'set' / 'own'))
        return os.stat_result((*status[:2], 77, *status[3:])) if is_disk else status

    true_stat = os.stat
    monkeypatch.setattr('os.stat', stat_of_disk)
    left: List[str] = []
    walked = [folder for folder, _ in walk(str(tmp_path / 'set'), lambda folder, error: left.append(folder))]
    assert left == [str(tmp_path / 'set' / name) for name in ('disk', 'link')]
    assert walked == [str(tmp_path / 'set'), str(tmp_path / 'set' / 'own')]  # a link may lead to another disk
    for system in ('/proc', '/sys/devices', '/dev'):
        assert list(walk(system, lambda folder, error: left.append(folder))) == []
    assert main(['fix', str(tmp_path / 'set'), '-o', str(tmp_path / 'out'), '--num-classes', '2']) == 1
    assert {'disk', 'link'} <= {entry['file'] for entry in read_manifest(tmp_path / 'out')['left_out']}


@pytest.mark.skipif(os.name == 'nt', reason='Windows has no such permissions')
@pytest.mark.parametrize('mode', [0o600, 0o640, 0o444])
def test_label_files_keep_their_permissions(mode: int, tmp_path: Path) -> None:
    for number, value in enumerate((0, 7)):  # copied, and corrected
        write_map(tmp_path / 'maps' / f'{number}.png', value)
        (tmp_path / 'maps' / f'{number}.png').chmod(mode)
    for _ in range(2):
        assert run(tmp_path / 'maps', tmp_path / 'out') == 0
        assert [(tmp_path / 'out' / f'{number}.png').stat().st_mode & 0o777 for number in (0, 1)] == [mode] * 2


@pytest.mark.skipif(not hasattr(os, 'fwalk'), reason='folders have no descriptor')
@pytest.mark.parametrize('place', ['', 'sub'])
def test_a_folder_of_the_copy_that_is_replaced_by_a_link_is_not_written_through(
    place: str, tmp_path: Path, monkeypatch: Any
) -> None:
    for name in ('a', 'b', 'sub/a', 'sub/b'):
        write_map(tmp_path / 'maps' / f'{name}.png')
    (tmp_path / 'victim').mkdir()
    folder, correct = tmp_path / 'out' / place, copies.correct_file

    def swap_then_correct(*args: Any) -> Any:
        if not folder.is_symlink() and folder.exists():
            os.rename(folder, tmp_path / 'away')
            folder.symlink_to(tmp_path / 'victim')
        return correct(*args)

    monkeypatch.setattr(copies, 'correct_file', swap_then_correct)
    run(tmp_path / 'maps', tmp_path / 'out')
    assert folder.is_symlink()
    assert os.listdir(tmp_path / 'victim') == []
