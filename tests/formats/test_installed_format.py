"""A format of another package: the one of CONTRIBUTING.md, installed with pip's files."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Tuple

import pytest
from put_file import put

CONTRIBUTING = Path(__file__).parents[2] / 'CONTRIBUTING.md'
ROWS = '1.jpg,64,48,0,0,9,9,cat\n1.jpg,64,48,70,0,90,9,Cat\n2.jpg,64\n'


def install(site: Path, value: str = 'box_table:BoxTable') -> None:
    """Write what pip leaves of a package with the format."""
    text = CONTRIBUTING.read_text(encoding='utf-8').partition('## Add a format')[2]
    code = re.search(r'```python\n(.*?)```', text, re.DOTALL)
    put(site / 'box_table.py', code[1])
    info = site / 'box_table-1.0.dist-info'
    put(info / 'METADATA', 'Metadata-Version: 2.1\nName: box-table\nVersion: 1.0\n')
    put(info / 'entry_points.txt', f'[mmguard.formats]\nbox_table = {value}\n')


def run(site: Path, *words: str) -> Tuple[int, Any]:
    """Return the exit code, and the JSON or the text of standard error."""
    code = f'import sys; sys.path.insert(0, {str(site)!r}); from mmguard.cli import main; sys.exit(main())'
    done = subprocess.run([sys.executable, '-c', code, *words], capture_output=True, text=True, check=False)
    return done.returncode, json.loads(done.stdout) if '--json' in words and done.stdout else done.stderr


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return put(tmp_path / 'boxes.csv', f'image,width,height,x1,y1,x2,y2,name\n{ROWS}')


def test_it_is_scanned_and_corrected(target: Path, tmp_path: Path) -> None:
    site = tmp_path / 'site'
    install(site)
    code, done = run(site, 'scan', str(target), '--json', '-')
    found = done['datasets'][0]['facts']['annotations']
    assert code == 1
    assert found['format'] == 'box_table'
    assert found['unreadable'] == {'a row is not of a box': [f'{target}: line 4']}
    assert found['box_examples'] == {'box_outside': ['1.jpg: 70, 0, 90, 9']}
    target.write_text(target.read_text().replace('70,0,90', '7,0,9').replace('2.jpg,64\n', ''))
    assert run(site, 'fix', str(target), '--out', str(tmp_path / 'out'), '--rename', 'Cat:cat')[0] == 0
    assert 'Cat' not in (tmp_path / 'out' / 'boxes.csv').read_text()
    _, done = run(site, 'scan', str(tmp_path / 'out' / 'boxes.csv'), '--json', '-')
    assert list(done['datasets'][0]['facts']['annotations']['instances_of']) == ['cat']


def test_without_it_the_file_is_not_read(target: Path, tmp_path: Path) -> None:
    assert run(tmp_path, 'scan', str(target))[0] == 2


def test_one_that_does_not_load_is_named(target: Path, tmp_path: Path) -> None:
    site = tmp_path / 'site'
    install(site, 'box_table:Missing')
    code, error = run(site, 'scan', str(target))
    assert code == 2
    assert 'box_table' in error
    assert 'Traceback' not in error
