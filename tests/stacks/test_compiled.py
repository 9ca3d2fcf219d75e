"""A package with compiled ops is kept only where they run, and comes from nowhere but wheels built for that torch."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from pathlib import Path

import pytest

pip = pytest.importorskip('pip')

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.name == 'nt', reason='needs a POSIX shell')]

ROOT = Path(__file__).parents[2]
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


@pytest.mark.parametrize('place', ['wheels', 'built'])
def test_a_wheel_for_another_torch_is_named_and_replaced(shell: Shell, place: str) -> None:
    folder = getattr(shell, place)
    shell.put_wheel(folder, builds_for='1.0')
    done = shell.install()
    assert done.returncode == 0, done.stderr
    assert all(named in done.stderr for named in ('smallcv==1.0', str(folder), f'torch {TORCH}', 'ImportError'))
    assert shell.works()


def test_where_none_runs_it_fails(shell: Shell) -> None:
    """So tools/setup.sh, which stops at the first failure, writes no stamp."""
    done = shell.install(builds_for='1.0')
    assert done.returncode != 0
    assert 'ImportError' in done.stderr
    assert not shell.works()
