"""What ``make matrix`` saw is what the package promises, what docs/stacks.md shows and what ``mmguard env`` says."""

from __future__ import annotations

import ast
import io
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from pathlib import Path
from typing import Dict, Iterator, List

import pytest

from mmguard.findings.environment import version_key
from mmguard.tools.env.facts import read_matrix
from tools.matrix import BEGIN, END, ROWS, main, read, table

ROOT = Path(__file__).parents[2]


def promised() -> Dict[str, str]:
    """Package, or Python, -> the lower bound in pyproject.toml."""
    text = (ROOT / 'pyproject.toml').read_text(encoding='utf-8')
    (dependencies,) = re.findall(r'^dependencies = \[(.*)\]$', text, re.MULTILINE)
    (python,) = re.findall(r'^requires-python = ">=([\d.]+)"$', text, re.MULTILINE)
    return {**dict(re.findall(r'"(\w+)>=([\d.]+)"', dependencies)), 'python': python}


def test_the_lower_bounds_are_the_lowest_versions_that_were_green() -> None:
    lowest = {name: min((row[name] for row in read_matrix()), key=version_key) for name in ('torch', 'numpy', 'python')}
    lowest['python'] = '.'.join(lowest['python'].split('.')[:2])  # 3.8 of 3.8.18
    assert {name: version_key(bound) for name, bound in promised().items()} == {
        name: version_key(seen) for name, seen in lowest.items()
    }, f'pyproject.toml should ask for {lowest}'


def test_no_row_is_left_out_and_both_numpy_are_among_them() -> None:
    assert [row['torch'] for row in read()] == [row.torch for row in ROWS]
    numpy = [row['numpy'] for row in read_matrix()]
    assert any(version.startswith('1.26') for version in numpy)
    assert any(version.startswith('2.') for version in numpy)


def test_the_table_is_what_was_seen() -> None:
    page = (ROOT / 'docs' / 'stacks.md').read_text(encoding='utf-8')
    assert page.partition(BEGIN)[2].partition(END)[0].strip().splitlines() == list(table(read()))


def test_an_unknown_version_is_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    monkeypatch.setattr('sys.argv', ['matrix.py', '2.1.2', '0.4.1'])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    assert '0.4.1' in capsys.readouterr().err


FOLDERS = ('mmguard', 'configs', 'examples', 'benchmarks', 'tests')
#: Attributes and arguments that came later.
LATER_NAMES = {
    'removeprefix', 'removesuffix', 'pairwise', 'batched', 'bit_count', 'lcm', 'nextafter', 'randbytes', 'unparse',
    'to_thread', 'is_relative_to', 'with_stem', 'hardlink_to', 'walk_up', 'aclosing', 'UnionType',
    'stdlib_module_names',
    'EncodingWarning', 'ExceptionGroup', 'TypeAlias', 'ParamSpec', 'Self', 'tomllib', 'zoneinfo', 'graphlib',
}  # fmt: skip
LATER_ARGUMENTS = {'zip': {'strict'}, 'dataclass': {'slots', 'kw_only', 'match_args'}, 'TemporaryDirectory': {'delete'}}
BUILTIN_GENERICS = {'list', 'dict', 'tuple', 'set', 'frozenset', 'type'}


def sources() -> List[Path]:
    return sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob('*.py'))


def too_new(text: str) -> Iterator[str]:
    """What Python 3.8 would refuse, of the kinds that have crept into code bases before."""
    tree = ast.parse(text, feature_version=(3, 8))
    postponed = any(isinstance(n, ast.ImportFrom) and n.module == '__future__' for n in tree.body)
    annotations = set()
    for node in ast.walk(tree):
        for name in ('annotation', 'returns'):
            annotation = getattr(node, name, None)
            if isinstance(annotation, ast.AST):
                annotations.update(map(id, ast.walk(annotation)))
    for node in ast.walk(tree):
        if id(node) in annotations and postponed:
            continue
        line = getattr(node, 'lineno', 0)
        if isinstance(node, ast.Attribute) and node.attr in LATER_NAMES:
            yield f'{line}: .{node.attr}'
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            named = {alias.name for alias in node.names} | {getattr(node, 'module', None) or ''}
            yield from (f'{line}: {name}' for name in sorted(named & LATER_NAMES))
        if isinstance(node, ast.Call):
            called = getattr(node.func, 'id', getattr(node.func, 'attr', ''))
            given = {keyword.arg for keyword in node.keywords}
            yield from (f'{line}: {called}({name}=)' for name in sorted(LATER_ARGUMENTS.get(called, set()) & given))
        if isinstance(node, ast.Subscript) and getattr(node.value, 'id', '') in BUILTIN_GENERICS:
            yield f'{line}: {node.value.id}[...] at run time'  # type: ignore[attr-defined]
        is_or = isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr)
        if is_or and isinstance(node.left, (ast.Dict, ast.DictComp)):  # type: ignore[attr-defined]
            yield f'{line}: dict | dict'


def test_every_source_is_one_of_python_3_8() -> None:
    paths = sources()
    assert len(paths) > 300
    found = {}
    for path in paths:
        try:
            found[str(path.relative_to(ROOT))] = list(too_new(path.read_text(encoding='utf-8')))
        except SyntaxError as error:
            found[str(path.relative_to(ROOT))] = [f'{error.lineno}: {error.msg}']
    assert {name: faults for name, faults in found.items() if faults} == {}


@pytest.mark.parametrize(
    ('text', 'fault'),
    [
        ("'a'.removeprefix('b')", '.removeprefix'),
        ('zip(a, b, strict=True)', 'zip(strict=)'),
        ('@dataclass(slots=True)\nclass A: ...', 'dataclass(slots=)'),
        ('Alias = list[int]', 'list[...]'),
        ('def f(x: list[int]): ...', 'list[...]'),
        ('from itertools import pairwise', 'pairwise'),
        ('merged = {} | other', 'dict | dict'),
    ],
)
def test_what_came_later_is_seen(text: str, fault: str) -> None:
    assert any(fault in found for found in too_new(text))


@pytest.mark.parametrize('text', ['match x:\n    case 1: ...', 'with (a as b, c as d): ...'])
def test_later_syntax_is_seen(text: str) -> None:
    with pytest.raises(SyntaxError):
        list(too_new(text))


def test_postponed_annotations_are_fine() -> None:
    assert list(too_new('from __future__ import annotations\ndef f(x: list[int]) -> dict[str, int]: ...')) == []


pip = pytest.importorskip('pip')
TORCH = '9.9'

#: Builds the wheel of a module that knows for which torch that was, as compiled ops do.
BACKEND = """
import os, zipfile

def build_wheel(folder, *_):
    about = 'smallcv-1.0.dist-info/'
    files = {
        'smallcv.py': 'TORCH = %r' % os.environ['BUILDS_FOR'],
        about + 'METADATA': 'Metadata-Version: 2.1\\nName: smallcv\\nVersion: 1.0\\n',
        about + 'WHEEL': 'Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n',
    }
    files[about + 'RECORD'] = ''.join(name + ',,\\n' for name in [*files, about + 'RECORD'])
    with zipfile.ZipFile(os.path.join(folder, 'smallcv-1.0-py3-none-any.whl'), 'w') as wheel:
        for name, text in files.items():
            wheel.writestr(name, text)
    return 'smallcv-1.0-py3-none-any.whl'
"""
TRIAL = f"import smallcv\nif smallcv.TORCH != '{TORCH}': raise ImportError('undefined symbol')"


class Shell:
    """A machine with an empty environment, a home, and an index that has the source of ``smallcv``."""

    def __init__(self, folder: Path) -> None:
        self.python = folder / 'venv' / 'bin' / 'python'
        self.built = folder / 'cache' / 'mmguard' / 'wheels' / f'torch-{TORCH}'
        self.wheels = folder / 'wheels'
        self.environment = {
            'PATH': os.environ['PATH'],
            'HOME': str(folder),
            'XDG_CACHE_HOME': str(folder / 'cache'),
            'WHEELS': str(self.wheels),
            'PIP_FIND_LINKS': str(folder / 'index'),
            'PIP_NO_INDEX': '1',
            'PIP_CONFIG_FILE': os.devnull,
        }
        subprocess.run([sys.executable, '-m', 'venv', '--without-pip', str(folder / 'venv')], check=True)
        self.site = Path(sysconfig.get_path('purelib', 'posix_prefix', vars={'base': str(folder / 'venv')}))
        (folder / 'only').mkdir()
        (folder / 'only' / 'pip').symlink_to(Path(pip.__file__).parent)  # much faster than to install it
        (self.site / 'only.pth').write_text(str(folder / 'only'))
        files = {
            'backend.py': BACKEND,
            'pyproject.toml': '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n',
            'PKG-INFO': 'Metadata-Version: 2.1\nName: smallcv\nVersion: 1.0\n',
        }
        (folder / 'index').mkdir()
        with tarfile.open(folder / 'index' / 'smallcv-1.0.tar.gz', 'w:gz') as archive:
            for name, text in files.items():
                entry = tarfile.TarInfo(f'smallcv-1.0/{name}')
                entry.size = len(text)
                archive.addfile(entry, io.BytesIO(text.encode()))

    def run(self, *command: str, builds_for: str = TORCH) -> subprocess.CompletedProcess[str]:
        environment = {**self.environment, 'BUILDS_FOR': builds_for}
        return subprocess.run(list(command), cwd=ROOT, env=environment, capture_output=True, text=True)

    def install(self, builds_for: str = TORCH) -> subprocess.CompletedProcess[str]:
        """As tools/setup.sh does."""
        venv = str(self.python.parents[1])
        return self.run('sh', 'tools/compiled.sh', venv, 'smallcv==1.0', TORCH, TRIAL, builds_for=builds_for)

    def pip_install(self, *words: str, builds_for: str = TORCH) -> None:
        """As a user does."""
        done = self.run(str(self.python), '-m', 'pip', 'install', 'smallcv', *words, builds_for=builds_for)
        assert done.returncode == 0, done.stderr

    def remove(self) -> None:
        (self.site / 'smallcv.py').unlink()
        shutil.rmtree(self.site / 'smallcv-1.0.dist-info')

    def put_wheel(self, folder: Path, builds_for: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        code = f'{BACKEND}\nbuild_wheel({str(folder)!r})'
        assert self.run(str(self.python), '-c', code, builds_for=builds_for).returncode == 0

    def works(self) -> bool:
        return self.run(str(self.python), '-c', TRIAL).returncode == 0


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@pytest.mark.slow
@pytest.mark.skipif(os.name == 'nt', reason='needs a POSIX shell')
def test_it_is_compiled_once_per_torch(shell: Shell) -> None:
    done = shell.install()
    assert done.returncode == 0, done.stderr
    assert 'smallcv==1.0' in done.stdout
    assert shell.works()
    assert [path.name for path in shell.built.iterdir()] == ['smallcv-1.0-py3-none-any.whl']
    shell.remove()
    again = shell.install()
    assert (again.returncode, again.stdout) == (0, '')
    assert shell.works()


@pytest.mark.slow
@pytest.mark.skipif(os.name == 'nt', reason='needs a POSIX shell')
def test_pips_cache_is_not_asked(shell: Shell) -> None:
    """It holds the wheel of this version, built against another torch: what pip takes by itself."""
    shell.pip_install(builds_for='1.0')
    shell.remove()
    shell.pip_install()
    assert not shell.works()  # pip's own way
    shell.remove()
    done = shell.install()
    assert done.returncode == 0, done.stderr
    assert shell.works()


@pytest.mark.slow
@pytest.mark.skipif(os.name == 'nt', reason='needs a POSIX shell')
@pytest.mark.parametrize('place', ['wheels', 'built'])
def test_a_wheel_for_another_torch_is_named_and_replaced(shell: Shell, place: str) -> None:
    folder = getattr(shell, place)
    shell.put_wheel(folder, builds_for='1.0')
    done = shell.install()
    assert done.returncode == 0, done.stderr
    assert all(named in done.stderr for named in ('smallcv==1.0', str(folder), f'torch {TORCH}', 'ImportError'))
    assert shell.works()


@pytest.mark.slow
@pytest.mark.skipif(os.name == 'nt', reason='needs a POSIX shell')
def test_where_none_runs_it_fails(shell: Shell) -> None:
    """So tools/setup.sh, which stops at the first failure, writes no stamp."""
    done = shell.install(builds_for='1.0')
    assert done.returncode != 0
    assert 'ImportError' in done.stderr
    assert not shell.works()
