"""Shapes, a file for each image or for all of them: Labelme, CVAT, Cityscapes, and oriented boxes."""

from __future__ import annotations

import base64
import json
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Dict, Sequence

import numpy as np
from annotation_kinds import NAMES, picture
from kinds import Files, Kind, Step
from label_kinds import image
from mutations import damaged_json, damaged_text, damaged_xml

_SQUARE = [[5, 5], [25, 5], [25, 20], [5, 20.5]]
#: Width and height as Labelme says them, and as Cityscapes does.
_SIZE = dict(imageHeight=48, imageWidth=64)
_IMG_SIZE = dict(imgHeight=48, imgWidth=64)


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


def cvat() -> bytes:
    """A file with a shape of each kind, a line for each."""
    labels = ''.join(f'<label><name>{name}</name><type>any</type></label>' for name in NAMES)
    shapes = [
        '<box label="cat" occluded="0" xtl="5" ytl="5" xbr="25.5" ybr="20" z_order="0"></box>',
        '<box label="dog" occluded="0" xtl="15" ytl="15" xbr="25" ybr="30" rotation="33.5"></box>',
        '<polygon label="dog" points="5,5;25.5,5;5,20"><attribute name="a">1</attribute></polygon>',
        '<ellipse label="bird" cx="20" cy="20" rx="4.5" ry="3"></ellipse>',
        '<mask label="cat" rle="5, 10, 5" left="3" top="4" width="5" height="4"></mask>',
        '<tag label="cat"></tag>',
    ]
    lines = ['<annotations>', '<version>1.1</version>', f'<meta><task><labels>{labels}</labels></task></meta>']
    for number, stem in enumerate('ab'):
        opened = f'<image id="{number}" name="{stem}.jpg" subset="default" width="64" height="48">'
        lines += [opened, *shapes, '</image>']
    return '\n'.join([*lines, '</annotations>', '']).encode()


def _cvat() -> Files:
    files: Files = {f'images/{stem}.jpg': (picture(), ()) for stem in 'ab'}
    return {'annotations.xml': (cvat(), (damaged_xml,)), **files}


def _video() -> Files:
    """A track that ends, and one of another shape."""
    boxes = [
        f'<box frame="{n}" outside="{n // 3}" keyframe="1" xtl="{n}" ytl="5" xbr="{20 + n}" ybr="20"></box>'
        for n in range(4)
    ]
    declared = ''.join(f'<label><name>{name}</name></label>' for name in NAMES)
    size = '<original_size><width>64</width><height>48</height></original_size>'
    lines = [
        '<annotations>', f'<meta><task><labels>{declared}</labels>{size}</task></meta>',
        '<track id="0" label="cat">', *boxes, '</track>', '<track id="1" label="dog">',
        '<polygon frame="2" outside="0" points="5,5;25.5,5;5,20"></polygon>', '</track>', '</annotations>', '',
    ]  # fmt: skip
    return {'annotations.xml': ('\n'.join(lines).encode(), (damaged_xml,))}


def _oriented(kind: str) -> Files:
    """Two images, where DOTA, DIOR or HRSC has them."""
    from oriented_files import make_dota, make_xml

    steps: Dict[str, Sequence[Step]] = {'.txt': (damaged_text,), '.xml': (damaged_xml,)}
    with TemporaryDirectory() as folder:
        root = Path(folder)
        if kind == 'dota':
            make_dota(root, files=2, head='imagesource:GoogleEarth\ngsd:0.1\n')
        else:
            make_xml(root, kind, files=2)
        paths = [path for path in sorted(root.rglob('*')) if path.is_file()]
        return {str(path.relative_to(root)): (path.read_bytes(), steps.get(path.suffix, ())) for path in paths}


def cityscapes() -> Dict[str, Any]:
    """A file with a class, a class without a train id, and a group."""
    labels = ('road', 'car', 'license plate', 'cargroup')
    return dict(objects=[dict(label=label, polygon=_SQUARE) for label in labels], **_IMG_SIZE)


def _cityscapes() -> Files:
    files: Files = {}
    for stem in ('ulm_000001_000019', 'ulm_000002_000019'):
        polygons = json.dumps(cityscapes()).encode()
        files[f'gtFine/train/ulm/{stem}_gtFine_polygons.json'] = (polygons, (damaged_json,))
        files[f'leftImg8bit/train/ulm/{stem}_leftImg8bit.png'] = (picture(), ())
    return files


_COMMANDS = (
    'scan . --json {out}/scan.json', 'scan {file} --html {out}/page.html', 'fix . --out {out}/fixed',
    'fix {file} --out {out}/fixed',
)  # fmt: skip
_OPTIONS = {
    'scan': ('--num-classes 3', '--num-classes 2', '--classes cat,dog', '--images images'),
    'fix': ('--classes cat,dog,bird', '--rename cat:Cat', '--sizes swapped', '--edit safe'),
}

KINDS = tuple(
    Kind(name, files, _COMMANDS, _OPTIONS, needs=('PIL',), renamed=True)
    for name, files in (
        ('labelme', _labelme), ('cvat', _cvat), ('cvat_video', _video), ('cityscapes', _cityscapes),
        *((kind, partial(_oriented, kind)) for kind in ('dota', 'dior', 'hrsc')),
    )
)  # fmt: skip
