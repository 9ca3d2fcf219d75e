"""SECURITY.md, line by line: each row of its tables has a check here, which is named after it."""

from __future__ import annotations

import functools
import http.server
import io
import json
import os
import pickle
import re
import subprocess
import sys
import threading
import time
import zipfile
import zlib
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Tuple

import numpy as np
import pytest
import torch

from mmguard.cli import main
from mmguard.errors import CannotRun
from mmguard.files import plain_data
from mmguard.files.inside import OutsideError, resolve_inside
from mmguard.files.regular import hold_folder
from mmguard.formats.labelme import records as labelme_json
from mmguard.formats.maps import forms
from mmguard.formats.voc import records as voc_xml
from mmguard.formats.yolo import data_yaml as declared
from mmguard.formats.yolo import rows as settings
from mmguard.scanning import processes
from mmguard.storage import archives, requests, systems, urls
from mmguard.storage.files import FILES, LARGEST, LARGEST_FILE
from mmguard.tools.child import python_command
from mmguard.tools.explain import troubles

PAGE = (Path(__file__).parent.parent / 'SECURITY.md').read_text(encoding='utf-8')
#: First cell of a row -> the second.
ROWS: Dict[str, str] = dict(re.findall(r'^\| (?!what |---)(.+?) \| (.+) \|$', PAGE, re.MULTILINE))
CHECKS: Dict[str, Callable[..., None]] = {}
COCO = {
    'images': [{'id': 1, 'file_name': 'a.jpg', 'width': 8, 'height': 8}],
    'categories': [{'id': 1, 'name': 'x'}],
    'annotations': [{'id': 1, 'image_id': 1, 'category_id': 1, 'bbox': [0, 0, 4, 4], 'area': 16, 'iscrowd': 0}],
}
HEAD = {'type': 'FCNHead', 'num_classes': 3}
MODEL = {'type': 'EncoderDecoder', 'decode_head': HEAD}


def line(name: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Register the check of a row."""

    def register(check: Callable[..., None]) -> Callable[..., None]:
        CHECKS[name] = check
        return check

    return register


class Calling:
    """Pickled as the call of a function that writes a file."""

    def __init__(self, mark: Path) -> None:
        self.mark = str(mark)

    def __reduce__(self) -> Tuple[Any, ...]:
        return (open, (self.mark, 'w'))


class Server(http.server.ThreadingHTTPServer):
    """A folder with one label map, as the first folder of its path says.

    Args:
        elsewhere (str): Where ``/redirects/a.png`` leads.

    Attributes:
        asked (list[str]): The path of each request.
    """

    daemon_threads = True

    def __init__(self, elsewhere: str = '') -> None:
        super().__init__(('127.0.0.1', 0), Handler)
        self.asked: List[str] = []
        self.elsewhere, self.over = elsewhere, threading.Event()

    @property
    def url(self) -> str:
        return f'http://127.0.0.1:{self.server_port}'


class Handler(http.server.BaseHTTPRequestHandler):
    server: Server

    def log_message(self, *_: Any) -> None:
        pass

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        kind, _, name = self.path.partition('?')[0].strip('/').partition('/')
        length = None
        if kind == 'hangs':
            self.server.over.wait(20)
        if kind == 'redirects' and name:
            self.send_response(302)
            self.send_header('Location', f'{self.server.elsewhere}/maps/a.png')
            self.send_header('Content-Length', '0')
            self.end_headers()
            return
        body = png() if name else b'<a href="a.png">a.png</a>'
        if kind == 'long':
            body = b'x' * (systems.LARGEST_PAGE + 1)
        if kind.isdigit() and name:
            length = int(kind)
        self.send_response(200)
        self.send_header('Content-Type', 'image/png' if name else 'text/html')
        self.send_header('Content-Length', str(length or len(body)))
        self.end_headers()
        if self.command == 'GET':
            self.wfile.write(body)


@contextmanager
def serve(elsewhere: str = '') -> Iterator[Server]:
    server = Server(elsewhere)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        server.over.set()
        server.shutdown()
        server.server_close()


@functools.lru_cache(maxsize=None)
def png() -> bytes:
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(np.arange(64, dtype=np.uint8).reshape(8, 8) % 3).save(file, 'png')
    return file.getvalue()


def write(folder: Path, **contents: Any) -> Path:
    """Write files; ``__`` in a name is ``/``, and the last ``_`` the dot."""
    for name, content in contents.items():
        path = folder / '.'.join(name.replace('__', '/').rsplit('_', 1))
        path.parent.mkdir(parents=True, exist_ok=True)
        if not isinstance(content, (str, bytes)):
            content = json.dumps(content)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


def write_yolo(folder: Path, data: str = '', label: str = '0 .5 .5 .1 .1\n') -> Path:
    text = f'{data}train: images\nval: images\nnames: [a]\n'
    return write(folder, images__a_png=png(), labels__a_txt=label, data_yaml=text)


def scan(target: Any, *words: Any) -> int:
    return main(['scan', str(target), '--processes', '1', '--journal', os.devnull, *map(str, words)])


def scan_facts(target: Any, folder: Path, *words: Any) -> Dict[str, Any]:
    assert scan(target, '--json', folder / 'facts.json', *words) in (0, 1)
    (one,) = json.loads((folder / 'facts.json').read_text())['datasets']
    facts: Dict[str, Any] = one['facts']
    return facts


def count_unreadable(facts: Dict[str, Any]) -> int:
    return sum(map(len, facts['maps'].get('unreadable', {}).values()))


@pytest.fixture
def mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return the file that ``evil_code.py`` writes; the folder of both is the working directory."""
    (tmp_path / 'evil_code.py').write_text(f'open({str(tmp_path / "ran")!r}, "w").close()\n')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, 'path', [*sys.path])
    yield tmp_path / 'ran'
    sys.modules.pop('evil_code', None)


@line('a config in Python')
def check_python_config(row: str, folder: Path, mark: Path, capsys: Any) -> None:
    pytest.importorskip('mmengine')
    write(folder, config_py=(folder / 'evil_code.py').read_text() + 'model = dict(type="A")\n')
    main(['check', 'config.py'])
    assert mark.exists()
    named = {words.split()[0] for words in re.findall('`([a-z][^`]*)`', row)} - {'custom_imports'}
    assert named == {'scan', 'check', 'dry-run', 'apply', 'fix', 'explain', 'trace', 'replay'}
    for command in named:
        capsys.readouterr()
        with pytest.raises(SystemExit):
            main([command, '--help'])
        assert 'Python' in capsys.readouterr().out


@line('the program of a config')
def check_program(row: str, folder: Path, mark: Path, capsys: Any) -> None:
    pytest.importorskip('mmseg')
    # Two classes, but a head of three: check has an edit to offer.
    module = (
        'from mmseg.datasets import BaseSegDataset\nfrom mmseg.registry import DATASETS\n'
        '@DATASETS.register_module(force=True)\nclass MarkingDataset(BaseSegDataset):\n'
        '    METAINFO = dict(classes=("a", "b"), palette=[[0, 0, 0], [1, 1, 1]])\n'
        f'    def load_data_list(self):\n        open({str(mark)!r}, "w").close()\n        return []\n'
    )
    parts = {
        'default_scope': 'mmseg',
        'custom_imports': {'imports': ['marking'], 'allow_failed_imports': False},
        'model': MODEL,
        'train_dataloader': {'dataset': {'type': 'MarkingDataset', 'pipeline': []}},
    }
    config = '\n'.join(f'{key} = {value!r}' for key, value in parts.items())
    write(folder, marking_py=module, config_py=config, config_json=json.dumps(parts))
    apply = ['apply', 'config.py', '-o', 'out.py', '--edit', '1']
    data = (['dry-run', 'config.json'], ['check', 'config.json'])
    for words in (*data, ['check', 'config.py', '--no-verify'], [*apply, '--no-verify']):
        main(words)
        assert not mark.exists()
    for words in (['check', 'config.py'], [*apply, '--force'], ['dry-run', 'config.py', '--only', 'samples-survive']):
        main(words)
        assert mark.exists()
        mark.unlink()


@line('the data set of a config')
def check_data_set(row: str, folder: Path, mark: Path, capsys: Any) -> None:
    pytest.importorskip('mmseg')
    module = (
        'from mmseg.datasets import BaseSegDataset\nfrom mmseg.registry import DATASETS\n'
        '@DATASETS.register_module(force=True)\nclass EvilDataset(BaseSegDataset):\n'
        f'    def load_data_list(self):\n        open({str(mark)!r}, "w").close()\n'
        '        return super().load_data_list()\n'
    )
    data = {'type': 'EvilDataset', 'img_suffix': '.png', 'metainfo': {'classes': ['a', 'b', 'c']}, 'pipeline': []}
    data['data_prefix'] = {'img_path': str(folder / 'maps'), 'seg_map_path': str(folder / 'maps')}
    config = f"default_scope = 'mmseg'\nmodel = {MODEL!r}\ntrain_dataloader = dict(dataset={data!r})\n"
    record = '{"format": 2, "capacity": 9}\n{"iter": 1, "samples": [{"path": "a.png"}]}\n'
    write(folder, evil_code_py=module, maps__a_png=png(), flight_jsonl=record)
    write(folder, config_py=f"custom_imports = dict(imports=['evil_code'])\n{config}")
    for words in (['scan', 'config.py'], ['trace', 'config.py'], ['replay', 'config.py', 'flight.jsonl']):
        assert f'`{words[0]}`' in row
        main(words)
        assert mark.exists(), words
        mark.unlink()
    main(['check', 'config.py'])
    assert not mark.exists()


@line('a config in YAML or JSON')
def check_config_of_data(row: str, folder: Path, mark: Path, capsys: Any) -> None:
    pytest.importorskip('mmengine')
    config = {'default_scope': 'mmseg', 'model': MODEL}
    write(folder, based_json={**config, '_base_': 'evil_code.py'}, typed_json={**config, 'x': {'type': 'evil_code.X'}})
    write(folder, importing_yaml={**config, 'custom_imports': {'imports': ['evil_code']}})
    assert [main(['check', 'based.json']), main(['check', 'typed.json'])] == [2, 2]
    main(['check', 'importing.yaml'])
    (folder / 'evil.pkl').write_bytes(pickle.dumps(Calling(mark)))
    (folder / 'evil.pickle').write_bytes(pickle.dumps(Calling(mark)))
    for name, loaded in {'DecathlonDataset': 'evil.pkl', 'mmseg.DecathlonDataset': 'evil.pickle'}.items():
        data = {'type': name, 'data_root': str(folder), 'ann_file': loaded, 'pipeline': []}
        write(folder, pickled_yaml={**config, 'train_dataloader': {'dataset': data}})
        assert main(['scan', 'pickled.yaml']) == 2
    assert not mark.exists()
    main(['check', 'importing.yaml', '--run-code'])
    assert mark.exists()


@line('data.yaml, dataset.json, annotations')
def check_data(row: str, folder: Path, mark: Path, capsys: Any) -> None:
    write_yolo(folder / 'based', '_base_: ../evil_code.py\ncustom_imports: {imports: [evil_code]}\n')
    write_yolo(folder / 'tagged', f'x: !!python/object/apply:open [{mark}, w]\n')
    entity = '<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><annotation><object>&b;</object></annotation>'
    write(folder / 'voc', Annotations__a_xml=entity)
    main(['fix', 'based', '-o', 'out'])
    assert scan_facts('based', folder)['annotations']['annotations'] == 1
    assert [scan('tagged'), scan('voc')] == [1, 1]
    assert 'root:' not in capsys.readouterr().out
    assert not mark.exists()


@line('checkpoints (`replay --weights`)')
def check_checkpoints(row: str, folder: Path, mark: Path, capsys: Any) -> None:
    pytest.importorskip('mmengine')
    from mmguard.tools.replay.network import read_checkpoint

    torch.save({'weight': torch.ones(2)}, folder / 'good.pth')
    torch.save({'weight': torch.ones(2), 'x': Calling(mark)}, folder / 'evil.pth')
    assert torch.equal(read_checkpoint(str(folder / 'good.pth'))['weight'], torch.ones(2))
    with pytest.raises(CannotRun):
        read_checkpoint(str(folder / 'evil.pth'))
    assert not mark.exists()


@line('NumPy files')
def check_arrays(row: str, folder: Path, mark: Path, capsys: Any) -> None:
    np.save(folder / 'a.npy', np.array([[Calling(mark)]], dtype=object))
    np.save(folder / 'b.npy', np.zeros((4, 4), np.uint8))
    write(folder / 'maps', **{f'{name}_npy': (folder / f'{name}.npy').read_bytes() for name in 'ab'})
    assert count_unreadable(scan_facts('maps', folder, '--num-classes', 3, '--suffix', '.npy')) == 1
    with pytest.raises(ValueError):
        plain_data.parse_weights((folder / 'a.npy').read_bytes(), '.npy')
    assert not mark.exists()


@line('logs, notebooks, crash reports')
def check_logs(row: str, folder: Path, mark: Path, capsys: Any) -> None:
    error = (
        'Traceback (most recent call last):\n  File "a.py", line 1\nIndexError: Target 7 \x1b[31mis out of bounds.\n'
    )
    cell = {
        'cell_type': 'code',
        'source': ['import evil_code'],
        'outputs': [{'output_type': 'stream', 'text': [error]}],
    }
    write(folder, book_ipynb={'cells': [cell], 'metadata': {}, 'nbformat': 4}, train_log=error)
    assert [main(['explain', 'book.ipynb']), main(['explain', 'train.log'])] == [1, 1]
    assert '\x1b' not in capsys.readouterr().out
    assert not mark.exists()
    write_yolo(folder / 'set').joinpath('data.yaml').write_text(
        'train: images\nval: images\nnames: ["<script>alert(1)</script>"]\n'
    )
    scan('set', '--html', 'page.html')
    assert '<script>alert(1)' not in (folder / 'page.html').read_text()


@line('the working directory')
def check_working_directory(row: str, folder: Path, mark: Path, capsys: Any) -> None:
    for name in ('json', 'numpy', 'mmguard', 'sitecustomize'):
        (folder / f'{name}.py').write_text((folder / 'evil_code.py').read_text())
    subprocess.run([*python_command('import json, numpy, mmguard')], check=True)
    assert not mark.exists()


@line('URLs that you name')
def check_named_urls(row: str, folder: Path, mark: Path, capsys: Any) -> None:
    with serve() as other, serve() as server:
        assert scan(f'{server.url}/maps', '--num-classes', 3) == 0
        assert '/maps/a.png' in server.asked
        assert urls.is_followed(f'{server.url}/else/a.png')
        assert not urls.is_followed(f'{other.url}/maps/a.png')
        server.asked.clear()
        assert main(['fix', f'{server.url}/maps', '-o', 'out', '--num-classes', '3']) == 2
        assert server.asked == []


@line('URLs and hosts that data name')
def check_names_of_hosts(row: str, folder: Path, mark: Path, capsys: Any) -> None:
    with serve() as server:
        names = [
            f'{server.url}/maps/a.png',
            's3://bucket/a.png',
            f'//127.0.0.1:{server.server_port}/a.png',
            r'\\host\a',
        ]
        images = [{'id': n, 'file_name': name, 'width': 8, 'height': 8} for n, name in enumerate(names)]
        write(folder, train_json={**COCO, 'images': images})
        assert scan_facts('train.json', folder, '--images', '.')['annotations']['missing'] == len(names)
        write(folder, set__data_yaml=f'train: {server.url}/maps\nval: {server.url}/list.txt\nnames: [a]\n')
        assert scan('set') == 2
        assert server.asked == []


@line('redirects')
def check_redirects(row: str, folder: Path, mark: Path, capsys: Any) -> None:
    with serve() as other, serve(other.url) as server:
        assert count_unreadable(scan_facts(f'{server.url}/redirects', folder, '--num-classes', 3)) == 1
        assert other.asked == []
    with serve() as server:  # to itself
        assert count_unreadable(scan_facts(f'{server.url}/redirects', folder, '--num-classes', 3)) == 0


@line('`--dask`')
def check_dask(row: str, folder: Path, mark: Path, capsys: Any) -> None:
    with pytest.raises(Exception):  # noqa: B017  a file is no task
        processes._scan_packed(zlib.compress(pickle.dumps(Calling(mark))))
    assert mark.exists()  # as the row says


@line('ranks of a training')
def check_ranks(row: str, folder: Path, mark: Path, capsys: Any) -> None:
    code = (
        'import sys, torch.distributed as dist\nfrom mmguard.distributed.channel import Channel\n'
        'dist.init_process_group("gloo", init_method="file://" + sys.argv[1], rank=0, world_size=1)\n'
        'class Calling:\n    def __reduce__(self): return open, (sys.argv[2], "w")\n'
        'Channel([0], 60.0).gather(Calling())\n'
    )
    subprocess.run([sys.executable, '-c', code, str(folder / 'store'), str(mark)], check=True)
    assert mark.exists()  # as the row says


@line('credentials of URLs')
def check_credentials(row: str, folder: Path, mark: Path, capsys: Any) -> None:
    secrets = ['me-the-user', 'a-long-word', '0123456789']
    with serve() as server:
        host = server.url[len('http://') :]
        target = f'http://{secrets[0]}:{secrets[1]}@{host}/maps?sig={secrets[2]}'
        words = ['--num-classes', '3', '--journal', 'journal', '--json', 'facts', '--html', 'page.html']
        assert main(['scan', target, *words]) == 0
        main(['scan', target.replace('maps', 'nothing'), '--num-classes', '3'])
        assert any(secrets[2] in path for path in server.asked)
    assert all(secret.encode() in pickle.dumps(FILES) for secret in secrets)  # which goes with each task
    shown = [''.join(capsys.readouterr()), *(Path(name).read_text() for name in ('journal', 'facts', 'page.html'))]
    assert not [secret for secret in secrets for text in shown if secret in text]


@line('a label file at a URL')
def check_label_file(row: str, folder: Path, mark: Path, capsys: Any) -> None:
    assert f'{LARGEST >> 20} MiB' in row
    with serve() as server:
        assert count_unreadable(scan_facts(f'{server.url}/{LARGEST + 1}', folder, '--num-classes', 3)) == 1


@line('a JSON file at a URL')
def check_json_file(row: str, folder: Path, mark: Path, capsys: Any) -> None:
    assert f'{LARGEST_FILE >> 30} GiB' in row
    with serve() as server, pytest.raises(requests.Refused):
        FILES.open(urls.enter(f'{server.url}/{LARGEST_FILE + 1}/train.json'))


@line('a listing of a server')
def check_listing(row: str, folder: Path, mark: Path, capsys: Any) -> None:
    assert f'{systems.LARGEST_PAGE >> 20} MiB' in row
    with serve() as server, pytest.raises(requests.Refused):
        systems.list_folder(urls.enter(f'{server.url}/long'))


@line('a request')
def check_request(row: str, folder: Path, mark: Path, capsys: Any) -> None:
    patch = pytest.MonkeyPatch()
    with serve() as server, patch.context() as environment:
        environment.delenv(requests.SECONDS, raising=False)
        assert row.startswith(f'{requests.time_limit():.0f} s')
        assert f'`{requests.SECONDS}`' in row
        assert f'{requests.SLOWEST >> 10} KiB' in row
        environment.setenv(requests.SECONDS, '0.5')
        begun = time.monotonic()
        assert scan(f'{server.url}/hangs', '--num-classes', 3) == 2
        assert time.monotonic() - begun < 10


@line('a zip')
def check_zip(row: str, folder: Path, mark: Path, capsys: Any) -> None:
    for limit in (archives.LARGEST_DIRECTORY >> 20, archives.MOST_MEMBERS, archives._SMALL >> 20, archives._EXPANDS):
        assert f'{limit:,}' in row
    with zipfile.ZipFile(folder / 'bomb.zip', 'w', zipfile.ZIP_DEFLATED) as file:
        file.writestr('labels/a.png', png() + bytes(archives._SMALL))
        file.writestr('labels/b.png', png())
    assert count_unreadable(scan_facts(f'zip://labels::{folder}/bomb.zip', folder, '--num-classes', 3)) == 1
    with pytest.raises(OSError):
        archives._Bounded(io.BytesIO(bytes(archives.LARGEST_DIRECTORY + 1))).read()  # type: ignore[arg-type]


@line('an image')
def check_image(row: str, folder: Path, mark: Path, capsys: Any) -> None:
    assert f'{forms.MOST_INFLATED:,} times' in row
    header = b'IHDR' + (30_000).to_bytes(4, 'big') * 2 + png()[24:29]
    bomb = png()[:12] + header + zlib.crc32(header).to_bytes(4, 'big') + png()[33:]
    write(folder, maps__a_png=bomb, maps__b_png=png())
    assert count_unreadable(scan_facts('maps', folder, '--num-classes', 3)) == 1


@line('YAML, JSON of settings')
def check_spread(row: str, folder: Path, mark: Path, capsys: Any) -> None:
    assert f'{plain_data.LARGEST:,} values' in row
    assert f'{plain_data.DEEPEST} levels' in row
    doubled = 'a0: &a0 [1]\n' + ''.join(f'a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n' for n in range(1, 30))
    deep = '[' * (plain_data.DEEPEST + 1) + ']' * (plain_data.DEEPEST + 1)
    for text, ending in ((doubled, '.yaml'), (deep, '.yaml'), (deep, '.json')):
        with pytest.raises(plain_data.NotPlain):
            plain_data.parse_data(text, ending)


@line('texts of a data set')
def check_texts(row: str, folder: Path, mark: Path, capsys: Any) -> None:
    assert voc_xml.LARGEST == settings._LARGEST
    limits = [one.LARGEST for one in (voc_xml, labelme_json)] + [declared._LARGEST, plain_data.LARGEST_WEIGHTS]
    assert re.findall(r'(\d+) MiB', row) == [str(limit >> 20) for limit in limits]
    write_yolo(folder / 'yolo', label='#' * (settings._LARGEST + 1))
    write(folder, voc__Annotations__a_xml=b' ' * (voc_xml.LARGEST + 1))
    for target in ('yolo', 'voc'):
        unreadable = scan_facts(target, folder)['annotations']['unreadable']
        assert any('64 MiB' in fault for fault in unreadable)
    with pytest.raises(ValueError):
        plain_data.parse_weights(bytes(plain_data.LARGEST_WEIGHTS + 1), '.yaml')


@line('a line of a log')
def check_line(row: str, folder: Path, mark: Path, capsys: Any) -> None:
    assert row.startswith(f'{troubles.LONGEST >> 10} KiB')
    assert len(troubles.read_line(b'x' * 100_000).text) == troubles.LONGEST


@line('FIFOs, sockets, devices')
def check_nodes(row: str, folder: Path, mark: Path, capsys: Any) -> None:
    write(folder, maps__b_png=png())
    os.mkfifo(folder / 'maps/a.png')
    assert count_unreadable(scan_facts('maps', folder, '--num-classes', 3)) == 1


@line('names in a data set')
def check_names(row: str, folder: Path, mark: Path, capsys: Any) -> None:
    write(folder, outside_png=png())
    names = ['../outside.png', str(folder / 'outside.png'), r'..\outside.png', 'C:\\a.png', '//host/a.png', 'a\n.png']
    for name in names:
        with pytest.raises(OutsideError):
            resolve_inside(str(folder / 'set'), name)
    images = [{'id': n, 'file_name': name, 'width': 8, 'height': 8} for n, name in enumerate(names)]
    write(folder / 'set', train_json={**COCO, 'images': images})
    facts = scan_facts('set/train.json', folder, '--images', 'set')
    assert facts['annotations']['missing'] == len(names)


@line('paths in settings')
def check_settings(row: str, folder: Path, mark: Path, capsys: Any) -> None:
    write_yolo(folder / 'there')
    write(folder, set__data_yaml=f'path: {folder}/there\ntrain: images\nval: images\nnames: [a]\n')
    assert scan_facts('set/data.yaml', folder)['annotations']['annotations'] == 1
    before = sorted(folder.rglob('*'))
    assert main(['fix', 'set/data.yaml', '-o', 'out']) == 2
    assert sorted(folder.rglob('*')) == before


@line('links')
def check_links(row: str, folder: Path, mark: Path, capsys: Any) -> None:
    write(folder, secret_key='PRIVATE')
    write_yolo(folder / 'set', label='0 .5 .5 .1 1.1\n')
    (folder / 'set/images/b.png').symlink_to(folder / 'secret.key')
    (folder / 'set/labels/b.txt').symlink_to(folder / 'secret.key')
    main(['fix', 'set', '-o', 'out'])
    written = [path for path in (folder / 'out').rglob('*') if path.is_file() and not path.is_symlink()]
    assert (folder / 'out/labels/a.txt') in written
    assert not [path for path in written if b'PRIVATE' in path.read_bytes() and path.name != 'manifest.json']
    os.unlink(folder / 'out/labels/a.txt')
    (folder / 'out/labels/a.txt').symlink_to(folder / 'secret.key')
    main(['fix', 'set', '-o', 'out'])
    assert (folder / 'secret.key').read_text() == 'PRIVATE'


@line('`--json`, `--html`, `--journal`')
def check_outputs(row: str, folder: Path, mark: Path, capsys: Any) -> None:
    write(folder, maps__a_png=png(), train_json=COCO, empty_json='')
    os.mkfifo(folder / 'pipe')
    before = (folder / 'train.json').read_bytes()
    for option in ('--json', '--html', '--journal'):
        for place in ('train.json', 'maps/a.png', 'pipe', '/dev/full'):
            words = ['scan', 'maps', '--num-classes', '3', option, place]
            assert main(words) == 2, words
    assert (folder / 'train.json').read_bytes() == before
    assert (folder / 'maps/a.png').read_bytes() == png()
    for _ in range(2):
        assert scan('maps', '--num-classes', 3, '--json', 'empty.json', '--html', 'page.html') == 0
    assert json.loads((folder / 'empty.json').read_text())['written_by'] == 'mmguard'


@line('`fix --out`')
def check_fix_out(row: str, folder: Path, mark: Path, capsys: Any) -> None:
    write(folder, maps__a_png=png(), other__b_txt='mine')
    for out in ('maps', 'maps/new', '.', 'other'):
        assert main(['fix', 'maps', '-o', out, '--num-classes', '2']) == 2
    assert sorted(os.listdir('maps') + os.listdir('other')) == ['a.png', 'b.txt']
    assert [main(['fix', 'maps', '-o', 'out', '--num-classes', n]) for n in '22'] == [0, 0]
    with hold_folder(folder / 'out'):
        assert main(['fix', 'maps', '-o', 'out', '--num-classes', '2']) == 2


@line('`apply -o`')
def check_apply_out(row: str, folder: Path, mark: Path, capsys: Any) -> None:
    pytest.importorskip('mmseg')
    config = f"default_scope = 'mmseg'\nmodel = {MODEL!r}\n"
    write(folder, base_py=config, config_py="_base_ = './base.py'\n", other_py='mine = 1\n')
    for out in ('base.py', 'config.py'):
        assert main(['apply', 'config.py', '-o', out, '--force']) == 2
    assert main(['apply', 'config.py', '-o', 'other.py']) == 2
    assert [Path(name).read_text() for name in ('base.py', 'other.py')] == [config, 'mine = 1\n']
    assert main(['apply', 'config.py', '-o', 'new.py']) == 0
    assert main(['apply', 'config.py', '-o', 'other.py', '--force']) == 0
    assert 'mine' not in (folder / 'other.py').read_text()


@line('a file that is written')
def check_whole(row: str, folder: Path, mark: Path, capsys: Any) -> None:
    resource = pytest.importorskip('resource')
    limit = functools.partial(resource.setrlimit, resource.RLIMIT_FSIZE, (300, 300))
    write(folder, maps__a_png=png(), facts_json='')
    words = [
        *python_command('import sys, mmguard.cli; sys.exit(mmguard.cli.main(sys.argv[1:]))'),
        'scan',
        'maps',
        '--num-classes',
        '3',
        '--journal',
        os.devnull,
    ]
    subprocess.run([*words, '--json', 'facts.json'], check=True, stdout=subprocess.DEVNULL)
    before = (folder / 'facts.json').read_bytes()
    full = subprocess.run(
        [*words, '--json', 'facts.json'],
        preexec_fn=limit,
        check=False,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    assert full.returncode == 2
    assert b'facts.json' in full.stderr
    assert (folder / 'facts.json').read_bytes() == before
    assert not [name for name in os.listdir(folder) if name.endswith('.part')]


def test_each_row_has_a_check() -> None:
    assert len(ROWS) > 30
    assert sorted(ROWS) == sorted(CHECKS)


@pytest.mark.parametrize('name', sorted(CHECKS))
def test_security(name: str, tmp_path: Path, mark: Path, capsys: pytest.CaptureFixture) -> None:
    CHECKS[name](ROWS[name], tmp_path, mark, capsys)
