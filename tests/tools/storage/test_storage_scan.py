"""Scans of what lies behind URLs say what the scan of the same files on a disk says, also where requests fail."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
import zipfile
from pathlib import Path
from typing import Any, Dict, Iterator, List, NamedTuple

import numpy as np
import pytest
from PIL import Image

pytest.importorskip('fsspec', reason='URLs are read by fsspec')

from data_sets import write_coco, write_maps, write_nnunet, write_voc, write_yolo
from servers import KEY, SECRET, environment, http_server, s3_server, upload
from slow_proxy import SlowProxy

from mmguard.cli import main
from mmguard.tools.storage import tried

BUCKET = 's3://bucket'
MAPS = ['--num-classes', '6']
#: Kind -> what is scanned of it, and how.
SCANS: Dict[str, List[str]] = {
    'maps': ['{root}/maps', *MAPS],
    'map': ['{root}/maps/labels/train/003.png', *MAPS],
    'coco': ['{root}/coco/train.json', '--images', '{root}/coco/images'],
    'voc': ['{root}/voc'],
    'nnunet': ['{root}/nnunet'],
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
#: What is read from a disk alone, as a message calls it -> its files.
DISK_ALONE = {
    'files of Labelme': {
        'a.json': '{"shapes": [{"label": "cat", "points": [[1, 1], [20, 1], [20, 20]], "shape_type": "polygon"}],'
        ' "imagePath": "a.png", "imageHeight": 40, "imageWidth": 40}',
        'a.png': '',
    },
    'polygons of Cityscapes': {
        'gtFine/train/aachen/a_gtFine_polygons.json': json.dumps(
            dict(imgHeight=40, imgWidth=40, objects=[dict(label='road', polygon=[[1, 1], [20, 1], [20, 20]])])
        )
    },
    'XML of CVAT': {
        'annotations.xml': '<annotations><version>1.1</version><image id="0" name="a.png" width="40" height="40">'
        '<box label="cat" xtl="1" ytl="1" xbr="20" ybr="20" occluded="0"/></image></annotations>'
    },
    'labels of oriented boxes': {'labelTxt/a.txt': '1 1 20 1 20 20 1 20 plane 0\n', 'images/a.png': ''},
}  # fmt: skip
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
def s3(started: Storage, monkeypatch: pytest.MonkeyPatch) -> Iterator[Storage]:
    """In good health, and with nothing asked for."""
    monkeypatch.setattr(tried, 'FIRST_WAIT', 0.001)
    started.proxy.asked.clear()
    yield started
    started.proxy.busy = started.proxy.cut = started.proxy.latency = 0.0
    started.proxy.broken.clear()


def scan(words: List[str], root: Any, out: Path, *more: str) -> Dict[str, Any]:
    """The JSON of a scan, its paths as if they began with ROOT."""
    file = out / 'scan.json'
    journal = ['--journal', str(out / 'journal.jsonl'), '--processes', '1']
    main(['scan', *(word.format(root=root) for word in words), '--json', str(file), *journal, *more])
    # A shell would read something into the ! of an archive.
    text = re.sub(r"'(ROOT[^']*)'", r'\1', file.read_text().replace(str(root), 'ROOT'))
    # A copy of what lies behind a URL cannot lie beside it.
    for beside in (*(f'{kind}/' for kind in _WRITERS), ''):
        text = text.replace(f'--out ROOT/{beside}', '--out ')
    record: Dict[str, Any] = json.loads(text)
    return record


@pytest.mark.parametrize('kind', SCANS)
def test_s3_is_scanned_as_a_disk_is(kind: str, here: Path, s3: Storage, tmp_path: Path) -> None:
    on_disk = scan(SCANS[kind], here, tmp_path)
    assert any(one['findings'] for one in on_disk['datasets'])
    assert scan(SCANS[kind], s3.url, tmp_path) == on_disk


def test_faults_that_pass_change_nothing(here: Path, s3: Storage, tmp_path: Path) -> None:
    on_disk = scan(SCANS['maps'], here, tmp_path)
    s3.proxy.spoiled = 0
    s3.proxy.latency, s3.proxy.busy, s3.proxy.cut = 0.02, 0.05, 0.05
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


def test_copies_of_what_lies_there_are_written_here(here: Path, s3: Storage, tmp_path: Path) -> None:
    for root, out in ((s3.url, 'far'), (str(here), 'near')):
        main(['fix', f'{root}/maps/labels', '-o', str(tmp_path / out / 'maps'), *MAPS])
        main(['fix', f'{root}/coco/train.json', '-o', str(tmp_path / out / 'coco'), '--boxes', 'corners'])
        main(['fix', f'{root}/voc', '-o', str(tmp_path / out / 'voc')])
        main(['fix', f'{root}/yolo/data.yaml', '-o', str(tmp_path / out / 'yolo')])
    near = {path.relative_to(tmp_path / 'near') for path in (tmp_path / 'near').rglob('*') if path.is_file()}
    labels = [path for path in near if path.name != 'manifest.json' and path.parts[1] not in ('JPEGImages', 'images')]
    assert len(labels) > 24
    for path in labels:
        assert (tmp_path / 'far' / path).read_bytes() == (tmp_path / 'near' / path).read_bytes()
    assert not list((tmp_path / 'far').rglob('*.jpg'))
    assert (tmp_path / 'far/yolo/labels/train/0.txt').read_text() == '0 .5 .5 .2 .2\n'


def test_a_config_is_not_run_from_a_url(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / 'config.py').write_text('raise AssertionError\n')
    (tmp_path / 'rtdetr.yml').write_text('__include__: [base.yml]\n')
    archive = shutil.make_archive(str(tmp_path / 'all'), 'zip', tmp_path)
    for name in ('config.py', 'rtdetr.yml'):
        assert main(['scan', f'zip://{name}::{archive}']) == 2
        assert 'copy it here' in capsys.readouterr().err


@pytest.mark.parametrize('kind', DISK_ALONE)
def test_what_a_disk_alone_is_read_for_is_refused_by_its_name(kind: str, tmp_path: Path, capsys: Any) -> None:
    root = tmp_path / 'set'
    noise = np.random.default_rng(0).integers(0, 256, (40, 40, 3)).astype(np.uint8)
    for name, text in DISK_ALONE[kind].items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith('.png'):
            Image.fromarray(noise).save(path)
        else:
            path.write_text(text)
    archive = shutil.make_archive(str(tmp_path / 'all'), 'zip', tmp_path, 'set')
    for command in (['scan'], ['fix', '--out', str(tmp_path / 'fixed')]):
        assert main([*command, f'zip://set::{archive}']) == 2
        assert f'{kind}, which are read from a disk: copy them here, or mount the storage' in capsys.readouterr().err
    assert main(['scan', str(root), '--journal', str(tmp_path / 'journal')]) in (0, 1)


def test_names_of_a_server_lead_nowhere_else(tmp_path: Path, monkeypatch: Any) -> None:
    archive = tmp_path / 'all.zip'
    with zipfile.ZipFile(archive, 'w') as file:
        for name in ('set/../../a.json', 'set/..', 'set/' + 'x' * 300 + '.json', 'set/a.json'):
            file.writestr(name, '{"shapes": []}')
    monkeypatch.setattr(tempfile, 'tempdir', str(tmp_path / 'deep' / 'er'))
    (tmp_path / 'deep' / 'er').mkdir(parents=True)
    assert main(['scan', f'zip://set::{archive}']) == 2
    assert sorted(path.name for path in tmp_path.rglob('*')) == ['all.zip', 'deep', 'er']


def test_an_archive_is_scanned_as_a_disk_is(here: Path, tmp_path: Path) -> None:
    pytest.importorskip('yaml')
    archive = shutil.make_archive(str(tmp_path / 'all'), 'zip', here)
    for words in IN_ARCHIVE.values():
        inside = [word.replace('{root}/', 'zip://') + (f'::{archive}' if '{root}' in word else '') for word in words]
        assert scan(inside, f'zip://{archive}!', tmp_path) == scan(words, here, tmp_path)


def test_http_is_scanned_as_a_disk_is_and_says_no_secret(here: Path, tmp_path: Path, capsys: Any) -> None:
    pytest.importorskip('aiohttp', reason='https:// is read by aiohttp')
    with http_server(here) as port:
        host = f'127.0.0.1:{port}'
        for kind in ('maps', 'coco', 'voc', 'nnunet', 'yolo'):
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
    monkeypatch.setattr(tried, 'TRIES', 1)
    s3.proxy.busy = 1.0
    assert main(['scan', f'{s3.url}/maps', *MAPS]) == 2
    shown = ''.join(capsys.readouterr()) + ''.join(path.read_text() for path in tmp_path.iterdir())
    assert 'failed 1 times' in shown
    assert not [secret for secret in (KEY, SECRET) if secret in shown]


@pytest.mark.slow
def test_workers_read_the_same_urls(here: Path, s3: Storage, tmp_path: Path) -> None:
    distributed = pytest.importorskip('distributed')
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50) as local:
        found = scan(SCANS['maps'], s3.url, tmp_path, '--dask', local.scheduler_address)
    assert found == scan(SCANS['maps'], here, tmp_path)
