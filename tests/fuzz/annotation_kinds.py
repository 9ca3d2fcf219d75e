"""COCO, LVIS, COCO panoptic, VOC, YOLO, OpenImages."""

from __future__ import annotations

import io
import json
import pickle
from typing import Any, Dict, List

import loaders
from kinds import Files, Kind
from mutations import damaged_bytes, damaged_json, damaged_table, damaged_text, damaged_xml
from pictures import picture

NAMES = ('cat', 'dog', 'bird')


def coco() -> Dict[str, Any]:
    """Two images, three classes; outlines of each form."""
    annotations: List[Dict[str, Any]] = []
    outlines = (
        [[5, 5, 25, 5, 25, 20, 5, 20]],
        dict(size=[48, 64], counts=[245, 15, 33, 15, 2764]),
        [[1, 1, 9, 1, 9, 9], [12.5, 3, 20, 3, 20, 8.5]],
    )
    for number in range(6):
        box = [5, 5, 20, 15]
        annotations.append(
            dict(
                id=number + 1,
                image_id=number % 2 + 1,
                category_id=number % 3,
                bbox=box,
                area=box[2] * box[3],
                iscrowd=0,
                segmentation=outlines[number % 3],
            )
        )
    return dict(
        info=dict(description='small'),
        licenses=[],
        images=[dict(id=number, file_name=f'{number}.jpg', width=64, height=48) for number in (1, 2)],
        annotations=annotations,
        categories=[dict(id=number, name=name, supercategory='a') for number, name in enumerate(NAMES)],
    )


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
    from PIL import Image

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
        out = io.BytesIO()
        Image.fromarray(pixels).save(out, 'PNG')
        files[f'train/{number}.png'] = (out.getvalue(), (damaged_bytes,))
    return {**_json_files(record), **files}


def _xml(stem: str) -> bytes:
    objects = ''.join(
        f'<object><name>{name}</name><pose>Left</pose><truncated>0</truncated><difficult>0</difficult><bndbox>'
        f'<xmin>{5 + place}</xmin><ymin>5</ymin><xmax>{25 + place}</xmax><ymax>20</ymax></bndbox></object>'
        for place, name in enumerate(NAMES)
    )
    return (
        f'<annotation><folder>VOC</folder><filename>{stem}.jpg</filename>'
        f'<size><width>64</width><height>48</height><depth>3</depth></size>{objects}</annotation>'
    ).encode()


def _voc() -> Files:
    files: Files = {}
    for stem in ('a', 'b'):
        files[f'Annotations/{stem}.xml'] = (_xml(stem), (damaged_xml,))
        files[f'JPEGImages/{stem}.jpg'] = (picture(), ())
    files['ImageSets/Main/train.txt'] = (b'a\nb\n', ())
    return files


def openimages() -> Files:
    header = (
        'ImageID,Source,LabelName,Confidence,XMin,XMax,YMin,YMax,IsOccluded,IsTruncated,IsGroupOf,IsDepiction,IsInside'
    )
    rows = [f'{image},xclick,/m/{label},1,0.1,0.5,0.2,0.6,0,0,0,0,0' for image in 'ab' for label in range(3)]
    metas = [dict(filename=f'{name}.jpg', ori_shape=(48, 64, 3)) for name in 'ab']
    tree = dict(LabelName='/m/root', Subcategory=[dict(LabelName=f'/m/{label}') for label in range(3)])
    return {
        'boxes.csv': ('\n'.join([header, *rows, '']).encode(), (damaged_table,)),
        'classes.csv': (b'/m/0,Cat\n/m/1,Dog\n/m/2,Bird\n', (damaged_table,)),
        'hierarchy.json': (json.dumps(tree).encode(), ()),
        'metas.pkl': (pickle.dumps(metas), ()),
        'images/a.jpg': (picture(), ()),
        'images/b.jpg': (picture(), ()),
        'config.py': (_OPENIMAGES.encode(), ()),
    }


_OPENIMAGES = """
default_scope = 'mmdet'
model = dict(type='RetinaNet', bbox_head=dict(type='RetinaHead', num_classes=3))
dataset = dict(
    type='OpenImagesDataset', data_root='', ann_file='boxes.csv', data_prefix=dict(img='images/'),
    label_file='classes.csv', hierarchy_file='hierarchy.json', meta_file='metas.pkl',
    pipeline=[])
train_dataloader = dict(batch_size=1, dataset=dataset)
val_dataloader = dict(batch_size=1, dataset=dict(dataset, test_mode=True))
"""


def _yolo() -> Files:
    rows = b'0 0.5 0.5 0.25 0.125\n1 0.25 0.25 0.125 0.125\n2 0.1 0.1 0.3 0.1 0.3 0.3\n'
    files: Files = {
        'data.yaml': (
            b'path: .\ntrain: images\nval: [images]\nnc: 3\nnames:\n  0: cat\n  1: dog\n  2: bird\n',
            (damaged_text,),
        )
    }
    for stem in ('a', 'b'):
        files[f'labels/{stem}.txt'] = (rows, (damaged_text,))
        files[f'images/{stem}.jpg'] = (picture(), ())
    return files


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
    Kind(
        'openimages',
        openimages,
        ('scan config.py --json {out}/scan.json', 'scan config.py --html {out}/page.html'),
        {'scan': ('--split train', '--num-classes 2')},
        needs=('mmdet', 'PIL'),
        loads=loaders.load_openimages,
    ),
)  # fmt: skip
