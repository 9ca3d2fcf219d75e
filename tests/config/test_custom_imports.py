"""Modules of a project: found by ``custom_imports`` wherever they may lie, and nothing else that lies there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Dict, Iterator

import pytest
from security_rows import png

from mmguard.cli import main
from mmguard.config.read import import_modules

pytest.importorskip('mmseg')

DATASET = """
from mmseg.datasets import BaseSegDataset
from mmseg.registry import DATASETS
{imports}
@DATASETS.register_module()
class OwnDataset(BaseSegDataset):
    METAINFO = dict(classes=('a', 'b', 'c'), palette=[[0, 0, 0], [1, 1, 1], [2, 2, 2]])

    def load_data_list(self):
        open({mark!r}, 'w').close()
        return super().load_data_list()
"""
#: The head has one class more than the data set: `check` offers an edit.
CONFIG = '''
custom_imports = dict(imports=[{module!r}], allow_failed_imports=False)
default_scope = 'mmseg'
data = dict(type='OwnDataset', data_root={root!r}, data_prefix=dict(img_path='img', seg_map_path='ann'),
            img_suffix='.png', seg_map_suffix='.png',
            pipeline=[dict(type='LoadImageFromFile'), dict(type='LoadAnnotations'), dict(type='PackSegInputs')])
train_dataloader = dict(batch_size=2, num_workers=0, dataset=data, sampler=dict(type='InfiniteSampler'))
model = dict(type='EncoderDecoder', data_preprocessor=dict(type='SegDataPreProcessor', size=(64, 64), seg_pad_val=255),
    backbone=dict(type='ResNetV1c', depth=18, num_stages=4, out_indices=(0, 1, 2, 3), norm_cfg=dict(type='BN')),
    decode_head=dict(type='FCNHead', in_channels=512, in_index=3, channels=16, num_convs=1, concat_input=False,
        num_classes=4, loss_decode=dict(type='CrossEntropyLoss')), train_cfg=dict(), test_cfg=dict(mode='whole'))
'''  # fmt: skip
COMMANDS = {
    'check': ['check', '{config}'],
    'scan': ['scan', '{config}', '--processes', '1'],
    'apply': ['apply', '{config}', '--edit', '1', '-o', '{config}_out.py'],
    'trace': ['trace', '{config}'],
    'dry-run': ['dry-run', '{config}', '--only', 'samples-survive'],
}
#: Where the module of a config lies -> module, its files (DATASET is the one with the data set), config, PYTHONPATH.
PLACES = {
    'in the working directory': ('own', {'work/own.py': 'DATASET'}, 'elsewhere/config.py', ''),
    'a package in the working directory': (
        'own.sets',
        {'work/own/__init__.py': '', 'work/own/sets.py': 'from .names import N', 'work/own/names.py': 'N = 1'},
        'elsewhere/config.py',
        '',
    ),
    'next to the config': ('own', {'elsewhere/own.py': 'DATASET'}, 'elsewhere/config.py', ''),
    'a package next to the config': (
        'own',
        {'elsewhere/own/__init__.py': 'from . import names', 'elsewhere/own/names.py': 'from .more import N',
         'elsewhere/own/more.py': 'N = 1'},
        'elsewhere/config.py',
        '',
    ),
    'in the repository of the config': (
        'own', {'elsewhere/.git/HEAD': '', 'elsewhere/own.py': 'DATASET'}, 'elsewhere/configs/a/config.py', ''
    ),
    'below folders that are no packages': (
        'projects.mine.own',
        {'work/projects/mine/own.py': 'from projects.mine.names import N', 'work/projects/mine/names.py': 'N = 1'},
        'work/projects/mine/configs/config.py',
        '',
    ),
    'with helpers that it imports by name': (
        'own',
        {'work/own.py': 'from helpers import N', 'work/helpers.py': 'from more import N', 'work/more.py': 'N = 1'},
        'elsewhere/config.py', '',
    ),
    'installed': (
        'own.sets',
        {'site/own/__init__.py': '', 'site/own/sets.py': 'from .names import N', 'site/own/names.py': 'N = 1'},
        'elsewhere/config.py',
        'site',
    ),
}  # fmt: skip
#: Names that frameworks and the standard library import where they are installed.
OPTIONAL = ('lvis', 'panopticapi', 'transformers', 'mmpretrain', 'multiprocessing', 'pickle', 'socket', 'evil_plugin')


def write(folder: Path, files: Dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def write_project(folder: Path, place: str) -> Path:
    """Write a project with two images, one of which holds an invalid label; return its config."""
    small_runs = pytest.importorskip('small_runs')
    module, files, config, _ = PLACES[place]
    for number in range(2):
        label = small_runs.label_map(number, [7], num_classes=3)
        small_runs.write_pair(
            str(folder / f'data/img/{number}.png'), str(folder / f'data/ann/{number}.png'), label, number
        )
    (folder / 'work').mkdir(exist_ok=True)
    holder = module.replace('.', '/')
    own = {
        name: DATASET.format(imports='' if text == 'DATASET' else text, mark=str(folder / 'built'))
        if name.endswith((f'/{holder}.py', f'/{holder}/__init__.py'))
        else text
        for name, text in files.items()
    }
    write(folder, {**own, config: CONFIG.format(module=module, root=str(folder / 'data'))})
    return folder / config


@pytest.mark.slow
@pytest.mark.parametrize('place', list(PLACES))
def test_a_module_of_the_project_is_found(place: str, tmp_path: Path) -> None:
    warm = pytest.importorskip('warm')
    config = write_project(tmp_path, place)
    path = os.pathsep.join(
        filter(None, [PLACES[place][3] and str(tmp_path / 'site'), os.environ.get('PYTHONPATH', '')])
    )
    built = []
    for name, words in COMMANDS.items():
        words = [word.format(config=config) for word in words]
        source = f'import sys\nfrom mmguard.cli import main\nsys.exit(main({words!r}))'
        ended = warm.run(source, environment={**os.environ, 'PYTHONPATH': path}, folder=str(tmp_path / 'work'))
        assert ended.returncode in (0, 1), ended.output
        built += [name] * (tmp_path / 'built').exists()
        (tmp_path / 'built').unlink(missing_ok=True)
    assert built == list(COMMANDS)


@pytest.mark.slow
@pytest.mark.parametrize('name', list(COMMANDS))
def test_nothing_else_of_the_working_directory_is_imported(name: str, tmp_path: Path) -> None:
    config = write_project(tmp_path, 'next to the config')
    evil = f"open({str(tmp_path / 'ran')!r}, 'a').write(__name__ + ' ')\nraise ImportError\n"
    write(tmp_path / 'work', {f'{module}.py': evil for module in OPTIONAL})
    metadata = 'Metadata-Version: 2.1\nName: evil\nVersion: 1.0\n'
    points = '[mmguard.rules]\nEVIL1 = evil_plugin:Rule\n[mmguard.formats]\nevil = evil_plugin:Format\n'
    write(tmp_path / 'work/evil-1.0.dist-info', {'METADATA': metadata, 'entry_points.txt': points})
    words = [word.format(config=config) for word in COMMANDS[name]]
    command = Path(sys.executable).with_name('mmguard')
    line = [str(command)] if command.exists() else [sys.executable, '-m', 'mmguard.cli']
    subprocess.run([*line, *words], cwd=tmp_path / 'work', stdout=subprocess.DEVNULL, check=False)
    assert (tmp_path / 'built').exists()
    assert not (tmp_path / 'ran').exists(), (tmp_path / 'ran').read_text()


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The working directory, next to which lies an installed package that tries an optional import."""
    write(tmp_path, {
        'site/framework_x.py': 'try:\n    import optional_x\nexcept ImportError:\n    optional_x = None\n'
                               'def look():\n    import optional_x\n',
        'work/own_x.py': 'import framework_x, helper_x\n',
        'work/helper_x.py': 'def look():\n    import late_x\n',
        **{f'work/{name}_x.py': 'open("ran", "a").write(__name__)\n' for name in ('optional', 'late', 'framework')},
    })  # fmt: skip
    monkeypatch.chdir(tmp_path / 'work')
    monkeypatch.syspath_prepend(str(tmp_path / 'site'))
    before = list(sys.path), list(sys.meta_path)
    yield tmp_path / 'work'
    assert (sys.path, sys.meta_path) == before
    for name in [name for name in sys.modules if name.endswith('_x')]:
        del sys.modules[name]


def test_an_optional_import_of_a_framework_finds_nothing(project: Path) -> None:
    assert import_modules({'imports': ['own_x', 'helper_x']}, 'config.py') == {}
    assert sys.modules['framework_x'].optional_x is None
    for module in ('framework_x', 'helper_x'):
        with pytest.raises(ImportError):
            sys.modules[module].look()
    assert not (project / 'ran').exists()


def test_an_installed_package_is_never_replaced(project: Path) -> None:
    assert import_modules({'imports': 'framework_x'}, 'config.py') == {}
    assert Path(sys.modules['framework_x'].__file__ or '').parent.name == 'site'
    assert not (project / 'ran').exists()


def test_what_fails_is_returned_and_the_others_are_imported(project: Path) -> None:
    write(project, {'broken_x.py': 'raise ValueError\n', 'needs_x.py': 'import missing_x\n'})
    failed = import_modules({'imports': ['broken_x', 'needs_x', 'missing_x', 'helper_x']}, 'config.py')
    assert [type(failed.pop(name)).__name__ for name in ('broken_x', 'needs_x', 'missing_x')] == [
        'ValueError', 'ModuleNotFoundError', 'ModuleNotFoundError'
    ]  # fmt: skip
    assert failed == {}
    assert 'helper_x' in sys.modules


def test_python_m_does_not_import_from_the_working_directory(project: Path) -> None:
    (project / 'PIL.py').write_text('open("ran", "w").close()\n')
    (project / 'a.png').write_bytes(png())
    command = [sys.executable, '-m', 'mmguard.cli', 'scan', '.', '--num-classes', '3']
    environment = {**os.environ, 'PYTHONPATH': str(Path(__file__).parents[2])}
    subprocess.run(command, cwd=project, env=environment, capture_output=True, check=False)
    assert not (project / 'ran').exists()


def test_a_config_that_ends_the_program_is_named(project: Path, capsys: pytest.CaptureFixture) -> None:
    write(project, {'exits_x.py': 'raise SystemExit(0)\n'})
    write(project, {'config.py': "custom_imports = dict(imports=['exits_x'])\nmodel = dict(type='A')\n"})
    assert main(['check', 'config.py']) == 2
    assert 'exits_x' in capsys.readouterr().err
