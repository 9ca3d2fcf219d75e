"""Which verdict an installation gets, and that it never costs mmguard its own life."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any, List, Optional

import pytest

from mmguard.cli import main
from mmguard.commands.child import build_python_command
from mmguard.commands.env import gather, import_errors
from mmguard.facts.environment import EnvironmentFacts
from mmguard.findings import diagnose
from mmguard.findings.finding import ERROR, WARNING


def facts(**more: Any) -> EnvironmentFacts:
    """An installation in order, but for ``more``."""
    versions = {
        'torch': '2.1.0+cu118',
        'numpy': '1.26.4',
        'opencv-python': '4.9.0.80',
        'mmengine': '0.10.7',
        'mmcv': '2.1.0',
        'mmsegmentation': '1.2.2',
        'mmdet': '3.3.0',
        'mmguard': '0.1.0',
    }
    versions.update(more.pop('versions', {}))
    here = {name: version for name, version in versions.items() if version}
    return EnvironmentFacts('3.10.1', 'Linux', here, ops=more.pop('ops', True), **more)


def test_what_is_in_order_gets_no_advice() -> None:
    assert diagnose(environment=facts()) == []


REFUSED = 'AssertionError: MMCV==2.2.0 is used but incompatible. Please install mmcv>=2.0.0rc4, <2.2.0.'


@pytest.mark.parametrize(
    ('more', 'level', 'code', 'installed'),
    [
        (dict(versions={'mmcv': '2.2.0'}, errors={'mmseg': REFUSED, 'mmdet': REFUSED}), ERROR, 'MG508', ['mmcv']),
        (dict(versions={'mmcv': None, 'mmcv-lite': '2.1.0'}, ops=False), ERROR, 'MG508', ['mmcv']),
        (dict(ops=False, missing=['mmdet']), WARNING, 'MG508', ['mmcv']),
        (dict(errors={'mmcv.ops': 'ImportError: undefined symbol'}), ERROR, 'MG508', ['mmcv']),
        (dict(errors={'cv2': 'ImportError: libGL.so.1'}), ERROR, 'MG506', ['opencv-python-headless']),
        (
            dict(versions={'numpy': '2.0.2'}, errors={'cv2': 'ImportError: numpy.core.multiarray failed to import'}),
            *(ERROR, 'MG506', ['numpy']),
        ),
        (dict(errors={'cv2': 'ImportError: numpy.core.multiarray failed to import'}), ERROR, 'MG506', None),
        (dict(errors={'mmseg': 'AssertionError: no'}), ERROR, 'MG506', None),
        (
            dict(versions={'torchvision': '0.28.0'}, errors={'torchvision': 'OSError: libcudart.so.13'}),
            *(ERROR, 'MG506', []),
        ),
        (dict(versions={'onedl-mmcv': '2.3.0'}), ERROR, 'MG502', ['mmengine', 'mmcv', 'mmsegmentation', 'mmdet']),
    ],
)
def test_what_is_not_is_a_finding_with_what_to_do(
    more: Any, level: str, code: str, installed: Optional[List[str]]
) -> None:
    here = facts(**more)
    (finding,) = diagnose(environment=here)
    assert (finding.code, finding.severity) == (code, level)
    edits = finding.edits
    assert ([name for name, version in edits[0].environment if version is not None] if edits else None) == installed
    for edit in edits:
        assert diagnose(environment=here.apply_changes(edit.environment)) == []


@pytest.mark.parametrize(
    ('torch', 'reads_objects', 'codes'),
    [('2.6.0+cu124', False, ['MG515']), ('2.13.0', False, ['MG515']), ('2.5.1', False, []), ('2.6.0', True, [])],
)
def test_checkpoints_that_this_torch_refuses_are_a_warning(torch: str, reads_objects: bool, codes: List[str]) -> None:
    found = diagnose(environment=facts(versions={'torch': torch}, reads_objects=reads_objects))
    assert [(one.code, one.severity) for one in found] == [(code, WARNING) for code in codes]
    assert all('TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD=1' in one.advice for one in found)


def test_the_warning_about_checkpoints_agrees_with_mmengine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint = pytest.importorskip('mmengine.runner.checkpoint')
    from mmengine.logging import HistoryBuffer

    monkeypatch.delenv('TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD', raising=False)
    checkpoint.save_checkpoint({'message_hub': HistoryBuffer()}, str(tmp_path / 'iter_1.pth'))
    try:
        checkpoint.CheckpointLoader.load_checkpoint(str(tmp_path / 'iter_1.pth'), 'cpu')
        fails = False
    except pickle.UnpicklingError:
        fails = True
    found = diagnose(environment=gather(try_imports=False))
    assert [one.code for one in found if one.code == 'MG515'] == ['MG515'] * fails
    monkeypatch.setenv('TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD', '1')
    assert 'MG515' not in [one.code for one in diagnose(environment=gather(try_imports=False))]


def test_a_package_that_takes_the_interpreter_down_is_a_verdict(tmp_path: Path, monkeypatch: Any) -> None:
    for name, text in {
        'breaks': 'raise OSError("libbroken.so: undefined symbol")',
        'aborts': 'import os; os.abort()',
        'exits': 'raise SystemExit(3)',
        'talks': 'print("[1, 2]"); print("hello")',
    }.items():
        (tmp_path / f'{name}.py').write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    errors, cuda = import_errors(['breaks', 'aborts', 'exits', 'talks', 'json', 'not_there_at_all'])
    assert list(errors) == ['breaks', 'aborts', 'exits', 'not_there_at_all']
    assert errors['breaks'] == 'OSError: libbroken.so: undefined symbol'
    assert '-6' in errors['aborts']
    assert cuda is None


def test_files_alone_say_what_is_here() -> None:
    found = gather(try_imports=False)
    assert found.errors == {}
    assert found.versions['mmguard']
    assert found.ops is (None if 'mmcv' in found.missing else 'mmcv-lite' not in found.versions)
    assert 'torch' not in found.missing


def test_nothing_heavy_is_imported() -> None:
    code = (
        'import sys\nfrom mmguard.findings import diagnose\nbefore = set(sys.modules)\n'
        'from mmguard.commands.env import gather\ndiagnose(environment=gather(try_imports=False))\n'
        'print(sorted({n.split(".")[0] for n in set(sys.modules) - before} & {"mmseg", "mmdet", "cv2"}))'
    )
    env = {**os.environ, 'OMP_NUM_THREADS': '1'}
    assert subprocess.check_output([sys.executable, '-W', 'ignore', '-c', code], text=True, env=env).strip() == '[]'


@pytest.mark.slow
def test_the_command(tmp_path: Path, capsys: Any) -> None:
    out = tmp_path / 'env.json'
    assert main(['env', '--json', str(out)]) == 0
    said = capsys.readouterr().out
    record = json.loads(out.read_text())
    assert all(name in said and found in said for name, found in record['lines'].items())
    assert 'CUDA' in record['lines']
    assert all(finding['code'] in said for finding in record['findings'])
    assert main(['env', '--json', '-', '--no-import']) == 0
    assert 'python' in json.loads(capsys.readouterr().out)['lines']


NAMES = ('json', 'importlib', 'warnings', 'numpy', 'torch', 'mmguard', 'sitecustomize', 'usercustomize')


@pytest.fixture
def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write modules with the names of well-known ones into the working directory; return the file that they write."""
    mark = tmp_path / 'ran'
    for name in NAMES:
        (tmp_path / f'{name}.py').write_text(f'open({str(mark)!r}, "w").close()\n')
    monkeypatch.chdir(tmp_path)
    return mark


@pytest.mark.parametrize('variable', ['', '.', 'HERE'])
def test_env_imports_nothing_of_the_working_directory(
    variable: str, hostile: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv('PYTHONPATH', variable.replace('HERE', os.getcwd()))
    if variable:
        monkeypatch.setattr(sys, 'path', [variable.replace('HERE', os.getcwd()), '', *sys.path])
    assert import_errors(['json', 'numpy', 'mmguard'])[0] == {}
    assert not hostile.exists()


def test_a_child_finds_what_this_process_finds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / 'only_here.py').write_text('')
    monkeypatch.syspath_prepend(str(tmp_path))
    assert import_errors(['only_here', 'mmguard'])[0] == {}


def test_mmguard_itself_is_found_in_its_own_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    import mmguard

    monkeypatch.chdir(Path(mmguard.__file__).parent.parent)
    command = build_python_command('import mmguard; print(mmguard.__file__)')
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    assert Path(done.stdout.decode().strip()) == Path(mmguard.__file__)
