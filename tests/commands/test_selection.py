"""Exit codes, codes and forms of the findings: the same for each command that finds something."""

from __future__ import annotations

import json
import ntpath
import os
import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from label_files import write, write_copies
from pictures import picture
from put_file import put
from voc_cases import obj, xml

from mmguard.cli import main
from mmguard.commands import selection
from mmguard.commands.machine_formats import ReportEntry, build_entry, write_entries
from mmguard.commands.selection import RuleSelection
from mmguard.findings.finding import SEVERITIES, Finding
from mmguard.text import REPORT_ADVICE

#: Values of the label maps of a folder -> the severity of what `scan` finds with three classes.
FOLDERS = {'error': (0, 1, 2, 3, 9), 'info': (0, 1, 2)}


def write_maps(folder: Path, values) -> Path:
    label = np.zeros((24, 24), np.uint8)
    label[:, : 4 * len(values)] = np.repeat(values, 4)
    return write_copies(folder, label)


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    """A working directory without settings."""
    monkeypatch.chdir(put(tmp_path / 'work' / 'pyproject.toml', '').parent)


def scan(folder: Path, *options: str) -> int:
    return main(['scan', str(folder), '--num-classes', '3', '--processes', '1', *options])


def test_severities_are_those_of_findings():
    assert selection.SEVERITIES == SEVERITIES


@pytest.mark.parametrize('fail_on', SEVERITIES)
@pytest.mark.parametrize('severity', SEVERITIES)
def test_a_severity_fails_at_its_own_threshold_and_below(severity, fail_on):
    fails = SEVERITIES.index(severity) <= SEVERITIES.index(fail_on)
    assert RuleSelection(fail_on=fail_on).choose_exit_code([severity]) == int(fails)
    assert RuleSelection(fail_on=fail_on).choose_exit_code([]) == 0


def test_scan_shows_only_the_chosen_codes(tmp_path, capsys):
    folder = write_maps(tmp_path / 'maps', FOLDERS['error'])
    assert scan(folder, '--json', '-') == 1
    (codes,) = [[one['code'] for one in data['findings']] for data in json.loads(capsys.readouterr().out)['datasets']]
    assert codes
    assert 'MG100' not in codes
    page = tmp_path / 'page.html'
    assert scan(folder, '--ignore', ','.join(codes), '--html', str(page), '--json', str(tmp_path / 'found.json')) == 0
    (data,) = json.loads((tmp_path / 'found.json').read_text())['datasets']
    assert (data['findings'], data['hidden']) == ([], codes)
    # Hidden findings are not an all-clear: each code is named.
    for shown in (capsys.readouterr().out, page.read_text()):
        assert all(code in shown for code in codes)
    assert 'class="card verdict fine"' not in page.read_text()
    assert scan(folder, '--select', codes[0], '--json', '-') == 1
    (data,) = json.loads(capsys.readouterr().out)['datasets']
    assert [one['code'] for one in data['findings']] == codes[:1]
    assert scan(folder, '--select', 'MG999') == 2


@pytest.mark.skipif(sys.version_info < (3, 11), reason='tomllib came with Python 3.11')
@pytest.mark.parametrize(
    ('settings', 'options', 'code'),
    [
        ('fail-on = "info"', [], 1),
        ('fail-on = "info"', ['--fail-on', 'error'], 0),
        ('ignore = ["MG100"]\nfail-on = "info"', [], 0),
        ('format = "sarif"\nfail-on = "info"', ['--json', '-'], 1),
        ('fail_on = "info"', [], 2),
        ('fail-on = "never"', [], 2),
        ('ignore = "MG100"', [], 2),
        ('ignore = [', [], 2),
    ],
)
def test_the_nearest_pyproject_holds_defaults(tmp_path, settings, options, code):
    Path('pyproject.toml').write_text(f'[tool.mmguard]\n{settings}\n')
    assert scan(write_maps(tmp_path / 'maps', FOLDERS['info']), *options) == code


HIDING = '[tool.mmguard]\nignore = ["MG"]\n'


@pytest.mark.skipif(sys.version_info < (3, 11), reason='tomllib came with Python 3.11')
@pytest.mark.parametrize('form', selection.FORMATS)
@pytest.mark.parametrize('command', ['scan', 'check'])
def test_hidden_findings_are_counted_in_every_format(tmp_path, capsys, command, form):
    if command == 'check':
        pytest.importorskip('mmseg')
        loss = "loss_decode=dict(type='CrossEntropyLoss', class_weight=[1.0] * 3)"
        head = f"dict(type='FCNHead', num_classes=4, {loss})"
        target = tmp_path / 'config.py'
        target.write_text(f"default_scope = 'mmseg'\nmodel = dict(type='EncoderDecoder', decode_head={head})\n")
        words = ['check', str(target), '--no-verify', '--format', form]
    else:
        words = ['scan', str(write_maps(tmp_path / 'maps', FOLDERS['error'])), '--num-classes', '3', '--processes', '1']
        words += ['--format', form]
    assert main([*words, '--format', 'json']) == 1
    record = json.loads(capsys.readouterr().out)
    codes = [one['code'] for one in record.get('datasets', [record])[0]['findings']]
    assert codes
    Path('pyproject.toml').write_text(HIDING)
    assert main(words) == 0
    shown = capsys.readouterr()
    assert 'pyproject.toml' in shown.err
    if form == 'json':
        record = json.loads(shown.out)
        assert record.get('datasets', [record])[0]['hidden'] == codes
    elif form == 'sarif':
        results = json.loads(shown.out)['runs'][0]['results']
        assert [one['ruleId'] for one in results if one['suppressions']] == codes
    elif form == 'junit':
        suite = ElementTree.fromstring(shown.out)[0]
        assert (suite.get('failures'), suite.get('skipped')) == ('0', str(len(codes)))
        assert all('pyproject.toml' in (case.text or '') for case in suite.iter('skipped'))
    else:
        (line,) = [line for line in shown.out.splitlines() if 'pyproject.toml' in line]
        assert f'{len(codes)} finding' in line
    assert main([*words[:-2], '--ignore', 'MG']) == 0
    assert '--ignore' in capsys.readouterr().out


@pytest.mark.skipif(sys.version_info < (3, 11), reason='tomllib came with Python 3.11')
@pytest.mark.parametrize(
    ('settings', 'root', 'here', 'target', 'code'),
    [
        ('', '', '', 'maps', 0),
        ('', '', 'a/b', 'maps', 1),  # without a repository, the working directory only
        ('', '.', 'a/b', 'maps', 0),
        ('', 'a', 'a/b', 'maps', 1),  # above the repository
        ('', '', 'maps', '.', 1),
        ('', '.', 'maps', '.', 0),
        ('maps', '', 'maps', '../maps', 1),
        ('maps', '', 'maps', '.', 1),
        ('maps/deep', '', 'maps/deep', '..', 1),
        ('maps', '', 'maps', '../linked', 1),
        ('a', '', 'a', 'maps', 0),
    ],
)
def test_settings_are_those_of_the_project_around_the_working_directory(
    tmp_path, monkeypatch, settings, root, here, target, code
):
    home = Path.cwd()
    write_maps(home / 'maps', FOLDERS['error'])
    (home / 'linked').symlink_to(home / 'maps')
    for folder in ('a/b', 'maps/deep'):
        (home / folder).mkdir(parents=True)
    if root:
        (home / root / '.git').mkdir()
    (home / settings / 'pyproject.toml').write_text(HIDING)
    monkeypatch.chdir(home / here)
    assert scan(home / target if target == 'maps' else Path(target)) == code


@pytest.mark.skipif(sys.version_info < (3, 11), reason='tomllib came with Python 3.11')
@pytest.mark.parametrize(
    'text',
    [
        f'[tool.mmguard.{"a." * 300_000}b]\n',
        f'[tool.mmguard]\nx = {"[" * 100_000}\n',
        f'[tool.mmguard]\nx = {"{a=" * 30_000}\n',
        f'[tool.mmguard]\n{"a." * 100_000}b = 1\n',
        '[tool.mmguard]\n' + ''.join(f'{"a." * 199}b{number} = 1\n' for number in range(2_500)),
        f'[tool.mmguard]\n{"[[a]]" * 9}\n' + '[[a]]\n' * 40_000,
        f'[tool.mmguard]\nx = {"1" * 200_000}\n',
        f'[tool.mmguard]\nignore = {["MG"] * 10_000}{" " * 1_100_000}\n',
    ],
    ids=['table', 'list', 'inline', 'key', 'keys', 'tables', 'number', 'large'],
)
def test_the_cost_of_settings_is_bounded(tmp_path, capsys, text):
    Path('pyproject.toml').write_text(text)
    start = time.perf_counter()
    assert scan(write_maps(tmp_path / 'maps', FOLDERS['info'])) == 2
    assert time.perf_counter() - start < 20
    shown = capsys.readouterr().err
    assert 'pyproject.toml' in shown
    assert REPORT_ADVICE not in shown


@pytest.mark.parametrize('form', ['github', 'sarif', 'junit'])
def test_each_form_names_the_files_relative_to_the_working_directory(tmp_path, capsys, form):
    folder = write_maps(Path('maps').absolute(), FOLDERS['error'])
    assert scan(folder, '--format', form) == 1
    shown = capsys.readouterr()
    assert 'MG' in shown.err  # people read there
    if form == 'sarif':
        (run,) = json.loads(shown.out)['runs']
        files = {
            place['physicalLocation']['artifactLocation']['uri'] for one in run['results'] for place in one['locations']
        }
    elif form == 'junit':
        cases = ElementTree.fromstring(shown.out).iter('failure')
        files = {line for case in cases for line in (case.text or '').splitlines() if line.startswith('maps/')}
    else:
        files = {line.partition('file=')[2].partition(',')[0] for line in shown.out.splitlines()}
    assert files
    assert all((Path.cwd() / file).is_file() for file in files)


def write_voc(folder: Path) -> Path:
    for number in range(25):
        put(folder / 'Annotations' / f'{number}.xml', xml(obj(box=(4, 4, 4, 9))))
    return folder


def write_yolo(folder: Path) -> Path:
    for number in range(25):
        put(folder / 'images' / f'{number}.jpg', picture())
        put(folder / 'labels' / f'{number}.txt', '7 0.5 0.5 0.25 0.25\n')
    return put(folder / 'data.yaml', 'path: .\ntrain: images\nval: images\nnames: [cat, dog]\n')


def write_many_maps(folder: Path) -> Path:
    for number in range(25):
        write(folder / f'map: {number}.png', np.full((8, 8), 200, np.uint8))
    return folder


@pytest.mark.parametrize(
    ('write', 'options'), [(write_many_maps, ['--num-classes', '3']), (write_voc, []), (write_yolo, [])]
)
def test_json_names_all_files_from_the_working_directory(capsys, write, options):
    assert main(['scan', str(write(Path('set'))), '--processes', '1', '--json', '-', *options]) == 1
    (data,) = json.loads(capsys.readouterr().out)['datasets']
    assert len(data['facts']['offending']) == 25
    found = [*data['facts']['offending'], *(one['file'] for one in data['worst'])]
    assert [file for file in found if not Path(file).is_file()] == []
    # A place in the file may follow: `set/a.xml: 4, 4, 90, 9`.
    named = [file for one in data['findings'] for file in one['files']]
    assert [file for file in named if any(file.startswith(known) for known in found)]
    assert [file for file in named if Path('set', file.partition(': 4')[0]).is_file()] == []


def test_two_outputs_to_standard_output_are_refused(tmp_path):
    folder = write_maps(tmp_path / 'maps', FOLDERS['info'])
    assert scan(folder, '--json', '-', '--format', 'sarif') == 2


#: With bytes of a file name that are not UTF-8.
TEXTS = st.text(max_size=40) | st.binary(max_size=20).map(os.fsdecode)
ENTRIES = st.lists(
    st.builds(
        ReportEntry,
        st.sampled_from(['MG101', 'MG214', 'move-together']),
        st.sampled_from(SEVERITIES),
        TEXTS,
        TEXTS,
        st.lists(TEXTS, min_size=1, max_size=3).map(tuple),
        st.lists(TEXTS, max_size=2).map(tuple),
    ),
    max_size=4,
)


@given(ENTRIES, st.lists(TEXTS, max_size=2))
def test_any_text_gives_valid_sarif(entries, failed):
    sarif = pytest.importorskip('sarif_pydantic')
    written = write_entries('sarif', 'scan', 'data', entries, failed)
    log = sarif.Sarif.model_validate_json(written)
    assert [one.rule_id for one in log.runs[0].results or ()] == [entry.code for entry in entries]
    assert log.runs[0].invocations[0].execution_successful is not bool(failed)


@given(ENTRIES, st.lists(TEXTS, max_size=2))
def test_any_text_gives_junit_with_a_failure_for_each_error_and_warning(entries, failed):
    parser = pytest.importorskip('junitparser')
    (suite,) = parser.JUnitXml.fromstring(write_entries('junit', 'scan', 'data', entries, failed).encode())
    assert (suite.failures, suite.errors) == (sum(one.severity != 'info' for one in entries), len(failed))
    assert suite.tests == len(list(suite)) == max(1, len(entries) + len(failed))


@given(ENTRIES)
def test_any_text_gives_one_annotation_for_each_file(entries):
    lines = write_entries('github', 'scan', 'data', entries).split('\n')
    assert len(lines) == sum(len(entry.files) for entry in entries) + 1
    assert all(line.startswith(('::error ', '::warning ', '::notice ')) for line in lines[:-1])


@pytest.mark.parametrize('form', selection.FORMATS)
def test_entries_are_built_for_the_formats_of_machines(form):
    shown, hidden = (Finding(code, '', '', '', 'proven') for code in ('MG101', 'MG102'))
    entries = RuleSelection(format=form, hidden_by='--ignore').build_entries('data', [shown], [hidden])
    expected = [] if form in ('text', 'json') else [('MG101', 'error'), ('MG102', 'hidden')]
    assert [(entry.code, entry.severity) for entry in entries] == expected


def test_an_image_of_a_json_is_reported_at_the_json():
    Path('train.json').write_text('{}')
    Path('images').mkdir()
    finding = Finding('MG101', '', '', '', 'proven', files=('7.jpg',))
    assert build_entry(finding, 'config.py', ['images', str(Path('train.json').absolute())]).files == ('train.json',)
    Path('images', '7.jpg').write_text('')
    assert build_entry(finding, 'config.py', ['images', 'train.json']).files == ('images/7.jpg',)
    Path('secret.png').write_text('')  # a data set does not name files outside of it
    outside = Finding('MG101', '', '', '', 'proven', files=('../secret.png',))
    assert build_entry(outside, 'config.py', ['images']).files == ('config.py',)


def test_bars_are_written_in_ascii_where_standard_output_knows_no_other(tmp_path):
    folder = write_maps(tmp_path / 'maps', FOLDERS['info'])
    environment = dict(os.environ, PYTHONIOENCODING='ascii')
    words = [sys.executable, '-m', 'mmguard.cli', 'scan', str(folder), '--num-classes', '3', '--processes', '1']
    shown = subprocess.run(words, capture_output=True, text=True, check=True, env=environment)
    assert '####' in shown.stdout
    assert '\\u2588' not in shown.stdout


@pytest.mark.parametrize(('typed', 'meant'), [('scna', 'scan'), ('dry_run', 'dry-run'), ('expalin', 'explain')])
def test_the_nearest_command_is_named(capsys, typed, meant):
    with pytest.raises(SystemExit):
        main([typed])
    assert capsys.readouterr().err.rstrip().endswith(f'{meant}?')


@pytest.mark.parametrize('name', ['D:\\labels\\1.png', r'E:\a {b}\3.json', '//host/share/0.png'])
def test_a_file_on_another_drive_keeps_its_name(name, monkeypatch):
    monkeypatch.setattr(os.path, 'relpath', ntpath.relpath)
    assert build_entry(Finding('MG101', 'Title.', 'evidence', 'advice', 'proven'), name).files == (name,)
