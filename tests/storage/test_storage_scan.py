"""Scans of what lies behind URLs say what the scan of the same files on a disk says, also where requests fail."""

from __future__ import annotations

import json
import shutil
import zipfile
from pathlib import Path
from typing import Any, Dict, Iterator, List, NamedTuple

import numpy as np
import pytest
from PIL import Image

pytest.importorskip('fsspec', reason='URLs are read by fsspec')

from data_sets import write_coco, write_maps, write_nnunet, write_voc, write_yolo
from mmguard.storage.urls import is_url
from servers import KEY, SECRET, environment, http_server, s3_server, upload
from slow_proxy import SlowProxy

from mmguard.cli import main

BUCKET = 's3://bucket'
MAPS = ['--num-classes', '6']
#: Kind -> what is scanned of it, and how.
SCANS: Dict[str, List[str]] = {
    'maps': ['{root}/maps', *MAPS],
    'map': ['{root}/maps/labels/train/003.png', *MAPS],
    'coco': ['{root}/coco/train.json', '--images', '{root}/coco/images'],
    'yolo': ['{root}/yolo/data.yaml'],
}
#: The same through an archive, which takes no requests.
IN_ARCHIVE = {
    'maps': SCANS['maps'],
    'coco': SCANS['coco'],
    'yolo': SCANS['yolo'],
    'yolo, labels alone': ['{root}/yolo/labels/train'],
    'yolo, a list': ['{root}/yolo/train.txt'],
}
#: What is read from a disk only -> its files.
DISK_ONLY = {
    'Labelme': {
        'a.json': '{"shapes": [{"label": "cat", "points": [[1, 1], [20, 1], [20, 20]], "shape_type": "polygon"}],'
        ' "imagePath": "a.png", "imageHeight": 40, "imageWidth": 40}',
        'a.png': '',
    },
    'XML': {'annotations.xml': '<annotations/>', 'images/a.png': ''},
    'boxes beside': {'labelTxt/a.txt': '1 1 20 1 20 20 1 20 plane 0\n', 'images/a.png': ''},
}
_WRITERS = {'maps': write_maps, 'coco': write_coco, 'voc': write_voc, 'nnunet': write_nnunet, 'yolo': write_yolo}


@pytest.fixture(scope='module')
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All data sets, on a disk."""
    root = tmp_path_factory.mktemp('data')
    for kind, write in _WRITERS.items():
        (root / kind).mkdir()
        write(root / kind)
    return root


class Storage(NamedTuple):
    """S3 behind a proxy."""

    url: str
    proxy: SlowProxy


@pytest.fixture(scope='module')
def started(here: Path) -> Iterator[Storage]:
    pytest.importorskip('s3fs', reason='S3 is read by s3fs')
    pytest.importorskip('moto', reason='the server of S3 is that of moto')
    pytest.importorskip('flask_cors', reason='the server of S3 is that of moto')
    with s3_server() as port, pytest.MonkeyPatch.context() as patch:
        proxy = SlowProxy(port)
        for name, value in environment(proxy.port).items():
            patch.setenv(name, value)
        upload(here, BUCKET, port)
        yield Storage(BUCKET, proxy)
        proxy.close()


@pytest.fixture
def s3(started: Storage) -> Iterator[Storage]:
    """In good health, and with nothing asked for."""
    started.proxy.asked.clear()
    yield started
    started.proxy.busy = started.proxy.latency = 0.0
    started.proxy.broken.clear()


def scan(words: List[str], root: Any, out: Path, *more: str) -> Dict[str, Any]:
    """The JSON of a scan without its edits, its paths as if they began with ROOT: fix writes none behind a URL."""
    file = out / 'scan.json'
    journal = ['--journal', str(out / 'journal.jsonl'), '--processes', '1']
    main(['scan', *(word.format(root=root) for word in words), '--json', str(file), *journal, *more])
    record: Dict[str, Any] = json.loads(file.read_text().replace(str(root), 'ROOT'))
    for one in record['datasets']:
        for finding in one['findings']:
            assert not [edit for edit in finding['edits'] if edit.get('files') and is_url(str(root))]
        one['findings'] = sorted(finding['code'] for finding in one['findings'])
    return record


@pytest.mark.parametrize('kind', SCANS)
def test_s3_is_scanned_as_a_disk_is(kind: str, here: Path, s3: Storage, tmp_path: Path) -> None:
    on_disk = scan(SCANS[kind], here, tmp_path)
    assert any(one['findings'] for one in on_disk['datasets'])
    assert scan(SCANS[kind], s3.url, tmp_path) == on_disk


def test_faults_that_pass_change_nothing(here: Path, s3: Storage, tmp_path: Path) -> None:
    on_disk = scan(SCANS['maps'], here, tmp_path)
    s3.proxy.spoiled = 0
    s3.proxy.latency, s3.proxy.busy = 0.02, 0.15
    assert scan(SCANS['maps'], s3.url, tmp_path) == on_disk
    assert s3.proxy.spoiled > 3


def test_what_keeps_failing_is_one_finding(here: Path, s3: Storage, tmp_path: Path, capsys: Any) -> None:
    before = scan(SCANS['maps'], s3.url, tmp_path)['datasets'][0]
    s3.proxy.broken |= {'labels/train/001.png', 'labels/train/002.png'}
    found = scan(SCANS['maps'], s3.url, tmp_path)['datasets'][0]
    maps = found['facts']['maps']
    assert found['decoded'] == 24
    assert sorted(maps['unreadable']['unreadable']) == ['train/001.png', 'train/002.png']
    assert len(found['findings']) == len(before['findings'])  # of what cannot be read there was one


def test_resuming_fetches_what_has_changed(here: Path, s3: Storage, tmp_path: Path) -> None:
    scan(SCANS['maps'], s3.url, tmp_path)
    s3.proxy.asked.clear()
    again = scan(SCANS['maps'], s3.url, tmp_path, '--resume')['datasets'][0]

    assert (again['decoded'], again['reused']) == (0, 24)

    assert not [line for line in s3.proxy.asked if line.startswith('GET') and '.png' in line]
    changed = tmp_path / 'changed'
    changed.mkdir()
    shutil.copy(here / 'maps/labels/train/001.png', changed / '002.png')
    upload(changed, f'{s3.url}/maps/labels/train', s3.proxy.behind)
    try:
        again = scan(SCANS['maps'], s3.url, tmp_path, '--resume')['datasets'][0]
        assert (again['decoded'], again['reused']) == (1, 23)
    finally:
        shutil.copy(here / 'maps/labels/train/002.png', changed / '002.png')
        upload(changed, f'{s3.url}/maps/labels/train', s3.proxy.behind)


def test_fix_of_a_url_writes_nothing(here: Path, tmp_path: Path, capsys: Any) -> None:
    archive = shutil.make_archive(str(tmp_path / 'all'), 'zip', here / 'maps')
    urls = ('s3://bucket/labels', f'zip://labels::{archive}', f'file://{here}/maps/labels', 'https://host/labels')
    for url in (*urls, f'simplecache::file://{here}/maps/labels'):
        for more in ([], ['--edit', '1']):
            assert main(['fix', url, '-o', str(tmp_path / 'out'), *MAPS, *more]) == 2
            said = capsys.readouterr().err
            assert said.count('\n') == 1
    assert [path.name for path in tmp_path.iterdir()] == ['all.zip']


def test_a_config_is_not_run_from_a_url(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / 'config.py').write_text('raise AssertionError\n')
    (tmp_path / 'rtdetr.yml').write_text('__include__: [base.yml]\n')
    archive = shutil.make_archive(str(tmp_path / 'all'), 'zip', tmp_path)
    for name in ('config.py', 'rtdetr.yml'):
        assert main(['scan', f'zip://{name}::{archive}']) == 2
        assert name in capsys.readouterr().err


@pytest.mark.parametrize('kind', [*DISK_ONLY, 'voc', 'nnunet'])
def test_what_is_read_from_a_disk_only_is_refused(kind: str, here: Path, tmp_path: Path, capsys: Any) -> None:
    root = tmp_path / 'set'
    noise = np.random.default_rng(0).integers(0, 256, (40, 40, 3)).astype(np.uint8)
    for name, text in DISK_ONLY.get(kind, {}).items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith('.png'):
            Image.fromarray(noise).save(path)
        else:
            path.write_text(text)
    if not root.exists():
        shutil.copytree(here / kind, root)
    archive = shutil.make_archive(str(tmp_path / 'all'), 'zip', tmp_path, 'set')
    assert main(['scan', f'zip://set::{archive}']) == 2
    assert capsys.readouterr().err.count('\n') == 1


def test_names_in_an_archive_lead_nowhere_else(here: Path, tmp_path: Path, capsys: Any) -> None:
    archive, label = tmp_path / 'all.zip', (here / 'maps/labels/train/001.png').read_bytes()
    deep = '/'.join(['set', *'x' * 20_000, 'a.png'])
    with zipfile.ZipFile(archive, 'w') as file:
        for name in ('set/../../a.png', 'set/..', '/set/b.png', 'set/a\\..\\b.png', deep, 'set/a.png', 'set/./c.png'):
            file.writestr(name, label)
    (one,) = scan([f'zip://set::{archive}', *MAPS], tmp_path, tmp_path)['datasets']
    assert one['facts']['files'] == one['decoded'] == 1


def test_an_archive_is_scanned_as_a_disk_is(here: Path, tmp_path: Path) -> None:
    pytest.importorskip('yaml')
    archive = shutil.make_archive(str(tmp_path / 'all'), 'zip', here)
    for words in IN_ARCHIVE.values():
        inside = [word.replace('{root}/', 'zip://') + (f'::{archive}' if '{root}' in word else '') for word in words]
        assert scan(inside, f'zip://{archive}!', tmp_path) == scan(words, here, tmp_path)


def test_http_is_scanned_as_a_disk_is_and_says_no_secret(here: Path, tmp_path: Path, capsys: Any) -> None:
    with http_server(here) as port:
        host = f'127.0.0.1:{port}'
        for kind in SCANS:
            expected = scan(SCANS[kind], here, tmp_path)
            capsys.readouterr()
            assert scan(SCANS[kind], f'http://{host}', tmp_path) == expected
        # The server knows neither user nor signature, and lets both pass.
        words = [f'http://user:a-long-password@{host}/maps/?signature=0123456789', *MAPS]
        found = scan(words, f'http://{host}', tmp_path, '--html', str(tmp_path / 'page.html'))
        assert found == scan(SCANS['maps'], here, tmp_path)
        main(['scan', f'http://user:a-long-password@{host}/nothing?signature=0123456789'])
    shown = ''.join(capsys.readouterr()) + ''.join(path.read_text() for path in tmp_path.iterdir() if path.is_file())
    assert f'{host}/nothing' in shown
    assert not [secret for secret in ('a-long-password', '0123456789', 'user:') if secret in shown]


def test_credentials_are_shown_nowhere(s3: Storage, tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
    s3.proxy.broken.add('labels/train/001.png')
    scan(SCANS['maps'], s3.url, tmp_path, '--html', str(tmp_path / 'page.html'))
    monkeypatch.setenv('MMGUARD_REQUEST_SECONDS', '2')
    s3.proxy.busy = 1.0
    assert main(['scan', f'{s3.url}/maps', *MAPS]) == 2
    shown = ''.join(capsys.readouterr()) + ''.join(path.read_text() for path in tmp_path.iterdir())
    assert 's3://bucket/maps' in shown
    assert not [secret for secret in (KEY, SECRET) if secret in shown]


@pytest.mark.slow
def test_workers_read_the_same_urls(here: Path, s3: Storage, tmp_path: Path) -> None:
    distributed = pytest.importorskip('distributed')
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50) as local:
        for kind in ('maps', 'yolo'):
            found = scan(SCANS[kind], s3.url, tmp_path, '--dask', local.scheduler_address)
            assert found == scan(SCANS[kind], here, tmp_path)
