"""Names in a log are below the data root; on a screen they are paths that can be opened."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mmguard.labels.samples import path_of, relative_to
from mmguard.labels.tally import Tally
from mmguard.log.iteration_stats import IterationStats, by_kind
from mmguard.log.messages import closing
from mmguard.log.run_log import RunLog


def test_a_path_is_that_of_the_one_root_that_has_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for root in ('first', 'second', 'third'):
        (tmp_path / root).mkdir()
    for file in ('first/a.png', 'first/b.png', 'second/b.png', 'here.png'):
        (tmp_path / file).write_bytes(b'')
    monkeypatch.chdir(tmp_path)
    roots = ['first', str(tmp_path / 'second'), 'first/../first/']
    assert path_of('a.png', roots) in ('first/a.png', 'first/../first/a.png')
    assert path_of('b.png', roots) == 'b.png'  # of two files, neither
    assert path_of('b.png', ['third', roots[1]]) == str(tmp_path / 'second/b.png')
    assert path_of('here.png', roots) == 'here.png'
    assert path_of('gone.png', roots) == 'gone.png'
    assert path_of(str(tmp_path / 'first/a.png'), roots) == str(tmp_path / 'first/a.png')
    assert relative_to('first/a.png', ['first']) == 'a.png'


def test_tables_and_the_page_name_files_that_can_be_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    Path('data/labels').mkdir(parents=True)
    Path('data/labels/a.png').write_bytes(b'')
    log = RunLog('run')
    log.begin('train', {'data_roots': ['data']}, ['data'])
    found = Tally(9, 4, 0, {11: 4}, 'data/labels/a.png')
    log.see('train', {'iter': 1}, IterationStats(1, 1, 1, 1, Tally(9, 4), offending=by_kind(pixels=[found])))
    ledger = log.end('train')
    assert '"source": "labels/a.png"' in Path('run/label_guard.jsonl').read_text()
    assert '  data/labels/a.png (11: 4)' in closing('train', ledger, 5, None)
    pytest.importorskip('rich')
    pytest.importorskip('jinja2')
    from mmguard.cli import main

    assert main(['report', 'run', '--html', 'page.html']) == 1
    assert '  data/labels/a.png (11: 4)' in capsys.readouterr().out
    assert '>data/labels/a.png<' in Path('page.html').read_text().replace('\n', '').replace('  ', '')
