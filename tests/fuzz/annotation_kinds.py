"""COCO, LVIS, COCO panoptic, VOC, YOLO."""

from __future__ import annotations

import json
from typing import Any, Dict

import loaders
from format_cases import Contents, coco, voc, yolo
from kinds import Files, Kind, Step
from mutations import damaged_bytes, damaged_json, damaged_text, damaged_xml
from pictures import encode


def lvis() -> Dict[str, Any]:
    record = coco()
    for image in record['images']:
        name = image.pop('file_name')
        image.update(
            coco_url=f'http://images.example.org/train2017/{name}', neg_category_ids=[2], not_exhaustive_category_ids=[]
        )
    for category, frequency in zip(record['categories'], 'rcf'):
        category.update(
            frequency=frequency, synset=f'{category["name"]}.n.01', synonyms=[category['name']], image_count=2,
            instance_count=2,
        )  # fmt: skip
    return record


def _json_files(record: Dict[str, Any]) -> Files:
    files: Files = {'train.json': (json.dumps(record).encode(), (damaged_json,))}
    return files


_COCO_COMMANDS = (
    'scan {file} --json {out}/scan.json',
    'scan {file} --html {out}/page.html',
    'scan {file} --masks',
    'fix {file} --out {out}/fixed',
)
_COCO_OPTIONS = {
    'scan': ('--num-classes 3', '--num-classes 2', '--framework detectron2', '--labels ids', '--images .'),
    'fix': (
        '--classes cat,dog,bird', '--rename cat:Cat', '--renumber 0', '--boxes corners',
        '--boxes sizes', '--boxes fractions',
        '--no-crowds', '--drop-empty', '--images .', '--num-classes 3',
    ),
}  # fmt: skip


def panoptic() -> Files:
    """Two images of three segments each, beside their PNG."""
    import numpy as np

    record = coco()
    record['annotations'] = []
    for category in record['categories']:
        category['isthing'] = int(category['id'] != 2)
    files: Files = {}
    for number in (1, 2):
        pixels = np.zeros((48, 64, 3), np.uint8)
        segments = []
        for place, (left, top, right, bottom) in enumerate(((0, 0, 64, 10), (5, 20, 25, 40), (30, 20, 50, 40))):
            pixels[top:bottom, left:right] = (place + 1, place, 0)
            box, area = [left, top, right - left, bottom - top], (right - left) * (bottom - top)
            segments.append(dict(id=place + 1 + 256 * place, category_id=2 - place, iscrowd=0, bbox=box, area=area))
        record['annotations'].append(dict(image_id=number, file_name=f'{number}.png', segments_info=segments))
        files[f'train/{number}.png'] = (encode(pixels), (damaged_bytes,))
    return {**_json_files(record), **files}


def damaged_by(contents: Contents, ways: Dict[str, Step]) -> Files:
    """Each file with the way to damage it that its ending has."""
    return {
        name: (data, tuple(step for end, step in ways.items() if name.endswith(end))) for name, data in contents.items()
    }


def _voc() -> Files:
    return damaged_by(voc(), {'.xml': damaged_xml})


def _yolo() -> Files:
    outline = b'2 0.1 0.1 0.3 0.1 0.3 0.3\n'
    contents = {name: data + outline if name.endswith('.txt') else data for name, data in yolo().items()}
    return damaged_by(contents, {'.txt': damaged_text, '.yaml': damaged_text})


KINDS = (
    Kind('coco', lambda: _json_files(coco()), _COCO_COMMANDS, _COCO_OPTIONS, ('msgspec',), loaders.load_coco),
    Kind('lvis', lambda: _json_files(lvis()), _COCO_COMMANDS, _COCO_OPTIONS, ('msgspec',), loaders.load_lvis),
    Kind(
        'panoptic',
        panoptic,
        ('scan train.json --json {out}/scan.json', 'scan train.json --masks --html {out}/page.html'),
        {'scan': ('--num-classes 3', '--num-classes 2', '--images .')},
        needs=('PIL', 'msgspec'),
        loads=loaders.load_panoptic,
    ),
    Kind(
        'voc',
        _voc,
        ('scan . --json {out}/scan.json', 'scan . --html {out}/page.html', 'fix . --out {out}/fixed'),
        {
            'scan': ('--num-classes 3', '--num-classes 2'),
            'fix': (
                '--classes cat,dog,bird', '--rename cat:Cat', '--boxes corners', '--boxes fractions',
                '--no-crowds',
            ),
        },
        needs=('PIL',),
        loads=loaders.load_voc,
        renamed=True,
    ),
    Kind(
        'yolo',
        _yolo,
        (
            'scan . --json {out}/scan.json', 'scan data.yaml --html {out}/page.html', 'scan labels', 'scan {file}',
            'fix . --out {out}/fixed', 'fix data.yaml --out {out}/fixed',
        ),
        {
            'scan': ('--num-classes 3', '--num-classes 2', '--split train', '--images images'),
            'fix': ('--num-classes 2', '--label-map 1:0'),
        },
        needs=('PIL', 'yaml'),
        renamed=True,
    ),
)  # fmt: skip
