"""Data sets with faults, of each kind that a scan reads in tasks and of one that it does not; their scans as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, Callable, Dict, Sequence

from format_cases import CASES, encode
from label_files import BLOCKS

import mmguard

KINDS = ('maps', 'yolo', 'coco')
Scan = Callable[..., str]


def write_sets(folder: Path, kinds: Sequence[str] = KINDS) -> Dict[str, Scan]:
    """Write a data set of each kind; return kind -> its scan, which takes what ``mmguard.scan`` does."""
    scans = {}
    for case in CASES:
        if case.name not in kinds:
            continue
        target = case.write(folder / case.name)
        planted = next(iter(case.planted.values()))
        file = folder / case.name / planted.file
        file.write_bytes(planted.change(file.read_bytes()))
        if case.name == 'maps':
            for number in range(200):
                (folder / case.name / 'labels' / f'{number}_more.png').write_bytes(encode(BLOCKS))
            target = target / 'labels'
        if case.name == 'coco':
            for number in range(49):
                (target.parent / f'{number}_more.json').write_bytes(case.contents()[target.name])
            target = target.parent
        options = {name: value for name, value in asdict(case.options).items() if value}
        scans[case.name] = partial(_scan, target, options)
    return scans


def _scan(target: Path, options: Dict[str, Any], **how: Any) -> str:
    found = mmguard.scan(str(target), **options, **how)
    assert not found.failed, found.failed
    assert found.findings
    assert target.name != 'coco' or len(found.record['datasets']) == 50
    return json.dumps(found.record)
