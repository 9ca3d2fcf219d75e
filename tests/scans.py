"""What `mmguard scan` says of a data set, and what is left of it when its edits are followed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, Iterator, List, Tuple

import pytest

from mmguard.cli import main
from mmguard.formats.format import scan_here
from mmguard.formats.options import ScanOptions
from mmguard.scanning.plans import plan_target
from mmguard.scanning.run import SetResult, run_plan

Scanned = Tuple[int, Dict[str, str], Dict[str, Any]]


def scanned(target: Path, out: Path, *options: str) -> Scanned:
    """The exit code, code -> evidence and files of its finding in one text (no notes), the facts of the first set."""
    code = main(['scan', str(target), '--processes', '1', '--json', str(out), *options])
    datasets = json.loads(out.read_text())['datasets']
    found = {one['code']: '; '.join([one['evidence'], *map(str, one['files'])])
             for dataset in datasets for one in dataset['findings'] if one['severity'] != 'info'}  # fmt: skip
    return code, found, datasets[0]['facts'] if datasets else {}


def scan(capsys: pytest.CaptureFixture, *words: Any) -> Dict[str, Any]:
    """The exit code, and the JSON of the only data set."""
    processes = () if '--processes' in words else ('--processes', '1')
    code = main(['scan', *map(str, words), *processes, '--json', '-'])
    (reported,) = json.loads(capsys.readouterr().out)['datasets']
    return {'code': code, **reported}


def run_scan(path: str, **options: Any) -> List[SetResult]:
    return run_plan(plan_target(path, ScanOptions(**options)), scan_here)


def codes(reported: Dict[str, Any]) -> List[str]:
    return [finding['code'] for finding in reported['findings']]


def edits(out: Path) -> Dict[int, str]:
    """Number of an edit of files -> the code of its finding."""
    return {
        edit['number']: finding['code']
        for dataset in json.loads(out.read_text())['datasets']
        for finding in dataset['findings']
        for edit in finding['edits']
        if edit['files'] and edit['number']
    }


def followed(target: Path, code: str, place: Path, *options: str) -> Iterator[Path]:
    """Follows each edit of a set of which only ``code`` is said; the copies, of which nothing is said any more."""
    assert set(scanned(target, place / 'scan.json', *options)[1]) == {code}
    written = edits(place / 'scan.json')
    assert set(written.values()) == {code}
    for number in written:
        out = place / f'fixed {number}'
        assert main(['fix', str(target), '--out', str(out), '--edit', str(number), *options]) == 0
        code_after, found, facts = scanned(out, place / 'again.json')
        assert (code_after, found) == (0, {})
        assert facts['total'] >= 42
        yield out
