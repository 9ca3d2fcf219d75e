"""Whatever a command meets, it ends in a line or two and with code 2; --debug shows the traceback."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable, List

import pytest
from put_file import put
from voc_cases import obj, xml

from mmguard.cli import main
from mmguard.labels.rules import LabelRule, count_values
from mmguard.text import describe_broken_import, describe_error, find_own_failure

ASSERTS = "assert False, 'MMCV==2.1.0 is used but incompatible. Please install mmcv>=2.0.0rc4, <2.1.0.'\n"
LACKS = 'from no_such_package.ops import nms\n'
WHY = {ASSERTS: 'AssertionError: MMCV==2.1.0', LACKS: 'no_such_package'}


@pytest.fixture
def broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """Makes a package that does not import, with a config of its scope and a crash record; returns their folder."""
    pytest.importorskip('mmengine')

    def make(source: str) -> str:
        put(tmp_path / 'mmbroken' / '__init__.py', source)
        (tmp_path / 'mmbroken' / 'registry.py').write_text('')
        (tmp_path / 'config.py').write_text(
            "default_scope = 'mmbroken'\n"
            "model = dict(type='Net', bbox_head=dict(type='Head', loss_cls=dict(type='CrossEntropyLoss')))\n"
            "train_dataloader = dict(dataset=dict(type='Data', pipeline=[dict(type='PackDetInputs')]))\n"
        )
        (tmp_path / 'flight.jsonl').write_text(
            '{"format": 2, "capacity": 9}\n{"iter": 1, "samples": [{"path": "a.png"}]}\n'
        )
        monkeypatch.syspath_prepend(str(tmp_path))
        return str(tmp_path)

    return make


@pytest.mark.parametrize('source', [ASSERTS, LACKS], ids=['asserts', 'lacks'])
@pytest.mark.parametrize(
    'words', ['apply {}/config.py -o {}/out.py', 'trace {}/config.py', 'replay {}/config.py {}/flight.jsonl']
)
def test_a_framework_that_does_not_import_is_named(broken: Any, source: str, words: str, capsys: Any) -> None:
    folder = broken(source)
    assert main(words.replace('{}', folder).split()) == 2
    shown = capsys.readouterr()
    (line,) = shown.err.splitlines()
    assert line.startswith(f'mmguard {words.split()[0]}: mmbroken ')
    assert all(named in line for named in (WHY[source], 'mmguard env'))
    assert shown.out == ''
    assert not Path(folder, 'out.py').exists()


def test_a_package_of_the_users_own_is_named_too(broken: Any, capsys: Any) -> None:
    folder = broken(LACKS)
    imports = "custom_imports = dict(imports=['mmbroken'], allow_failed_imports=False)\n"
    Path(folder, 'config.py').write_text(f"{imports}model = dict(type='Net')\n")
    assert main(['apply', f'{folder}/config.py', '-o', f'{folder}/out.py']) == 2
    said = capsys.readouterr().err
    assert all(named in said for named in ('mmbroken', WHY[LACKS]))


@pytest.mark.parametrize('words', [['--debug', 'explain'], ['explain', '--debug'], ['explain']])
def test_what_nobody_expected_is_said_in_one_line(words: List[str], capsys: Any, monkeypatch: Any) -> None:
    def run(args: Any) -> int:
        return count_values(args)  # type: ignore[return-value]

    monkeypatch.setattr('mmguard.commands.explain.command.run', run)
    assert main(words) == 2
    said = capsys.readouterr().err
    assert ('Traceback' in said) == ('--debug' in words)
    line = said.splitlines()[-1]
    assert line.startswith('mmguard explain: AttributeError: ')
    assert '--debug' in line


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path, capsys: Any) -> None:
    pytest.importorskip('rich')
    voc = ships(tmp_path / 'voc')
    (tmp_path / 'file').write_text('')
    assert main(['scan', voc, '--json', str(tmp_path / 'file' / 'b.json')]) == 2
    assert str(tmp_path / 'file') in capsys.readouterr().err.splitlines()[-1]


def ships(folder: Path) -> str:
    """A VOC folder: it is read without any package beside mmguard's own."""
    put(folder / 'a.xml', xml(obj('ship')))
    return str(folder)


@pytest.mark.parametrize('words', [['explain'], ['scan', '{}/voc']], ids=lambda words: words[0])
def test_a_reader_that_goes_is_no_error(tmp_path: Path, words: List[str]) -> None:
    """As `| head -1` does: print, and rich's console."""
    ships(tmp_path / 'voc')
    reading, writing = os.pipe()
    os.close(reading)
    line = [sys.executable, '-m', 'mmguard.cli', *(word.format(tmp_path) for word in words)]
    done = subprocess.run(line, text=True, stdout=writing, stderr=subprocess.PIPE)
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, '')


def raised_by(function: Any, *args: Any) -> BaseException:
    with pytest.raises(BaseException) as caught:
        function(*args)
    return caught.value


def test_only_what_comes_up_in_mmguard_is_its_own_failure() -> None:
    assert re.fullmatch(
        r'mmguard/labels/rules\.py:\d+ in count_values', find_own_failure(raised_by(count_values, None))
    )
    assert find_own_failure(raised_by(LabelRule, -1)) == ''  # what it says to its user
    assert find_own_failure(raised_by(int, 'a')) == ''


def test_an_exception_in_one_line() -> None:
    assert describe_error(ValueError('one\n  two')) == 'ValueError: one two'
    assert describe_error(KeyError()) == 'KeyError'
    assert describe_error(ValueError('a' * 1000)) == f'ValueError: {"a" * 400}'
    assert describe_broken_import(raised_by(__import__, 'no_such_package')) == ''  # nothing that is there is broken
