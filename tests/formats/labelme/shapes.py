"""Small data sets of Labelme."""

from __future__ import annotations

import base64
import json
import random
from pathlib import Path
from typing import Any, Dict, List

import pytest
from pictures import picture

pytest.importorskip('PIL')

NAMES = ('cat', 'cow', 'dog')
KINDS = ('polygon', 'rectangle', 'circle', 'mask')


def embedded(width: int, height: int) -> str:
    """A PNG as Labelme holds masks and images."""
    return base64.b64encode(picture(width, height, 'PNG')).decode()


def shape(label: Any, points: Any, kind: Any = 'polygon', group: Any = None, **more: Any) -> Dict[str, Any]:
    return dict(label=label, points=points, group_id=group, shape_type=kind, flags={}, **more)


def sound(kind: str, number: int) -> List[Dict[str, Any]]:
    """Three shapes without a fault, each time the same."""
    draw = random.Random(f'{kind} {number}')
    found = []
    for place in range(3):
        x, y, w, h = draw.randint(2, 30), draw.randint(2, 20), draw.randint(4, 20), draw.randint(4, 20)
        points, more = [[x, y], [x + w, y + h]], {}
        if kind == 'polygon':
            points = [[x, y], [x + w, y + 0.5], [x + w / 2, y + h]]
        elif kind == 'circle':
            points = [[x + 5.5, y + 5.5], [x + 5.5, y + 9]]
        elif kind == 'mask':
            more = {'mask': embedded(w + 1, h + 1)}
        found.append(shape(NAMES[(number + place) % 3], points, kind, **more))
    return found


def record(name: str, shapes: List[Any], **more: Any) -> Dict[str, Any]:
    found = dict(version='5.4.1', flags={}, shapes=shapes, imagePath=name, imageData=None, imageHeight=48)
    return {**found, 'imageWidth': 64, **more}


def make(root: Path, kind: str = 'polygon', files: int = 14) -> Path:
    """Writes a data set without a fault."""
    root.mkdir(parents=True, exist_ok=True)
    for number in range(files):
        (root / f'{number:02d}.jpg').write_bytes(picture())
        write(root, number, record(f'{number:02d}.jpg', sound(kind, number)))
    return root


def write(root: Path, number: int, content: Any) -> None:
    (root / f'{number:02d}.json').write_text(json.dumps(content, indent=2))


def add(root: Path, number: int, *shapes: Any, **more: Any) -> None:
    """Shapes behind the three of a file, and other keys of it."""
    content = json.loads((root / f'{number:02d}.json').read_text())
    content['shapes'] += shapes
    write(root, number, {**content, **more})
