"""Small YOLO data sets."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any, Dict, List, Sequence

import pytest
from pictures import picture
from put_file import put

from mmguard.cli import main

pytest.importorskip('PIL')

NAMES = ('cat', 'dog', 'cow')


def rows_of(kind: str, number: int, count: int = 3) -> List[str]:
    """Rows without a fault, each time the same."""
    draw = random.Random(f'{kind} {number}')
    found = []
    for place in range(count):
        x, y, w, h = (round(draw.uniform(*span), 4) for span in ((0.3, 0.7), (0.3, 0.7), (0.05, 0.3), (0.05, 0.3)))
        label = (number + place) % len(NAMES)
        corners = [x - w / 2, y - h / 2, x + w / 2, y - h / 2, x + w / 2, y + h / 2, x - w / 2, y + h / 2]
        numbers: Sequence[float] = {
            'boxes': [x, y, w, h],
            'outlines': [*corners, *([x, y + h] if place else [])],
            'oriented': corners,
            'keypoints': [x, y, w, h, x, y, 2, 0, 0, 0, x, y, 1],
        }[kind]
        found.append(' '.join([str(label), *(f'{one:.6g}' for one in numbers)]))
    return found


def make(root: Path, kind: str = 'boxes', files: int = 14, split: str = 'train', **more: Any) -> Path:
    """Writes a data set without a fault, and its data.yaml; ``more``: of that."""
    for number in range(files):
        put(root / 'images' / split / f'{number:02d}.jpg', picture())
        put(root / 'labels' / split / f'{number:02d}.txt', '\n'.join(rows_of(kind, number)) + '\n')
    said: Dict[str, Any] = dict(train=f'images/{split}', val=f'images/{split}', names=list(NAMES), **more)
    if kind == 'keypoints':
        said['kpt_shape'] = [3, 3]
    (root / 'data.yaml').write_text(json.dumps(said))  # JSON is YAML
    return root


def add(root: Path, number: int, *rows: str) -> None:
    """Rows behind the three of a text."""
    path = root / 'labels' / 'train' / f'{number:02d}.txt'
    path.write_text(path.read_text() + ''.join(f'{row}\n' for row in rows))


def scanned(target: Path, out: Path, *options: str) -> Dict[str, List[str]]:
    """Code -> the places that its finding names; under ``''`` the exit code."""
    code = main(['scan', str(target), '--processes', '1', '--json', str(out), *options])
    found: Dict[str, List[str]] = {'': [str(code)]}
    for dataset in json.loads(out.read_text())['datasets']:
        for finding in dataset['findings']:
            found.setdefault(finding['code'], []).extend(finding['files'] or [finding['evidence']])
    return found
