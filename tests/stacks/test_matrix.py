"""What ``make matrix`` saw is what the package promises, what docs/stacks.md shows and what ``mmguard env`` says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Dict

import pytest

from mmguard.findings.environment import version_key
from mmguard.tools.env.facts import tried
from tools.matrix import BEGIN, END, ROWS, main, read, table

ROOT = Path(__file__).parents[2]


def promised() -> Dict[str, str]:
    """Package, or Python, -> the lower bound in pyproject.toml."""
    text = (ROOT / 'pyproject.toml').read_text(encoding='utf-8')
    (dependencies,) = re.findall(r'^dependencies = \[(.*)\]$', text, re.MULTILINE)
    (python,) = re.findall(r'^requires-python = ">=([\d.]+)"$', text, re.MULTILINE)
    return {**dict(re.findall(r'"(\w+)>=([\d.]+)"', dependencies)), 'python': python}


def test_the_lower_bounds_are_the_lowest_versions_that_were_green() -> None:
    lowest = {name: min((row[name] for row in tried()), key=version_key) for name in ('torch', 'numpy', 'python')}
    lowest['python'] = '.'.join(lowest['python'].split('.')[:2])  # 3.8 of 3.8.18
    assert {name: version_key(bound) for name, bound in promised().items()} == {
        name: version_key(seen) for name, seen in lowest.items()
    }, f'pyproject.toml should ask for {lowest}'


def test_no_row_is_left_out_and_both_numpy_are_among_them() -> None:
    assert [row['torch'] for row in read()] == [row.torch for row in ROWS]
    numpy = [row['numpy'] for row in tried()]
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
