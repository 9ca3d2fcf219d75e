"""SECURITY.md, line by line: each row of its tables has a check here, or is named with tests of other files."""

from __future__ import annotations

import json
import os
import pickle
import re
import subprocess
import sys
from inspect import signature
from pathlib import Path
from typing import Any, Iterator

import pytest
import security_limits  # noqa: F401  registers its checks
import security_shown  # noqa: F401
from security_rows import (
    CHECKS,
    COCO,
    MODEL,
    ROWS,
    Calling,
    line,
    png,
    scan,
    scan_facts,
    serve,
    write,
    write_yolo,
)

from mmguard.cli import main
from mmguard.commands.child import build_python_command
from mmguard.files.regular import list_project
from mmguard.findings.plugins import find_entry_points
from mmguard.properties.worker import Worker

pytest.importorskip('rich')

CONFIG = f"custom_imports = dict(imports=['own_x'])\ndefault_scope = 'mmseg'\nmodel = {MODEL!r}\n"


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


@line('`custom_imports`')
def check_custom_imports(row: str, folder: Path, mark: Path, capsys: Any) -> None:
    pytest.importorskip('mmengine')
    marks = signature(list_project).parameters['marks'].default
    assert [f'`{one}`' in row for one in marks] == [True] * 3
    write(folder, framework_x_py='try:\n    import evil_code\nexcept ImportError:\n    pass\n')
    write(folder / 'work', evil_code_py=(folder / 'evil_code.py').read_text(), own_x_py='import framework_x, helper_x')
    write(folder / 'configs', config_py=CONFIG, helper_x_py='', framework_x_py='raise ValueError')
    os.chdir(folder / 'work')
    sys.path.append(str(folder))  # there are installed packages
    (folder / 'evil_code.py').unlink()
    assert main(['check', '../configs/config.py', '--json', '../found.json']) == 0
    assert {'own_x', 'helper_x', 'framework_x'} <= set(sys.modules)
    assert json.loads((folder / 'found.json').read_text())['notes'] == []
    for name in ('own_x', 'helper_x', 'framework_x'):
        del sys.modules[name]
    assert not mark.exists()


@line('a config in YAML or JSON')
def check_config_of_data(row: str, folder: Path, mark: Path, capsys: Any) -> None:
    pytest.importorskip('mmengine')
    config = {'default_scope': 'mmseg', 'model': MODEL}
    (folder / 'evil.pkl').write_bytes(pickle.dumps(Calling(mark)))
    (folder / 'evil.pickle').write_bytes(pickle.dumps(Calling(mark)))
    for name, loaded in {'DecathlonDataset': 'evil.pkl', 'mmseg.DecathlonDataset': 'evil.pickle'}.items():
        data = {'type': name, 'data_root': str(folder), 'ann_file': loaded, 'pipeline': []}
        write(folder, pickled_yaml={**config, 'train_dataloader': {'dataset': data}})
        assert main(['scan', 'pickled.yaml']) == 2
    assert not mark.exists()  # bases, types and imports: tests/commands/test_data_runs_no_code.py


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


@line('logs, crash reports')
def check_logs(row: str, folder: Path, mark: Path, capsys: Any) -> None:
    error = (
        'Traceback (most recent call last):\n  File "a.py", line 1\nIndexError: Target 7 \x1b[31mis out of bounds.\n'
    )
    write(folder, train_log=error)
    assert main(['explain', 'train.log']) == 1
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
    subprocess.run([*build_python_command('import json, numpy, mmguard')], check=True)
    assert not mark.exists()
    with Worker() as worker:  # an interpreter of its own
        assert worker.ask(os.getcwd, seconds=60).value == str(folder)
    pytest.importorskip('mmengine')
    write(folder, config_py=CONFIG.replace('own_x', 'evil_code'))
    main(['check', 'config.py'])
    assert mark.exists()
    mark.unlink()
    assert not {'', str(folder)} & set(sys.path)


@line('rules and formats of other packages')
def check_plugins(row: str, folder: Path, mark: Path, capsys: Any) -> None:
    write(folder / 'evil-1.0.dist-info', METADATA_='Metadata-Version: 2.1\nName: evil\nVersion: 1.0\n')
    os.rename(folder / 'evil-1.0.dist-info/METADATA.', folder / 'evil-1.0.dist-info/METADATA')
    write(folder / 'evil-1.0.dist-info', entry_points_txt='[mmguard.formats]\nevil = evil_code:Format\n')
    sys.path[:0] = ['', '.', str(folder)]  # as a config may do
    assert [point for point in find_entry_points('mmguard.formats') if point.name == 'evil'] == []


@line('URLs that you name')
def check_named_urls(row: str, folder: Path, mark: Path, capsys: Any) -> None:
    pytest.importorskip('mmseg')
    write(folder, maps__a_png=png())
    with serve() as server:
        data = {'type': 'BaseSegDataset', 'data_root': f'{server.url}/', 'data_prefix': {'seg_map_path': 'maps'}}
        config = f"default_scope = 'mmseg'\nmodel = {MODEL!r}\ntrain_dataloader = dict(dataset={data!r})\n"
        write(folder, config_py=config)
        for words in ([f'{server.url}/maps'], ['maps', '--images', f'{server.url}/maps'], ['config.py']):
            assert scan(*words, '--num-classes', 3) == 2
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


@line('ranks of a training')
def check_ranks(row: str, folder: Path, mark: Path, capsys: Any) -> None:
    code = (
        'import sys, torch.distributed as dist\nfrom mmguard.distributed.channel import Channel\n'
        'dist.init_process_group("gloo", init_method="file://" + sys.argv[1], rank=0, world_size=1)\n'
        'class Calling:\n    def __reduce__(self): return open, (sys.argv[2], "w")\n'
        'Channel(60.0).gather(Calling())\n'
    )
    subprocess.run([sys.executable, '-c', code, str(folder / 'store'), str(mark)], check=True)
    assert mark.exists()  # as the row says


#: Row -> the tests of other files that assert it.
ELSEWHERE = {
    'FIFOs, sockets, devices': ['test_it_is_never_opened', 'test_every_kind_is_reported'],
    'NumPy files': ['test_nothing_is_unpickled', 'test_a_file_of_anything_else_is_named_and_nothing_in_it_is_run'],
    '`--json`, `--html`': [
        'test_what_is_read_and_what_somebody_else_wrote_stays',
        'test_a_node_that_is_not_a_regular_file_is_refused_and_stays',
    ],
    '`apply -o`': [
        'test_apply_never_writes_over_its_config_or_a_base',
        'test_what_is_there_is_not_overwritten_unless_forced',
    ],
    'a data.yaml with tags or aliases that spread': ['test_a_data_yaml_that_is_more_than_data_is_a_finding'],
    'file backends of a config': ['test_data_sets_of_a_config'],
    'links': [
        'test_a_label_file_that_is_a_link_out_of_the_target_is_left_out',
        'test_an_image_that_is_a_link_out_of_the_target_stays_one',
        'test_a_link_at_the_place_of_a_copy_or_of_the_manifest_is_not_written_through',
        'test_a_link_in_out_leads_no_copy_elsewhere_and_deletes_nothing',
    ],
    'names and texts of data': ['test_no_line_begins_with_a_command'],
    'names in a data set': ['test_a_name_that_leads_out_of_its_folder_is_refused', 'test_coco'],
}


def test_each_row_has_a_check() -> None:
    assert len(ROWS) > 20
    assert sorted(ROWS) == sorted({**CHECKS, **ELSEWHERE})
    code = ''.join(path.read_text(encoding='utf-8') for path in Path(__file__).parent.rglob('test_*.py'))
    assert [name for names in ELSEWHERE.values() for name in names if f'def {name}(' not in code] == []


@pytest.mark.parametrize('name', sorted(CHECKS))
def test_security(name: str, tmp_path: Path, mark: Path, capsys: pytest.CaptureFixture) -> None:
    CHECKS[name](ROWS[name], tmp_path, mark, capsys)
