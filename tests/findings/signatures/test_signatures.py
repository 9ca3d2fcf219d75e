"""The signatures as data."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import zipfile
from importlib.metadata import distributions
from pathlib import Path
from typing import Any, Dict, Iterator, List, Tuple

import pytest
from volume_facts import VOLUME_EXAMPLES
from warm import run_beside_torch

from mmguard.cli import main
from mmguard.commands.explain import log_facts
from mmguard.findings import signatures
from mmguard.findings.plugins import list_own_rules
from mmguard.findings.signatures import Signature, read_signatures
from mmguard.findings.signatures.__main__ import build_page

ROOT = Path(__file__).parents[3]
FOLDER = Path(signatures.__file__).parent
FILES = {path.stem: json.loads(path.read_text(encoding='utf-8')) for path in sorted(FOLDER.glob('*.json'))}
SHARED = FILES['shared']
KNOWN = {*VOLUME_EXAMPLES, *(code for rule in list_own_rules() for code in (rule.code, *rule.aliases))}

#: Field -> whether it has to be there, and its type.
SIGNATURE = {
    **dict.fromkeys(['code', 'title', 'meaning'], (True, str)),
    'command': (False, (str, dict)),
    'pattern': (True, (str, list)),
    'causes': (True, list),
    'place': (False, (str, list)),
    'bare': (False, bool),
    'stage': (False, str),
}
CAUSE = {
    'text': (True, str),
    'codes': (False, list),
    'refuted_by': (False, list),
    'frameworks': (False, list),
    'look': (False, str),
    'advice': (False, dict),
    **dict.fromkeys(['context', 'supports', 'refutes'], (False, (str, list))),
}


def entries() -> List[Dict[str, Any]]:
    return [entry for name in signatures.FILES for entry in FILES[name]['signatures']]


def causes() -> Iterator[Tuple[str, Dict[str, Any]]]:
    """Yield where each cause is, and its fields as they are written."""
    yield from (('shared.json', {'key': key, **cause}) for key, cause in SHARED.items())
    for entry in entries():
        yield from ((entry['code'], {'key': cause} if isinstance(cause, str) else cause) for cause in entry['causes'])


def frameworks() -> Iterator[str]:
    for entry in read_signatures():
        yield from entry.command
    for _, cause in causes():
        yield from (*cause.get('frameworks', ()), *cause.get('advice', ()))


def test_frameworks_are_those_that_a_log_shows() -> None:
    assert set(frameworks()) <= {'torch', *log_facts._FRAMEWORKS}


def check_fields(fields: Dict[str, Any], schema: Dict[str, Any]) -> None:
    assert set(fields) <= set(schema), set(fields) - set(schema)
    assert {name for name, (needed, _) in schema.items() if needed} <= set(fields)
    for name, value in fields.items():
        assert isinstance(value, schema[name][1]), (name, value)
        assert value or value == 0, name
        for text in value if isinstance(value, list) and name != 'causes' else [value]:
            # The \b of a pattern that is not written \\b is a backspace.
            assert not isinstance(text, str) or text.isprintable(), (name, text)


@pytest.mark.parametrize('entry', entries(), ids=lambda entry: entry['code'])
def test_a_signature_follows_the_schema(entry: Dict[str, Any]) -> None:
    check_fields(entry, SIGNATURE)
    assert re.fullmatch(r'MG(4\d|3[567]|58)\d', entry['code'])
    assert entry.get('stage', 'raised') in signatures.STAGES
    assert entry['title'].endswith('.')
    assert entry['meaning'].endswith('.')
    keys = [cause if isinstance(cause, str) else cause['key'] for cause in entry['causes']]
    assert len(keys) == len(set(keys))


@pytest.mark.parametrize(('where', 'cause'), causes(), ids=lambda part: part if isinstance(part, str) else part['key'])
def test_a_cause_follows_the_schema(where: str, cause: Dict[str, Any]) -> None:
    own = {name: value for name, value in cause.items() if name != 'key'}
    assert re.fullmatch(r'[a-z0-9]+(-[a-z0-9]+)*', cause['key'])
    # One meaning for each key that is shared.
    assert where == 'shared.json' or 'text' not in own or cause['key'] not in SHARED
    check_fields({**SHARED.get(cause['key'], {}), **own}, CAUSE)
    assert set(cause.get('codes', ())) <= KNOWN, set(cause['codes']) - KNOWN
    assert set(cause.get('refuted_by', ())) <= {'files', 'config'}


def test_a_cause_that_no_line_proves_has_a_look_that_decides() -> None:
    lists = [one for one in read_signatures() if len(one.causes) > 1]
    assert len(lists) > 40
    assert [(one.code, cause.key) for one in lists for cause in one.causes if not (cause.look or cause.supports)] == []


def test_every_file_is_searched_and_every_shared_cause_is_used() -> None:
    assert {*signatures.FILES, 'shared'} == set(FILES)
    assert set(SHARED) <= {cause['key'] for where, cause in causes() if where != 'shared.json'}


def test_each_has_a_code_of_its_own() -> None:
    codes = [one.code for one in read_signatures()]
    assert len(codes) == len(set(codes))
    assert not set(codes) & KNOWN


@pytest.mark.parametrize('one', read_signatures(), ids=lambda one: one.code)
def test_the_patterns_of_a_signature_compile(one: Signature) -> None:
    patterns = [one.pattern, one.place]
    patterns += [pattern for cause in one.causes for pattern in (cause.context, cause.supports, cause.refutes)]
    for pattern in patterns:
        # An empty alternative would match every text.
        assert not pattern or not re.search(pattern, '') or pattern.startswith(r'\A(?!')


@pytest.mark.parametrize('one', read_signatures(), ids=lambda one: one.code)
def test_every_signature_is_explained(one: Signature, capsys: pytest.CaptureFixture) -> None:
    assert main(['explain', one.code.lower()]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f'{one.code}  {one.title}')
    assert all(cause.text in out for cause in one.causes)


def test_the_page_of_errors_is_current() -> None:
    written = (ROOT / 'docs' / 'errors.md').read_text(encoding='utf-8')
    assert written == build_page(), 'run `python -m mmguard.findings.signatures > docs/errors.md`'


def test_files_are_read_once_and_only_where_an_error_is_explained() -> None:
    done = run_beside_torch(
        'import sys\n'
        'opened = []\n'
        'sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == "open" else None)\n'
        'import mmguard, mmguard.findings, mmguard.findings.signatures\n'
        'from mmguard.commands.explain import explanation\n'
        'read = lambda: [name for name in opened if "signatures" in name and name.endswith(".json")]\n'
        'assert read() == [], read()\n'
        'explain = lambda: explanation.explain_text(["IndexError: Target 7 is out of bounds.\\n"])\n'
        'explain()\n'
        'once = read()\n'
        f'assert len(set(once)) == {len(FILES)}, once\n'
        'explain()\n'
        'assert read() == once, read()\n'
        'assert 0 < explanation._compile.cache_info().currsize < len(mmguard.findings.signatures.read_signatures())\n'
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_the_wheel_has_the_signatures(tmp_path: Path) -> None:
    if not any(distributions(name='setuptools')):  # not importorskip, see test_installed_rules.py
        pytest.skip('setuptools is not installed')
    source = tmp_path / 'source'
    shutil.copytree(ROOT / 'mmguard', source / 'mmguard', ignore=shutil.ignore_patterns('__pycache__'))
    for name in ('pyproject.toml', 'README.md', 'LICENSE'):
        shutil.copy(ROOT / name, source)
    wheel = [sys.executable, '-m', 'pip', 'wheel', '--no-index', '--no-deps', '--no-build-isolation']
    done = subprocess.run([*wheel, '-w', str(tmp_path), str(source)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (built,) = tmp_path.glob('*.whl')
    zipfile.ZipFile(built).extractall(tmp_path / 'installed')
    code = (
        f'import sys; sys.path.insert(0, {str(tmp_path / "installed")!r})\n'
        'import mmguard; from mmguard.cli import main\n'
        f'assert mmguard.__file__.startswith({str(tmp_path)!r}), mmguard.__file__\n'
        'sys.exit(main(["explain", "MG413"]))'
    )
    done = subprocess.run([sys.executable, '-c', code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith('MG413')
