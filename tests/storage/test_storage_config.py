"""A config whose file backend is not the disk is scanned through that backend."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict

import pytest

pytest.importorskip('mmseg')

from data_sets import write_coco, write_maps
from hostile_server import hostile_server
from servers import http_server

from mmguard.cli import main

_SEG = """
loading = [dict(type='LoadImageFromFile', backend_args={args}), dict(type='LoadAnnotations', backend_args={args})]
dataset = dict(type='BaseSegDataset', data_root={root!r}, ann_file={names!r},
               data_prefix=dict(img_path={images!r}, seg_map_path={labels!r}), img_suffix='.png', seg_map_suffix='.png',
               metainfo=dict(classes=list('abcdef')), pipeline=loading)
train_dataloader = dict(batch_size=2, dataset=dataset)
model = dict(type='EncoderDecoder', decode_head=dict(type='FCNHead', num_classes=6))
"""


def scan(config: Path, text: str, root: str) -> Dict[str, Any]:
    config.write_text(text)
    out = config.with_suffix('.json')
    main(['scan', str(config), '--json', str(out), '--processes', '1', '--journal', str(config.with_suffix('.jsonl'))])
    record: Dict[str, Any] = json.loads(out.read_text().replace(root, 'ROOT'))
    return record


def test_label_maps_are_read_by_the_backend_of_the_loader(tmp_path: Path) -> None:
    data = tmp_path / 'data'
    write_maps(data, 16)
    names = tmp_path / 'names.txt'
    names.write_text('\n'.join(f'{"train" if n % 4 else "val"}/{n:03d}' for n in range(16) if n != 9) + '\n')
    found = []
    with http_server(data) as port:
        for root, args in ((str(data), None), (f'http://127.0.0.1:{port}', {'backend': 'http'})):
            text = _SEG.format(root=root, names=str(names), args=args, images=f'{root}/images', labels=f'{root}/labels')
            found.append(scan(tmp_path / 'config.py', text, root))
        main(['scan', str(tmp_path / 'config.py'), '--journal', str(tmp_path / 'config.jsonl'), '--resume', '--json',
              str(tmp_path / 'again.json')])  # fmt: skip
    assert found[0]['datasets'][0]['facts']['maps']['unreadable']
    assert json.dumps(found[0], indent=1).split('\n') == json.dumps(found[1], indent=1).split('\n')
    again = json.loads((tmp_path / 'again.json').read_text())['datasets'][0]
    assert (again['decoded'], again['reused']) == (0, 15)


@pytest.mark.parametrize('args', [None, {'backend': 'http'}])
def test_names_in_a_list_of_a_config_decide_no_connection(args: Any, tmp_path: Path) -> None:
    write_maps(tmp_path / 'data', 8)
    names = tmp_path / 'names.txt'
    with hostile_server() as server, http_server(tmp_path / 'data') as port:
        names.write_text(f's3://attacker/a\n{server.url}/ok/good\n//{server.url[7:]}/ok/good\ntrain/001\n')
        for root in ('', f'http://127.0.0.1:{port}/') if args is None else (f'http://127.0.0.1:{port}/',):
            places = dict(images=f'{root}images' if root else '', labels=f'{root}labels' if root else '')
            text = _SEG.format(root='', names=str(names), args=args, **places)
            (one,) = scan(tmp_path / 'config.py', text, root or 'ROOT')['datasets']
            assert one['decoded'] == 4
            assert sum(map(len, one['facts']['maps']['unreadable'].values())) == 4 - bool(root)
        assert server.asked == []


@pytest.mark.parametrize('backend', ['petrel', 'lmdb', 'of the user'])
def test_a_file_backend_that_is_no_path_is_named(
    backend: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip('mmdet')
    write_maps(tmp_path / 'data', 8)
    write_coco(tmp_path)
    (tmp_path / 'names.txt').write_text('train/001\n')
    places = dict(root=str(tmp_path / 'data'), names=str(tmp_path / 'names.txt'), images='images', labels='labels')
    dataset = dict(type='CocoDataset', ann_file=str(tmp_path / 'train.json'), backend_args=dict(backend=backend))
    detection = f'train_dataloader = dict(dataset={dataset!r})\nmodel = dict(type="mmdet.RetinaNet")'
    for text in (_SEG.format(args=dict(backend=backend), **places), detection):
        (tmp_path / 'config.py').write_text(text)
        assert main(['scan', str(tmp_path / 'config.py'), '--processes', '1']) == 2
        assert repr(backend) in capsys.readouterr().err
