"""What mmguard asks of an environment, and sections of snapshots that no test compares."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest
from snapshot_files import FOLDER, read_sections, write_sections

ROOT = Path(__file__).parent.parent


@pytest.mark.slow
def test_installing_changes_no_package_of_a_working_environment(tmp_path: Path) -> None:
    """Without an index, pip can only succeed if everything that mmguard needs is there as it is."""
    command = [sys.executable, '-m', 'pip', 'install', '--dry-run', '--no-index', '--no-build-isolation']
    done = subprocess.run(
        [*command, '--ignore-installed', '--no-deps', str(ROOT)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert 'mmguard' in done.stdout.splitlines()[-1]
    done = subprocess.run([*command, '--upgrade', str(ROOT)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    would = [line for line in done.stdout.splitlines() if line.startswith('Would install')]
    assert all(word.startswith('mmguard') for line in would for word in line.split()[2:]), would


def test_hard_dependencies_are_torch_and_numpy_with_lower_bounds() -> None:
    """mmengine among them would be laid over onedl-mmengine, and forced upon who trains without either."""
    (line,) = [line for line in (ROOT / 'pyproject.toml').read_text().splitlines() if line.startswith('dependencies')]
    wanted = ast.literal_eval(line.partition('=')[2].strip())
    assert [re.fullmatch(r'(\w+)>=[\d.]+', one).group(1) for one in wanted] == ['torch', 'numpy']


def test_a_tag_publishes_what_was_checked_and_no_token_is_stored() -> None:
    yaml = pytest.importorskip('yaml')
    text = (ROOT / '.github/workflows/publish.yml').read_text(encoding='utf-8')
    workflow = yaml.safe_load(text)
    build, publish = workflow['jobs']['build'], workflow['jobs']['publish']
    assert workflow[True] == {'push': {'tags': ['v*']}}  # YAML 1.1 reads `on` as a boolean
    assert next(step['run'] for step in build['steps'] if 'run' in step) == 'make dist'
    assert (publish['needs'], publish['environment']['name']) == ('build', 'pypi')
    # Only the job that publishes can ask PyPI for a token.
    assert (workflow['permissions'], publish['permissions']) == ({'contents': 'read'}, {'id-token': 'write'})
    assert 'permissions' not in build
    assert 'secrets.' not in text
    # A tag can be moved to other code, a commit cannot; a cache may hold what another workflow wrote.
    used = [step['uses'] for job in (build, publish) for step in job['steps'] if 'uses' in step]
    assert len(used) >= 5
    assert [one for one in used if not re.fullmatch(r'[\w/-]+@[0-9a-f]{40}', one) or 'cache' in one] == []


def test_windows_and_macos_run_tests_that_exist_and_install_no_framework() -> None:
    yaml = pytest.importorskip('yaml')
    text = (ROOT / '.github/workflows/portable.yml').read_text(encoding='utf-8')
    job = yaml.safe_load(text)['jobs']['portable']
    assert {name.partition('-')[0] for name in job['strategy']['matrix']['os']} == {'windows', 'macos'}
    commands = [step['run'] for step in job['steps'] if 'run' in step]
    folders = re.findall(r'tests/\w+', commands[-1])
    assert len(folders) > 5
    assert [folder for folder in folders if not list((ROOT / folder).rglob('test_*.py'))] == []
    assert not re.search(r'mmcv|mmengine|mmseg|mmdet', ' '.join(commands))


def is_named(name: str, code: str) -> bool:
    """Return True if a section is written out in the code, or begins with ``file::test`` of a test there."""
    of_test = re.match(r'\w+::(\w+)', name)
    return f'def {of_test[1]}(' in code if of_test else f"'{name}'" in code


def test_every_section_is_named_in_a_test_or_a_rule(pytestconfig):
    """A name is written out in a test (or is the code of a rule); ``--update-snapshots`` drops the others."""
    files = [path for part in ('tests', 'mmguard') for path in Path(ROOT, part).rglob('*.py')]
    code = '\n'.join(path.read_text(encoding='utf-8') for path in files)
    snapshots = sorted(FOLDER.glob('*.txt'))
    assert len(snapshots) > 5
    for path in snapshots:
        sections = read_sections(path)
        stale = [name for name in sections if not is_named(name, code)]
        if pytestconfig.getoption('--update-snapshots'):
            write_sections(path, {name: text for name, text in sections.items() if name not in stale})
        else:
            assert stale == [], path.name
