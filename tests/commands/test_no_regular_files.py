"""A FIFO, a socket or a device in a data set is never opened: scan and fix end, and say something."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
from pathlib import Path
from typing import Any, Callable, Dict, Iterator

import pytest
from format_cases import BLOCKS, Contents, class_folders, encode, voc, yolo
from pictures import picture

from mmguard.cli import main
from mmguard.text import REPORT_ADVICE

pytest.importorskip('PIL')

BOX = {'id': 1, 'image_id': 1, 'category_id': 1, 'bbox': [0, 0, 9, 9], 'area': 81, 'iscrowd': 0}
SEGMENTS = {'image_id': 1, 'file_name': 'a.png', 'segments_info': [{'id': 1, 'category_id': 1, 'area': 4}]}
COCO = {
    'images': [{'id': 1, 'file_name': 'a.jpg', 'width': 48, 'height': 32}],
    'categories': [{'id': 1, 'name': 'x', 'isthing': 1}],
}
NNUNET = {'channel_names': {'0': 'x'}, 'labels': {'background': 0, 'a': 1}, 'numTraining': 1, 'file_ending': '.png'}
MAPS = {'0.png': encode(BLOCKS), '1.png': encode(BLOCKS)}
CASE = {
    'dataset.json': json.dumps(NNUNET).encode(),
    'imagesTr/a_0000.png': encode(BLOCKS),
    'labelsTr/a.png': encode(BLOCKS % 2),
}
#: Names are in another file.
UNNAMED = {name: content for name, content in yolo().items() if name != 'data.yaml'}

#: Path at which there is a node that is not a regular file -> a data set, with a file there or without.
KINDS: Dict[str, Contents] = {
    **dict.fromkeys(('Annotations/a.xml', 'JPEGImages/a.jpg', 'ImageSets/Main/train.txt'), voc()),
    **dict.fromkeys(('labels/a.txt', 'images/a.jpg', 'data.yaml'), yolo()),
    'train.txt': {**UNNAMED, 'data.yaml': b'train: train.txt\nval: train.txt\nnames: [a]\n'},
    **dict.fromkeys(('classes.txt', 'labels/classes.txt', 'obj.names'), UNNAMED),
    'annotations/instances_train.json': {'train/a.jpg': picture()},
    'train/a.jpg': {'annotations/instances_train.json': json.dumps({**COCO, 'annotations': [BOX]}).encode()},
    'panoptic/a.png': {'panoptic.json': json.dumps({**COCO, 'annotations': [SEGMENTS]}).encode()},
    **dict.fromkeys(('b.csv', 'train/cat/0.png'), class_folders()),
    **dict.fromkeys(('a.png', 'a.tif', 'a.npy', 'mmguard.manifest'), MAPS),
    **dict.fromkeys(CASE, CASE),
}


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        os.chdir(path.parent)  # a socket's path is short
        made.bind(path.name)


def make_device(path: Path) -> None:
    try:
        os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 5))  # zeros without end
    except PermissionError:
        pytest.skip('devices are made by root')


@pytest.fixture(autouse=True)
def waits_for_nothing(tmp_path: Path) -> Iterator[None]:
    """Interrupt what waits: the command then ends with 130."""

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.alarm(20)
    here = os.getcwd()
    yield
    os.chdir(here)
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def plant(root: Path, name: str, make: Callable[[Path], None]) -> None:
    for other, content in KINDS[name].items():
        if other != name:
            (root / other).parent.mkdir(parents=True, exist_ok=True)
            (root / other).write_bytes(content)
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    make(root / name)


@pytest.mark.parametrize('make', [os.mkfifo, make_socket, make_device], ids=['fifo', 'socket', 'device'])
@pytest.mark.parametrize('name', KINDS)
def test_it_is_never_opened(
    name: str, make: Callable[[Path], None], tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    root = tmp_path / ('Dataset001_X' if KINDS[name].keys() & CASE.keys() else 'set')
    plant(root, name, make)
    target = str(root / 'panoptic.json' if name.startswith('panoptic') else root)
    scanned = main(['scan', target, '--processes', '1', '--num-classes', '3'])
    fixed = main(['fix', target, '-o', str(tmp_path / 'out'), '--num-classes', '3'])
    assert {scanned, fixed} <= {0, 1, 2}
    assert REPORT_ADVICE not in ''.join(capsys.readouterr())
    assert not [path for path in (tmp_path / 'out').rglob('*') if not path.is_file() and not path.is_dir()]


@pytest.mark.parametrize('beside', [{}, {'classes.txt': 'a\n'}], ids=['alone', 'beside names'])
@pytest.mark.parametrize('name', ['data.yaml', 'classes.txt', 'labels/classes.txt', 'obj.names'])
def test_one_that_would_hold_names_is_a_finding(name: str, beside: Dict[str, str], tmp_path: Path) -> None:
    plant(tmp_path / 'set', name, os.mkfifo)
    for other, text in beside.items():
        if other != name:
            (tmp_path / 'set' / other).write_text(text)
    assert main(['scan', str(tmp_path / 'set'), '--json', str(tmp_path / 'scan.json'), '--num-classes', '3']) == 1
    (found,) = json.loads((tmp_path / 'scan.json').read_text())['datasets']
    assert [one['files'] for one in found['findings'] if one['code'] == 'MG132'] == [[name]]


@pytest.mark.parametrize(
    ('command', 'name'),
    [
        (['scan', '{}'], 'a.json'),
        (['scan', '{}'], 'a.png'),
        (['scan', '{}'], 'a.yaml'),
        (['scan', '{}'], 'a.txt'),
        (['check', '{}'], 'a.yaml'),
        (['check', '{}'], 'a.py'),
        (['fix', '{}', '-o', '{1}/out'], 'a.json'),
        (['report', '{}'], 'label_guard.jsonl'),
        (['report', '{}'], 'label_guard_flight.jsonl'),
        (['report', '{1}'], 'label_guard.jsonl'),
    ],
)
def test_one_that_the_user_names_is_refused(command: Any, name: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / name)
    assert main([word.replace('{1}', str(tmp_path)).format(tmp_path / name) for word in command]) in (1, 2)
