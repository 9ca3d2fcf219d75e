"""The command line."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest

from mmguard.cli import main
from mmguard.version import __version__


def test_no_command_prints_help(capsys):
    assert main([]) == 0
    assert 'demo' in capsys.readouterr().out


def test_version(capsys):
    with pytest.raises(SystemExit, match='0'):
        main(['--version'])
    assert capsys.readouterr().out == f'mmguard {__version__}\n'


@pytest.mark.parametrize('words', [['dmo'], ['demo', '--iters', '0'], ['demo', '--iters', 'many'], ['demo', 'extra']])
def test_misuse(words, capsys):
    with pytest.raises(SystemExit, match='2'):
        main(words)
    assert 'mmguard' in capsys.readouterr().err


@pytest.mark.parametrize(
    ('words', 'named'),
    [
        (['fix', 'DIR', '--out', 'NEW', '--ignore', '11'], ['--ignore', '--ignore-index']),
        (['fix', 'DIR', '--out', 'NEW', '--num=11'], ['--num', '--num-classes']),
        (['scan', 'DIR', '--num-clases', '11'], ['--num-clases', '--num-classes']),
        (['check', 'CONFIG', '--xyz', '--selec'], ['--xyz', '--selec', '--select']),
        (['dry-run', 'CONFIG', 'extra'], []),
        (['--vers'], ['--vers', '--version']),
    ],
)
def test_no_option_is_guessed(words, named, capsys):
    with pytest.raises(SystemExit, match='2'):
        main(words)
    error = capsys.readouterr().err.rstrip().rsplit('\n', 1)[1]
    assert error.startswith('mmguard: ' if words[0].startswith('-') else f'mmguard {words[0]}: ')
    assert re.findall(r'--[\w-]+', error) == named


def test_the_help_needs_neither_framework_and_imports_no_more_than_the_parsers():
    code = (
        'import sys; sys.modules["mmseg"] = sys.modules["mmdet"] = None; from mmguard.cli import main; '
        'assert main([]) == 0; print([name for name in sys.modules if name.startswith("mmguard.commands.") '
        'and name.count(".") > 2 and not name.endswith(".command")], "numpy" in sys.modules)'
    )
    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert 'demo' in done.stdout
    assert done.stdout.endswith('[] False\n')


@pytest.mark.parametrize('command', [['report', '.'], ['scan', 'ä', '--num-classes', '2', '--processes', '1']])
def test_characters_that_the_screen_cannot_show_are_escaped(command, tmp_path):
    pytest.importorskip('rich')
    if command[0] == 'scan':
        pytest.importorskip('PIL')
    (tmp_path / 'ä').mkdir()
    line = {'mode': 'train', 'iter': 1, 'skipped_pixels': 5, 'total': 9, 'samples': [{'source': 'ä.png', 'skipped': 5}]}
    (tmp_path / 'label_guard.jsonl').write_text(json.dumps(line) + '\n')
    (tmp_path / 'ä' / 'ä.png').write_bytes(b'no image')
    environment = {**os.environ, 'PYTHONIOENCODING': 'ascii', 'LC_ALL': 'C'}
    run = [sys.executable, '-m', 'mmguard.cli', *command]
    done = subprocess.run(run, capture_output=True, cwd=tmp_path, env=environment)
    assert done.returncode == 1, done.stderr
    assert b'\\xe4.png' in done.stdout
