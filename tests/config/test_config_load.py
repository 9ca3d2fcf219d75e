"""YAML and JSON are data, what is no config is refused before a line is run, and bases that are a circle are named."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Dict, List

import pytest
from put_file import put

from mmguard.config.read import load_config
from mmguard.config.recognition import find_bases
from mmguard.errors import CannotRun

pytest.importorskip('mmengine')

CONFIG = "model = dict(type='EncoderDecoder')\n"


def write(folder: Path, files: Dict[str, str]) -> str:
    for name, text in files.items():
        put(folder / name, text.replace('RAN', str(folder / 'ran')))
    return str(folder / next(iter(files)))


def refused(file: str) -> str:
    with pytest.raises(CannotRun) as caught:
        load_config(file)
    return str(caught.value)


APPLY = 'x: !!python/object/apply:os.mkdir [RAN]\n'


@pytest.mark.parametrize(
    'files',
    [
        {'a.yaml': 'model: {type: A}\n' + APPLY},
        {'a.yml': 'model: {type: A}\n' + APPLY},
        {'a.yaml': '_base_: b.yaml\nmodel: {type: A}\n', 'b.yaml': APPLY},
        {'a.py': "_base_ = './b.yaml'\n", 'b.yaml': 'model: {type: A}\n' + APPLY},
        # Only mmengine knows these bases.
        {'a.py': "_base_ = ['./' + 'b.yaml']\n", 'b.yaml': 'model: {type: A}\n' + APPLY},
        {'a.yaml': "_base_: '{{$MMGUARD_NO_SUCH:b.yaml}}'\nmodel: {type: A}\n", 'b.yaml': APPLY},
        {'a.py': 'open("RAN", "w")\n'},
        {'a.py': "_base_ = './b.py'\n", 'b.py': 'open("RAN", "w")\n'},
        {'a.py': 'from mmengine.config import read_base\nwith read_base():\n    from .b import *\n',
         'b.py': 'open("RAN", "w")\n'},
    ],
    ids=lambda files: ' '.join(files),
)  # fmt: skip
def test_nothing_is_run(files: Dict[str, str], tmp_path: Path) -> None:
    refused(write(tmp_path, files))
    assert not (tmp_path / 'ran').exists()


@pytest.mark.parametrize(
    ('files', 'chain'),
    [
        ({'a.py': f"_base_ = './a.py'\n{CONFIG}"}, 'a.py -> a.py'),
        ({'a.py': "_base_ = ['./b.py']\n", 'b.py': "_base_ = './a.py'\n"}, 'a.py -> b.py -> a.py'),
        ({'c.py': "_base_ = './a.py'\n", 'a.py': "_base_ = './a.py'\n"}, 'a.py -> a.py'),
        ({'a.yaml': '_base_: [b.json]\n', 'b.json': '{"_base_": "a.yaml"}'}, 'a.yaml -> b.json -> a.yaml'),
        ({'a.py': "_base_ = '{{ fileBasename }}'\n"}, 'a.py -> a.py'),
        (
            {
                'x/a.py': 'from mmengine.config import read_base\nwith read_base():\n    from ..y.b import *\n',
                'y/b.py': 'from mmengine.config import read_base\nwith read_base():\n    from ..x.a import *\n',
            },
            'a.py -> b.py -> a.py',
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else '',
)
def test_bases_that_are_a_circle_are_named_at_once(files: Dict[str, str], chain: str, tmp_path: Path) -> None:
    file = write(tmp_path, files)
    start = time.perf_counter()
    assert chain in refused(file)
    assert time.perf_counter() - start < 5


def test_a_base_that_two_share_is_no_circle(tmp_path: Path) -> None:
    files = {
        'a.py': "_base_ = ['./b.py', './c.py']\n",
        'b.py': "_base_ = './d.py'\nmodel = dict(type='A')\n",
        'c.py': "_base_ = './e.py'\noptim_wrapper = dict(type='B')\n",
        'd.py': 'num_classes = 3\n',
        'e.py': "names = list(range(3))\n",
    }  # fmt: skip
    file = write(tmp_path, files)
    assert load_config(file).num_classes == 3
    assert [Path(base).name for base in find_bases(file)] == ['b.py', 'c.py']


@pytest.mark.parametrize(
    ('files', 'keys'),
    [
        ({'a.json': json.dumps({'model': {'type': 'A'}, 'tab': '\t'})}, ['model', 'tab']),
        ({'a.yaml': 'model: {type: A}\nwork_dir: {{ fileBasenameNoExtension }}\n'}, ['model', 'work_dir']),
        ({'a.yaml': '_base_: b.yaml\nmodel: {type: A, n: {{ _base_.n }}}\n', 'b.yaml': 'n: 3\n'}, ['n', 'model']),
    ],
    ids=['json', 'template', 'base'],
)
def test_data_is_read_as_mmengine_reads_it(files: Dict[str, str], keys: List[str], tmp_path: Path) -> None:
    config = load_config(write(tmp_path, files))
    assert sorted(config) == sorted(keys)
    assert config.model['type'] == 'A'


@pytest.mark.parametrize(
    ('files', 'said'),
    [
        ({'a.py': f'import sys\n{CONFIG}sys.exit(0)\n'}, 'SystemExit: 0'),
        ({'a.py': f"import sys\n{CONFIG}raise ValueError('no')\n"}, 'ValueError: no'),
        ({'a.py': f'{CONFIG}x = (\n'}, 'SyntaxError'),
        ({'a.yaml': 'model: {type: [\n'}, 'ParserError'),
        ({'a.json': '{"model": '}, 'JSONDecodeError'),
        ({'a.json': '{"model": ' + '[' * 100_000}, '100'),
        ({'a.py': "import torch\nmodel = dict(type='A', w=torch.zeros(2))\n"}, 'a.py'),
    ],
    ids=['exits', 'raises', 'python', 'yaml', 'json', 'deep', 'called'],
)
def test_what_cannot_be_loaded_says_why(files: Dict[str, str], said: str, tmp_path: Path) -> None:
    file = write(tmp_path, files)
    assert said in refused(file)
    assert file in refused(file)
