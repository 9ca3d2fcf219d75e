"""Which verdict an installation gets, and that it never costs mmguard its own life."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, List, Optional

import pytest

from mmguard.cli import main
from mmguard.findings import diagnose
from mmguard.findings.environment import EnvironmentFacts, build_version_key
from mmguard.findings.finding import ERROR, WARNING
from mmguard.findings.messages import format_finding
from mmguard.tools.child import build_python_command
from mmguard.tools.env.facts import OK, build_table, gather, import_errors


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
    return EnvironmentFacts(
        python=more.pop('python', '3.10.1'),
        system='Linux',
        versions={name: version for name, version in versions.items() if version},
        torch_cuda=more.pop('torch_cuda', '11.8'),
        driver=more.pop('driver', '535.1'),
        driver_cuda=more.pop('driver_cuda', '12.2'),
        gpus=['A100'],
        ops=more.pop('ops', True),
        accepts={'mmseg': ('2.0.0rc4', '2.2.0'), 'mmdet': ('2.0.0rc4', '2.2.0')},
        tried={'torch': ['1.13.1', '2.13.0'], 'numpy': ['1.21.0', '2.4.6']},
        **more,
    )


def test_what_is_in_order_gets_no_advice() -> None:
    assert diagnose(environment=facts()) == []
    lines = build_table(facts(), [])
    assert {line.level for line in lines} == {OK}
    assert len(lines) == 16


OPS = "mmcv's compiled ops"


@pytest.mark.parametrize(
    ('more', 'name', 'level', 'code', 'installed'),
    [
        (dict(versions={'mmcv': '2.2.0'}), 'mmcv for mmdet', ERROR, 'MG508', ['mmcv']),
        (dict(versions={'mmcv': '2.0.0rc3'}), 'mmcv for mmseg', ERROR, 'MG508', ['mmcv']),
        (dict(versions={'mmcv': None, 'mmcv-full': '1.7.1'}), 'mmcv', ERROR, 'MG508', ['mmcv']),
        (dict(versions={'mmcv': None, 'mmcv-lite': '2.1.0'}, ops=False), OPS, ERROR, 'MG508', ['mmcv']),
        (dict(ops=False, missing=['mmdet']), OPS, WARNING, 'MG508', ['mmcv']),
        (dict(errors={'mmcv.ops': 'ImportError: undefined symbol'}), OPS, ERROR, 'MG508', ['mmcv']),
        (
            dict(errors={'cv2': 'ImportError: libGL.so.1'}),
            *('cv2 (opencv-python)', ERROR, 'MG506', ['opencv-python-headless']),
        ),
        (
            dict(versions={'onedl-mmcv': '2.3.0'}),
            *('mmcv', ERROR, 'MG502', ['mmengine', 'mmcv', 'mmsegmentation', 'mmdet']),
        ),
        (dict(versions={'torch': None}, missing=['torch']), 'torch', ERROR, 'MG505', ['torch']),
        (dict(missing=['mmcv']), 'mmcv', ERROR, 'MG505', ['mmcv']),
        (dict(errors={'mmseg': 'AssertionError: no'}), 'mmseg (mmsegmentation)', ERROR, 'MG506', None),
        (dict(versions={'mmengine': None}, missing=['mmengine']), 'mmengine', ERROR, 'MG505', ['mmengine']),
        (
            dict(versions={'torchvision': '0.28.0'}, errors={'torchvision': 'OSError: libcudart.so.13'}),
            *('torchvision', ERROR, 'MG506', []),
        ),
    ],
)
def test_what_is_not_is_a_finding_with_what_to_do(
    more: Any, name: str, level: str, code: str, installed: Optional[List[str]]
) -> None:
    here = facts(**more)
    found = diagnose(environment=here)
    lines = build_table(here, found)
    (line,) = [line for line in lines if line.name == name]
    assert (line.level, set(line.codes)) == (level, {code})
    edits = [edit for finding in found if finding.code == code for edit in finding.edits]
    first = [name for name, version in edits[0].environment if version is not None] if edits else None
    assert first == installed
    for finding in found:
        assert set(finding.places) <= {line.name for line in lines}
        for edit in finding.edits:
            after = diagnose(environment=here.apply_changes(edit.environment))
            assert finding not in after
            assert {one.code for one in after if one.severity == ERROR} <= {one.code for one in found}


def test_a_change_that_another_framework_refuses_is_not_offered() -> None:
    here = facts(versions={'mmcv': '2.2.0'})
    here.accepts = {'mmseg': ('2.0.0rc4', '2.1.0'), 'mmdet': ('2.1.0', '2.2.0')}
    (finding,) = diagnose(environment=here)
    assert (finding.code, finding.edits) == ('MG508', ())


def test_a_missing_mmcv_is_installed_as_the_frameworks_accept_it(snapshot: Any) -> None:
    here = facts(versions={'mmcv': None}, missing=['mmcv'])
    here.accepts = {'mmseg': ('2.0.0rc4', '2.1.0'), 'mmdet': ('2.0.0', '2.2.0')}
    (finding,) = diagnose(environment=here)
    (edit,) = finding.edits
    ((package, version),) = edit.environment
    assert package == 'mmcv'
    assert build_version_key('2.0.0') <= build_version_key(version) < build_version_key('2.1.0')
    snapshot('env', 'a missing mmcv', format_finding(finding, 100))


def test_mmcv_1_is_one_finding() -> None:
    found = diagnose(environment=facts(versions={'mmcv': None, 'mmcv-full': '1.7.1'}))
    assert [(finding.code, finding.places[0]) for finding in found] == [('MG508', 'mmcv')]


def test_a_package_that_takes_the_interpreter_down_is_a_verdict(tmp_path: Path, monkeypatch: Any) -> None:
    for name, text in {
        'breaks': 'raise OSError("libbroken.so: undefined symbol")',
        'aborts': 'import os; os.abort()',
        'exits': 'raise SystemExit(3)',
        'talks': 'print("[1, 2]"); print("hello")',
    }.items():
        (tmp_path / f'{name}.py').write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    errors, available = import_errors(['breaks', 'aborts', 'exits', 'talks', 'json', 'not_there_at_all'])
    assert list(errors) == ['breaks', 'aborts', 'exits', 'not_there_at_all']
    assert errors['breaks'] == 'OSError: libbroken.so: undefined symbol'
    assert '-6' in errors['aborts']
    assert available is None


def test_files_alone_say_what_is_here() -> None:
    found = gather(try_imports=False)
    assert found.errors == {}
    assert found.versions['mmguard']
    assert found.ops is (None if 'mmcv' in found.missing else 'mmcv-lite' not in found.versions)
    assert 'torch' not in found.missing


def test_nothing_heavy_is_imported() -> None:
    code = (
        'import sys\nfrom mmguard.findings import diagnose\nbefore = set(sys.modules)\n'
        'from mmguard.tools.env.facts import gather\ndiagnose(environment=gather(try_imports=False))\n'
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
    assert record['worst'] != ERROR
    assert all(line['name'] in said for line in record['lines'])
    assert all(finding['code'] in said for finding in record['findings'])
    assert main(['env', '--json', '-', '--no-import']) == 0
    assert json.loads(capsys.readouterr().out)['lines'][0]['name'] == 'python'


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
