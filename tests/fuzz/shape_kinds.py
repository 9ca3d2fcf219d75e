"""Shapes, a file for each image: Labelme."""

from __future__ import annotations

import base64
import json
from typing import Any, Dict

import numpy as np
from annotation_kinds import NAMES, picture
from kinds import Files, Kind
from label_kinds import image
from mutations import damaged_json, damaged_text

_SQUARE = [[5, 5], [25, 5], [25, 20], [5, 20.5]]
_SIZE = dict(imageHeight=48, imageWidth=64)


def _shape(label: str, points: Any, kind: str = 'polygon', **more: Any) -> Dict[str, Any]:
    return dict(label=label, points=points, group_id=None, shape_type=kind, flags={}, **more)


def labelme(stem: str) -> Dict[str, Any]:
    """A file with a shape of each kind."""
    mask = base64.b64encode(image(np.ones((6, 8), bool), 'PNG')).decode()
    shapes = [
        _shape('cat', _SQUARE),
        _shape('dog', [[5, 5], [25, 20]], 'rectangle', description=''),
        _shape('bird', [[30, 30], [35, 30]], 'circle'),
        _shape('cat', [[3, 4], [10, 9]], 'mask', mask=mask),
        {**_shape('dog', _SQUARE), 'group_id': 1},
        {**_shape('nose', [[6, 6]], 'point'), 'group_id': 1},
    ]
    held = base64.b64encode(picture()).decode() if stem == 'b' else None
    return dict(version='5.4.1', flags={}, shapes=shapes, imagePath=f'{stem}.jpg', imageData=held, **_SIZE)


def _labelme() -> Files:
    files: Files = {}
    for stem in ('a', 'b'):
        files[f'{stem}.json'] = (json.dumps(labelme(stem)).encode(), (damaged_json,))
        files[f'{stem}.jpg'] = (picture(), ())
    return {**files, 'labels.txt': ('\n'.join(['__ignore__', *NAMES, '']).encode(), (damaged_text,))}


_COMMANDS = (
    'scan . --json {out}/scan.json', 'scan {file} --html {out}/page.html', 'fix . --out {out}/fixed',
    'fix {file} --out {out}/fixed',
)  # fmt: skip
_OPTIONS = {
    'scan': ('--num-classes 3', '--num-classes 2', '--classes cat,dog', '--images images'),
    'fix': ('--classes cat,dog,bird', '--rename cat:Cat', '--edit safe'),
}

KINDS = (Kind('labelme', _labelme, _COMMANDS, _OPTIONS, needs=('PIL',), renamed=True),)
