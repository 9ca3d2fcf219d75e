"""Rules of other packages: the one of CONTRIBUTING.md, installed with pip, and packages that are broken or hostile."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib.metadata import distributions, version
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Tuple

import numpy as np
import pytest
from PIL import Image
from put_file import put

from mmguard.cli import main
from mmguard.findings import LabelFacts, diagnose
from mmguard.findings.plugins import find_installed_rules

CONTRIBUTING = Path(__file__).parents[2] / 'CONTRIBUTING.md'
Install = Callable[..., None]

RULE = """
from mmguard.findings import ConfigRule, DataRule, Example, Finding, Rule

class Own({base}):
    code = {code!r}
    summary = 'Seen.'
    why = 'It matters.'
    example = Example(wrong='a', right='b')
    advice = 'Do it.'
    needs, kinds, severity = (), ('pixels', 'instances'), 'warning'
    {body}
"""
FINDS = "look = lambda self, facts, labels: [self.report_in(facts, 'proven')]"


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Return a function that writes what pip leaves of a package with one rule."""
    site = tmp_path / 'site'
    site.mkdir()
    monkeypatch.syspath_prepend(str(site))
    before = set(sys.modules)

    def write(package: str, code: str, module: str) -> None:
        name = package.replace('-', '_')
        (site / f'{name}.py').write_text(module)
        info = site / f'{name}-1.0.dist-info'
        put(info / 'METADATA', f'Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n')
        (info / 'entry_points.txt').write_text(f'[mmguard.rules]\n{code} = {name}:Own\n')
        find_installed_rules.cache_clear()

    yield write
    find_installed_rules.cache_clear()
    for name in set(sys.modules) - before:
        if str(site) in str(getattr(sys.modules[name], '__file__', '')):
            del sys.modules[name]


@pytest.fixture
def maps(tmp_path: Path) -> Path:
    folder = tmp_path / 'maps'
    folder.mkdir()
    for number in range(3):
        Image.fromarray(np.array([[0, 1], [2, 9 * (number == 1)]], np.uint8)).save(folder / f'{number}.png')
    return folder


def scan(maps: Path, capsys: Any, *words: str) -> Tuple[int, List[str], List[str]]:
    """Return exit code, codes of the findings and what could not run."""
    code = main(['scan', str(maps), '--num-classes', '3', '--processes', '1', '--json', '-', *words])
    said = json.loads(capsys.readouterr().out)
    return code, [one['code'] for part in said['datasets'] for one in part['findings']], said['failed']


def test_the_package_of_contributing(tmp_path: Path, maps: Path) -> None:
    # Not importorskip: where pip was imported or looked for, setuptools refuses to be imported after distutils, and
    # with it torch.compile.
    if not any(distributions(name='pip')):
        pytest.skip('pip is not installed')
    if int(version('setuptools').partition('.')[0]) < 61:
        pytest.skip('its setuptools reads no pyproject.toml')
    text = CONTRIBUTING.read_text(encoding='utf-8').partition('### Rules of your own')[2]
    project, module = (re.search(rf'```{kind}\n(.*?)```', text, re.DOTALL)[1] for kind in ('toml', 'python'))
    source, site = tmp_path / 'source', tmp_path / 'installed'
    put(source / 'pyproject.toml', project)
    (source / 'acme_rules.py').write_text(module)
    pip = [sys.executable, '-m', 'pip', 'install', '--no-deps', '--no-build-isolation', '--no-index', '-q']
    subprocess.run([*pip, '--disable-pip-version-check', '--target', str(site), str(source)], check=True)
    start = f'import sys; sys.path.insert(0, {str(site)!r}); from mmguard.cli import main; sys.exit(main())'

    def run(*words: str) -> Tuple[int, str]:
        done = subprocess.run([sys.executable, '-c', start, *words], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout

    command = ('scan', str(maps), '--num-classes', '10', '--json', '-')
    code, said = run(*command)
    found = [one for one in json.loads(said)['datasets'][0]['findings'] if one['code'] == 'ACME101']
    assert (code, [(one['evidence'], one['severity']) for one in found]) == (1, [('3 files', 'warning')])
    assert 'ACME101' in run('scan', str(maps), '--num-classes', '10')[1]
    code, said = run(*command, '--select', 'ACME')
    assert (code, [one['code'] for one in json.loads(said)['datasets'][0]['findings']]) == (1, ['ACME101'])
    assert run(*command, '--ignore', 'ACME101')[0] == 0
    code, said = run('explain', 'acme101')
    assert (code, said.split()[0]) == (0, 'ACME101')
    assert 'ACME101' in run('explain')[1]


def test_a_rule_of_configs(install: Install, tmp_path: Path, capsys: Any) -> None:
    pytest.importorskip('mmengine')
    body = "look = lambda self, config: [self.report_at('model.type', config.data['model']['type'])]"
    install('beta-checks', 'BETA7', RULE.format(base='ConfigRule', code='BETA7', body=body))
    config = put(tmp_path / 'small.py', "default_scope = 'mmseg'\nmodel = dict(type='EncoderDecoder')\n")
    assert main(['check', str(config), '--json', '-', '--select', 'BETA7']) == 1
    (found,) = json.loads(capsys.readouterr().out)['findings']
    assert (found['code'], found['places']) == ('BETA7', ['model.type'])
    assert main(['check', str(config), '--json', '-', '--ignore', 'BETA7']) == 0


#: What is wrong with a rule that is not used -> (name of the entry point, code that leaves it out, module).
REFUSED: Dict[str, Tuple[str, str, str]] = {
    'raises at import': ('ACME1', 'ACME1', '1 / 0'),
    'ends the program at import': ('ACME1', 'ACME1', 'raise SystemExit(0)'),
    'is not a rule': ('XY12', 'XY12', 'Own = 3'),
    'a code of ours': ('MG102', 'HOSTILE-RULES:MG102', RULE.format(base='DataRule', code='MG102', body=FINDS)),
    'not a code': ('few files', 'HOSTILE-RULES:FEW', RULE.format(base='DataRule', code='few files', body=FINDS)),
    'another code': ('ACME1', 'ACME1', RULE.format(base='DataRule', code='MG107', body=FINDS)),
}  # fmt: skip
#: The same for rules that are used, and raise when they look.
RAISING: Dict[str, Tuple[str, str, str]] = {
    'raises': ('ACME1', 'ACME1', RULE.format(base='DataRule', code='ACME1', body='look = lambda s, f, l: l.absent')),
    'yields a text': (
        'ACME1', 'ACME1', RULE.format(base='DataRule', code='ACME1', body="find = lambda s, f: iter(['wrong'])"),
    ),
    'a finding of ours': (
        'ACME1', 'ACME1',
        RULE.format(
            base='DataRule', code='ACME1', body="find = lambda s, f: iter([Finding('MG101', 't', 'e', 'a', 'proven')])"
        ),
    ),
    'a placeholder without a value': (
        'ACME1', 'ACME1', RULE.format(base='DataRule', code='ACME1', body=f"title = '{{unknown}}'\n    {FINDS}"),
    ),
}  # fmt: skip


@pytest.mark.parametrize('wrong', [*REFUSED, *RAISING])
def test_a_broken_rule_is_named_and_stops_nothing(wrong: str, install: Install, maps: Path, capsys: Any) -> None:
    usual = scan(maps, capsys)
    assert usual[0] == 1
    assert not usual[2]
    name, code, module = {**REFUSED, **RAISING}[wrong]
    install('hostile-rules', name, module)
    failing = scan(maps, capsys)
    assert failing[:2] == (2, usual[1])
    (reason,) = failing[2]
    assert 'hostile-rules 1.0' in reason
    assert scan(maps, capsys, '--ignore', code) == usual
    assert scan(maps, capsys, '--select', 'MG')[0] == 1
    assert main(['explain', code.lower()]) == (0 if wrong in RAISING else 2)


def test_of_two_with_one_code_the_first_is_used(install: Install, maps: Path, capsys: Any) -> None:
    module = RULE.format(base='DataRule', code='ACME1', body=FINDS)
    install('alpha', 'ACME1', module)
    install('omega', 'ACME1', module)
    code, found, (reason,) = scan(maps, capsys)
    assert (code, found.count('ACME1')) == (2, 1)
    assert 'omega 1.0' in reason
    assert 'alpha 1.0' in reason
    assert scan(maps, capsys, '--ignore', 'OMEGA:ACME1')[0] == 1


def test_an_edit_that_raises_leaves_the_finding(install: Install, maps: Path, capsys: Any) -> None:
    body = f'{FINDS}\n    offer = lambda self, facts, labels: 1 / 0'
    install('acme-rules', 'ACME1', RULE.format(base='DataRule', code='ACME1', body=body))
    code, found, (reason,) = scan(maps, capsys)
    assert (code, 'ACME1' in found) == (2, True)
    assert 'acme-rules 1.0' in reason


def test_a_check_goes_on_without_it(install: Install, tmp_path: Path, capsys: Any) -> None:
    pytest.importorskip('mmengine')
    install(
        'acme-rules', 'ACME1', RULE.format(base='ConfigRule', code='ACME1', body='look = lambda self, config: 1 / 0')
    )
    config = put(tmp_path / 'small.py', "default_scope = 'mmseg'\nmodel = dict(type='EncoderDecoder')\n")
    assert main(['check', str(config), '--json', '-']) == 2
    (reason,) = json.loads(capsys.readouterr().out)['failed']
    assert 'acme-rules 1.0' in reason
    assert main(['check', str(config), '--format', 'sarif']) == 2
    (run,) = json.loads(capsys.readouterr().out)['runs']
    assert run['invocations'][0]['executionSuccessful'] is False
    assert main(['check', str(config), '--ignore', 'ACME1']) == 0


def test_a_training_warns_and_goes_on(install: Install) -> None:
    facts = LabelFacts(values={9: 3}, num_classes=3, ignore_index=255, total=100, files=1)
    usual = [one.code for one in diagnose(facts)]
    install('acme-rules', 'ACME1', '1 / 0')
    with pytest.warns(RuntimeWarning, match=r'acme-rules 1\.0'):
        assert [one.code for one in diagnose(facts)] == usual
