"""Servers and archives that lie, wait or never end: one finding, in time, in bounded memory; nobody else is asked."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from typing import Any, Dict, List

import numpy as np
import pytest
from hostile_server import hostile_server
from mmguard.storage.requests import SECONDS
from PIL import Image

from mmguard.cli import main

#: Prints the most memory that it has held, MiB, after the command.
_WITH_MEMORY = """
import re, sys
from mmguard.cli import main
code = main(sys.argv[1:])
print(re.search(r'VmHWM:\\s+(\\d+) kB', open('/proc/self/status').read())[1])
sys.exit(code)
"""


@pytest.fixture(scope='module')
def png() -> bytes:
    file = io.BytesIO()
    Image.fromarray(np.random.default_rng(0).integers(0, 6, (32, 32)).astype(np.uint8)).save(file, 'png')
    return file.getvalue()


def scan(target: str, out: Path, *more: str) -> Dict[str, Any]:
    words = ['scan', target, '--num-classes', '6', '--journal', str(out / 'journal'), '--json', str(out / 'scan.json')]
    assert main([*words, '--processes', '1', *more]) in (0, 1)
    (one,) = json.loads((out / 'scan.json').read_text())['datasets']
    found: Dict[str, Any] = one
    return found


@pytest.mark.parametrize(
    'kind',
    [
        'hangs',
        'trickles',
        'trickles_its_head',
        'is_endless',
        'says_more',
        'says_terabytes',
        'says_nonsense',
        'expands',
        'fails',
        'redirects',
        'redirects_to_a_file',
        'redirects_to_itself',
    ],
)
def test_a_file_that_a_server_does_not_give_is_one_finding(
    kind: str, png: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SECONDS, '1')
    begun = time.monotonic()
    with hostile_server(png) as other, hostile_server(png, other.url) as server:
        found = scan(f'{server.url}/{kind}', tmp_path)
        assert time.monotonic() - begun < 12
        assert other.asked == []
        assert {path.rpartition('/')[2] for path in server.asked} <= {kind, '', 'bad.png', 'good.png', '..%2fup.png'}
    assert found['decoded'] == 2
    assert [len(files) for files in found['facts']['maps']['unreadable'].values()] == [1]


@pytest.mark.parametrize('kind', ['every_hangs', 'every_page_is_endless'])
def test_a_server_that_cannot_be_listed_ends_the_scan(
    kind: str, png: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SECONDS, '1')
    with hostile_server(png) as server:
        assert main(['scan', f'{server.url}/{kind}', '--num-classes', '6', '--journal', str(tmp_path / 'j')]) == 2


@pytest.mark.slow
def test_what_is_waited_for_is_said(
    png: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setenv(SECONDS, '11.5')
    with hostile_server(png) as server:
        scan(f'{server.url}/hangs', tmp_path)
        assert f'{server.url}/hangs/bad.png' in capsys.readouterr().err


def peak_of(words: List[str], code: int) -> float:
    """The most memory of a command, MiB."""
    done = subprocess.run([sys.executable, '-c', _WITH_MEMORY, *words], stdout=subprocess.PIPE, text=True)
    assert done.returncode == code
    return int(done.stdout.split()[-1]) / 1024


def test_a_bomb_in_an_archive_is_one_finding_in_bounded_memory(png: bytes, tmp_path: Path) -> None:
    plain, bomb = tmp_path / 'plain.zip', tmp_path / 'bomb.zip'
    for path in (plain, bomb):
        with zipfile.ZipFile(path, 'w', zipfile.ZIP_DEFLATED, compresslevel=1) as file:
            file.writestr('labels/good.png', png)
            with file.open('labels/bad.png', 'w', force_zip64=True) as member:
                member.write(png)
                for _ in range(64 if path == bomb else 0):
                    member.write(bytes(1 << 23))
    words = ['--num-classes', '6', '--processes', '1', '--journal', str(tmp_path / 'journal')]
    before = peak_of(['scan', f'zip://labels::{plain}', *words], 0)
    after = peak_of(['scan', f'zip://labels::{bomb}', *words], 1)
    assert after - before < 60
    found = scan(f'zip://labels::{bomb}', tmp_path)
    assert found['decoded'] == 2
    assert [len(files) for files in found['facts']['maps']['unreadable'].values()] == [1]


def test_a_coco_file_that_is_a_bomb_is_one_finding(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / 'bomb.zip', 'w', zipfile.ZIP_DEFLATED, compresslevel=1) as file:
        file.writestr('train.json', b'{"images": [' + b' ' * (1 << 25))
    found = scan(f'zip://train.json::{tmp_path / "bomb.zip"}', tmp_path)
    assert list(found['facts']['annotations']['unreadable'].values()) == [['train.json']]


@pytest.mark.parametrize('damage', ['says less', 'says more', 'broken', 'encrypted', 'bzip2', 'lzma'])
def test_a_member_that_is_not_what_the_archive_says_is_one_finding(damage: str, png: bytes, tmp_path: Path) -> None:
    path = tmp_path / 'all.zip'
    method = {'bzip2': zipfile.ZIP_BZIP2, 'lzma': zipfile.ZIP_LZMA}.get(damage, zipfile.ZIP_DEFLATED)
    with zipfile.ZipFile(path, 'w') as file:
        file.writestr('labels/good.png', png)
        file.writestr('labels/bad.png', png, method)
    data = bytearray(path.read_bytes())
    entry = data.rindex(b'PK\x01\x02')  # bad.png in the list of members
    if damage in ('says less', 'says more'):
        size = 50 if damage == 'says less' else 10 * len(png)
        data[entry + 24 : entry + 28] = size.to_bytes(4, 'little')
    elif damage == 'broken':
        start = data.index(b'bad.png') + 30
        data[start : start + 20] = bytes(20)
    elif damage == 'encrypted':
        data[entry + 8] |= 1
    path.write_bytes(data)
    found = scan(f'zip://labels::{path}', tmp_path)
    assert found['decoded'] == 2
    assert [len(files) for files in found['facts']['maps']['unreadable'].values()] == [1]


@pytest.mark.parametrize('what', ['list of members', 'no zip', 'empty', 'fifo'])
def test_an_archive_that_is_too_large_or_none_ends_the_scan(what: str, tmp_path: Path) -> None:
    path = tmp_path / 'all.zip'
    if what == 'list of members':
        with zipfile.ZipFile(path, 'w') as file:
            for number in range(1100):
                file.writestr(f'{number:04d}{"x" * 65_000}.png', b'')
    elif what == 'fifo':
        os.mkfifo(path)
    else:
        path.write_bytes(b'' if what == 'empty' else b'PK' * 2000)
    assert main(['scan', f'zip://labels::{path}', '--num-classes', '6', '--journal', str(tmp_path / 'j')]) == 2


_COCO = {
    'images': [
        {'id': 1, 'file_name': 'a.png', 'coco_url': '{url}/2/a.png', 'width': 32, 'height': 32},
        {'id': 2, 'file_name': '{url}/2/b.png', 'coco_url': '{url}/2/b.png', 'width': 32, 'height': 32},
    ],
    'categories': [{'id': 1, 'name': 'x'}],
    'annotations': [{'id': 1, 'image_id': 1, 'category_id': 1, 'bbox': [0, 0, 9, 9], 'area': 81, 'iscrowd': 0}],
}
_VOC = (
    '<annotation><folder>{url}</folder><filename>{url}/a.jpg</filename><path>{url}/a.jpg</path><size><width>32</width>'
    '<height>32</height></size><object><name>x</name><bndbox><xmin>1</xmin><ymin>1</ymin><xmax>9</xmax><ymax>9</ymax>'
    '</bndbox></object></annotation>'
)
_NNUNET = {
    'channel_names': {'0': 'CT'}, 'labels': {'background': 0, 'x': 1}, 'numTraining': 1, 'file_ending': '.png',
    'dataset': {'c0': {'images': ['{url}/imagesTr/c0_0000.png'], 'label': '{url}/labelsTr/c0.png'}},
}  # fmt: skip
#: Name -> the files of a data set that name addresses, and the exit code of its scan.
NAMES: Dict[str, Any] = {
    'coco': ({'train.json': json.dumps(_COCO), 'images/a.png': ''}, ['train.json', '--images', 'images'], 1),
    'coco, by url': ({'train.json': json.dumps(_COCO).replace('file_name', 'x')}, ['train.json', '--images', '.'], 1),
    'yolo, train': ({'data.yaml': 'train: {url}/images\nval: {url}/val.txt\nnames: [x]\n'}, ['.'], 2),
    'yolo, path': ({'data.yaml': 'path: {url}\ntrain: images\nval: images\nnames: [x]\n'}, ['data.yaml'], 2),
    'yolo, list': (
        {
            'data.yaml': 'train: train.txt\nval: train.txt\nnames: [x]\n',
            'train.txt': '{url}/images/b.png\n./images/a.png\n',
            'images/a.png': '',
            'labels/a.txt': '0 .5 .5 .2 .2\n',
        },
        ['data.yaml'],
        1,
    ),
    'voc': ({'Annotations/a.xml': _VOC, 'ImageSets/Main/train.txt': '{url}/a\na\n'}, ['.'], 1),
    'nnunet': ({'dataset.json': json.dumps(_NNUNET), 'labelsTr/c1.png': '', 'imagesTr/c1_0000.png': ''}, ['.'], 1),
    'labelme': (
        {
            'a.json': '{"shapes": [{"label": "x", "points": [[1, 1], [20, 1], [20, 20]], "shape_type": "polygon"}],'
            ' "imagePath": "{url}/a.png", "imageHeight": 32, "imageWidth": 32, "imageData": null}'
        },
        ['.'],
        1,
    ),
}


@pytest.mark.parametrize('scheme', ['http', 's3'])
@pytest.mark.parametrize('kind', NAMES)
def test_a_data_set_on_a_disk_decides_no_connection(
    kind: str, scheme: str, png: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files, words, code = NAMES[kind]
    with hostile_server(png) as server:
        monkeypatch.setenv('AWS_ENDPOINT_URL', server.url)
        monkeypatch.setenv('AWS_ACCESS_KEY_ID', 'AKIAEXAMPLEOFTESTS')
        monkeypatch.setenv('AWS_SECRET_ACCESS_KEY', 'a-secret-that-nobody-shows')
        root = tmp_path / 'set'
        for name, text in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            address = f'{server.url}/ok' if scheme == 'http' else 's3://attacker/x'
            (root / name).write_bytes(text.replace('{url}', address).encode() if text else png)
        monkeypatch.chdir(root)
        out = tmp_path / 'scan.json'
        more = ['--json', str(out), '--journal', str(tmp_path / 'journal'), '--processes', '1']
        assert main(['scan', *words, *more]) == code
        if 'coco' in kind or kind == 'yolo, list':
            (*_, one) = json.loads(out.read_text())['datasets']
            assert one['facts']['annotations']['missing'] >= 1
        main(['fix', words[0], '-o', str(tmp_path / 'out')])
        assert server.asked == []


def test_names_behind_a_url_lead_to_no_other_host_and_not_above(png: bytes, tmp_path: Path) -> None:
    with hostile_server(png) as other, hostile_server(png) as server:
        names = [
            'good.png',
            f'{other.url}/ok/good.png',
            '../../ok/up.png',
            '/etc/passwd',
            '..%2fup.png',
            '//127.0.0.1/x.png',
        ]
        images = [{'id': n, 'file_name': name, 'width': 32, 'height': 32} for n, name in enumerate(names)]
        (tmp_path / 'train.json').write_text(json.dumps({'images': images, 'annotations': [], 'categories': []}))
        words = ['scan', str(tmp_path / 'train.json'), '--images', f'{server.url}/ok', '--json', str(tmp_path / 'scan')]
        assert main(words) == 1
        assert other.asked == []
        assert {line.split(' ')[1] for line in server.asked if 'good' not in line} <= {
            '/ok', '/ok/', '/ok/etc/', '/ok/etc/passwd', '/ok/127.0.0.1/', '/ok/127.0.0.1/x.png'
        }  # fmt: skip
        (one,) = json.loads((tmp_path / 'scan').read_text())['datasets']
        assert one['facts']['annotations']['sizes_compared'] >= 1


def test_a_data_set_of_yolo_behind_a_url_stays_on_its_host(png: bytes, tmp_path: Path) -> None:
    from servers import http_server

    with hostile_server(png) as other:
        files = {
            'data.yaml': f'path: {other.url}/ok\ntrain: train.txt\nval: ../../val\nnames: [x]\n',
            'train.txt': f'./images/a.png\n{other.url}/ok/images/b.png\n../../images/c.png\n/etc/images/d.png\n',
            'labels/a.txt': '0 .5 .5 .2 .2\n',
        }
        for name, text in files.items():
            (tmp_path / 'set' / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / 'set' / name).write_text(text)
        (tmp_path / 'set' / 'images').mkdir()
        (tmp_path / 'set' / 'images' / 'a.png').write_bytes(png)
        with http_server(tmp_path) as port:
            out = tmp_path / 'scan.json'
            assert main(['scan', f'http://127.0.0.1:{port}/set/data.yaml', '--json', str(out)]) == 2
        (one,) = json.loads(out.read_text())['datasets']
        assert one['facts']['annotations']['missing'] == 3
        assert other.asked == []
