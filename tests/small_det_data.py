"""Detection data sets of a few tiny images with known faults, and counts of the faults."""

from __future__ import annotations

import csv
import json
import os.path as osp
import pickle
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Sequence, Tuple

import coco_cases
import numpy as np
import pytest
import voc_cases
from label_files import write
from PIL import Image
from put_file import put
from voc_cases import obj, xml

pytest.importorskip('mmdet')

SIZE = 96
IMAGES = 8
VAL_IMAGES = 4
#: What may be wrong with a data set.
FAULTS = ('labels', 'boxes')
Box = Tuple[int, int, int, int]
#: An image's objects stand here, in this order.
PLACES: Tuple[Box, ...] = ((4, 4, 44, 44), (50, 6, 92, 46), (8, 50, 48, 90), (52, 52, 90, 92))
OUTSIDE: Box = (200, 200, 250, 250)
EMPTY: Box = (30, 30, 30, 70)


class Thing(NamedTuple):
    """One annotated object. ``ignored``: a crowd in COCO, difficult in VOC; no trained object to begin with."""

    label: int
    box: Box
    ignored: bool = False


#: PanopticFPN: labels 0..79 are things, 80..132 stuff; 133 and 135 are things, 134 is stuff, and no head knows them.
NUM_THINGS = 80


def things(number: int, num_classes: int, last: int, faults: Sequence[str] = FAULTS) -> List[Thing]:
    """The objects of an image; of 8 images in a row, 1, 3 and 4 hold labels outside the head's classes.

    Args:
        number (int): The image.
        num_classes (int): Classes of the head: the smallest invalid label.
        last (int): The last class of the data set: the largest one.
        faults (sequence of str): ``'labels'``, ``'boxes'`` (which not every data set has), or neither.
    """
    valid = [(0, 1), (3,), (5, 19), (4, 7), (), (2, 0, 1), (11,), (6, 13)][number % 8]
    invalid = {1: (num_classes,), 3: (last, num_classes), 4: (last, last)}.get(number % 8, ())
    if 'labels' not in faults:
        valid, invalid = valid or (8,), ()
    # Alternating, so that a fault is not always the last object of its image.
    labels = [*invalid[:1], *valid, *invalid[1:]]
    return [Thing(label, place) for label, place in zip(labels, PLACES)]


def write_image(path: str, seed: int) -> None:
    # Blocks of color: noise alone does not survive a JPEG, and gives small models nothing to look at.
    blocks = np.random.default_rng(seed).integers(0, 256, (8, 8, 3), dtype=np.uint8)
    write(path, blocks.repeat(SIZE // 8, 0).repeat(SIZE // 8, 1), quality=95)


def coco_dataset(root: str, pipeline: Sequence[Dict[str, Any]]) -> Dict[str, Any]:
    """The training set that ``make_coco`` makes, with all of its classes."""
    return dict(
        type='CocoDataset',
        data_root=root,
        ann_file='annotations/instances_train2017.json',
        data_prefix=dict(img='train2017/'),
        metainfo=dict(classes=tuple(f'class {label}' for label in range(83))),
        pipeline=list(pipeline),
    )


def make_coco(root: str, num_classes: int = 80, data_classes: int = 83, faults: Sequence[str] = FAULTS) -> str:
    """COCO's layout. Polygons and RLE masks take turns; image 6 has a valid crowd, image 7 an invalid one."""
    for split, images in (('train', IMAGES), ('val', VAL_IMAGES)):
        annotations: List[Dict[str, Any]] = []
        for number in range(images):
            write_image(osp.join(root, f'{split}2017', f'{number:012d}.jpg'), seed=number)
            objects = things(number, num_classes, data_classes - 1, faults)
            if number in (6, 7):
                label = 9 if number == 6 or 'labels' not in faults else num_classes
                objects.append(Thing(label, PLACES[3], ignored=True))
            for thing in objects:
                x1, y1, x2, y2 = thing.box
                category = 10 + 2 * thing.label  # as in COCO: ids have gaps and are not the labels
                outline = [[x1, y1, x2, y1, x2, y2, x1, y2]]
                mask = _rle(thing.box) if thing.ignored or len(annotations) % 2 else outline
                box, more = (x1, y1, x2 - x1, y2 - y1), dict(iscrowd=int(thing.ignored), segmentation=mask)
                annotations.append(coco_cases.ann(len(annotations) + 1, number, category, box, **more))
        record = dict(
            images=[
                dict(id=number, file_name=f'{number:012d}.jpg', height=SIZE, width=SIZE) for number in range(images)
            ],
            categories=[dict(id=10 + 2 * label, name=f'class {label}') for label in range(data_classes)],
            annotations=annotations,
        )
        put(Path(root, 'annotations', f'instances_{split}2017.json'), json.dumps(record))
    return root


def _rle(box: Box) -> Dict[str, Any]:
    """COCO's uncompressed RLE of a filled box: runs of 0 and 1 in column order."""
    x1, y1, x2, y2 = box
    mask = np.zeros((SIZE, SIZE), dtype=np.uint8)
    mask[y1:y2, x1:x2] = 1
    flat = mask.flatten(order='F')
    edges = [0, *(np.flatnonzero(np.diff(flat)) + 1).tolist(), flat.size]
    return dict(size=[SIZE, SIZE], counts=[b - a for a, b in zip(edges, edges[1:])])


def make_voc(root: str, num_classes: int = 20, data_classes: int = 23, faults: Sequence[str] = FAULTS) -> str:
    """VOC2007 (train, test) and VOC2012. Image 7 has a difficult invalid object; ``'boxes'``: image 2 one outside."""
    names = voc_classes(data_classes)
    for year, split, numbers in (
        ('VOC2007', 'trainval', range(5)),
        ('VOC2012', 'trainval', range(5, IMAGES)),
        ('VOC2007', 'test', range(VAL_IMAGES)),
    ):
        stems = []
        for number in numbers:
            stem = f'{number:06d}' if split == 'trainval' else f'9{number:05d}'
            stems.append(stem)
            write_image(osp.join(root, year, 'JPEGImages', f'{stem}.jpg'), seed=number)
            objects = things(number, num_classes, data_classes - 1, faults)
            if number == 2 and split == 'trainval' and 'boxes' in faults:
                objects.append(Thing(3, OUTSIDE))
            if number == 7:
                objects.append(Thing(num_classes if 'labels' in faults else 9, PLACES[3], ignored=True))
            found = [  # VOC counts from 1
                obj(names[thing.label], [value + 1 for value in thing.box], int(thing.ignored)) for thing in objects
            ]
            text = xml(*found, size=voc_cases.SIZE.format(SIZE, SIZE))
            put(Path(root, year, 'Annotations', f'{stem}.xml'), text)
        put(Path(root, year, 'ImageSets', 'Main', f'{split}.txt'), '\n'.join(stems))
    return root


def voc_classes(data_classes: int) -> Tuple[str, ...]:
    from mmdet.datasets import VOCDataset

    names = VOCDataset.METAINFO['classes']
    return (*names, *(f'new {number}' for number in range(data_classes - len(names))))


def make_openimages(root: str, num_classes: int = 264, data_classes: int = 601, faults: Sequence[str] = FAULTS) -> str:
    """OpenImages V6: csv files. ``'boxes'``: image 2 has an object without area, image 6 one outside of it."""
    mids = [f'/m/{label:04d}' for label in range(data_classes)]
    folder = Path(root, 'annotations')
    put(
        folder / 'class-descriptions-boxable.csv',
        ''.join(f'{mid},Class {label}\n' for label, mid in enumerate(mids)),
    )
    tree = dict(LabelName='/m/root', Subcategory=[dict(LabelName=mid) for mid in mids])
    put(folder / 'bbox_labels_600_hierarchy.json', json.dumps(tree))
    header = 'ImageID,Source,LabelName,Confidence,XMin,XMax,YMin,YMax,IsOccluded,IsTruncated,IsGroupOf,IsDepiction'
    for split, stem, images in (('train', 'oidv6-train', IMAGES), ('validation', 'validation', VAL_IMAGES)):
        rows, metas = [f'{header},IsInside'], []
        for number in range(images):
            name = f'{split}{number:03d}'
            write_image(osp.join(root, 'OpenImages', split, f'{name}.jpg'), seed=number)
            metas.append(dict(filename=f'{name}.jpg', ori_shape=(SIZE, SIZE, 3)))
            objects = things(number, num_classes, data_classes - 1, faults)
            if 'boxes' in faults and split == 'train':
                objects += {2: [Thing(3, EMPTY)], 6: [Thing(3, OUTSIDE)]}.get(number, [])
            for label, (x1, y1, x2, y2), _ in objects:
                fractions = ','.join(f'{value / SIZE:.6f}' for value in (x1, x2, y1, y2))
                rows.append(f'{name},xclick,{mids[label]},1,{fractions},0,0,0,0,0')
        put(folder / f'{stem}-annotations-bbox.csv', '\n'.join(rows) + '\n')
        put(folder / f'{split}-image-metas.pkl', pickle.dumps(metas))
    put(
        folder / 'validation-annotations-human-imagelabels-boxable.csv',
        'ImageID,Source,LabelName,Confidence\n'
        + ''.join(f'validation{number:03d},verification,/m/0000,1\n' for number in range(VAL_IMAGES)),
    )
    return root


def make_panoptic(root: str, num_classes: int = 133, data_classes: int = 136, faults: Sequence[str] = FAULTS) -> str:
    """COCO panoptic: stuff 80 and 90 in every image; the objects before them, one segment each; some void."""
    categories = [
        # 133 and 135 are things, 134 is stuff: classes that were added at the end.
        dict(id=10 + 2 * label, name=f'class {label}', isthing=int(label < NUM_THINGS or label in (133, 135)))
        for label in range(data_classes)
    ]
    for split, images in (('train', IMAGES), ('val', VAL_IMAGES)):
        annotations = []
        for number in range(images):
            name = f'{number:012d}'
            write_image(osp.join(root, f'{split}2017', f'{name}.jpg'), seed=number)
            ids = np.zeros((SIZE, SIZE), dtype=np.int64)  # 0: void
            # Ids beyond one byte, so that all three channels of the PNG carry something.
            segments = [(70_000 + number, 80, (0, 0, SIZE, 60)), (300, 90, (0, 60, SIZE, SIZE - 2))]
            if number == 6 and 'labels' in faults:
                segments.append((301, 134, (0, 70, 20, 90)))
            objects = things(number, num_classes, data_classes - 1, faults)
            segments += [(1000 + place, thing.label, thing.box) for place, thing in enumerate(objects)]
            for segment, _, (x1, y1, x2, y2) in segments:
                ids[y1:y2, x1:x2] = segment
            annotations.append(
                dict(
                    image_id=number,
                    file_name=f'{name}.png',
                    segments_info=[
                        dict(
                            id=segment,
                            category_id=10 + 2 * label,
                            iscrowd=0,
                            bbox=[x1, y1, x2 - x1, y2 - y1],
                            area=int((ids == segment).sum()),
                        )
                        for segment, label, (x1, y1, x2, y2) in segments
                    ],
                )
            )
            channels = np.stack([ids % 256, ids // 256 % 256, ids // 65536], axis=-1).astype(np.uint8)
            write(osp.join(root, 'annotations', f'panoptic_{split}2017', f'{name}.png'), channels)
        images_info = [
            dict(id=number, file_name=f'{number:012d}.jpg', height=SIZE, width=SIZE) for number in range(images)
        ]
        record = dict(images=images_info, categories=categories, annotations=annotations)
        put(Path(root, 'annotations', f'panoptic_{split}2017.json'), json.dumps(record))
    return root


MAKERS = dict(
    retinanet=make_openimages,
    faster_rcnn=make_voc,
    mask_rcnn=make_coco,
    dino=make_coco,
    mask2former=make_coco,
    panoptic_fpn=make_panoptic,
)


class Fault(NamedTuple):
    """An invalid object of a file: its label, and what is wrong."""

    source: str
    label: int
    reason: str


def faults_in_coco(root: str, split: str, num_classes: int) -> List[Fault]:
    record = json.loads(Path(root, 'annotations', f'instances_{split}2017.json').read_text())
    label_of = {category['id']: label for label, category in enumerate(record['categories'])}
    name_of = {image['id']: osp.join(f'{split}2017', image['file_name']) for image in record['images']}
    return [
        Fault(name_of[ann['image_id']], label_of[ann['category_id']], 'label')
        for ann in record['annotations']
        if not ann['iscrowd'] and label_of[ann['category_id']] >= num_classes
    ]


def faults_in_voc(
    root: str, split: str, num_classes: int, folders: Sequence[str] = ('VOC2007', 'VOC2012')
) -> List[Fault]:
    faults: List[Fault] = []
    names = voc_classes(23)
    for year in folders:
        index = Path(root, year, 'ImageSets', 'Main', f'{split}.txt')
        for stem in index.read_text().split() if index.exists() else ():
            source = osp.join(year, 'JPEGImages', f'{stem}.jpg')
            for thing in ET.parse(osp.join(root, year, 'Annotations', f'{stem}.xml')).iter('object'):
                if thing.findtext('difficult') == '1':
                    continue
                label = names.index(thing.findtext('name', ''))
                x1, y1, x2, y2 = (int(thing.findtext(f'bndbox/{side}', '')) for side in BNDBOX)
                faults += _faults(source, label, (x1 - 1, y1 - 1, x2 - 1, y2 - 1), num_classes)
    return faults


BNDBOX = ('xmin', 'ymin', 'xmax', 'ymax')


def faults_in_openimages(root: str, split: str, num_classes: int) -> List[Fault]:
    stem = 'oidv6-train' if split == 'train' else split
    mids = Path(root, 'annotations', 'class-descriptions-boxable.csv').read_text().splitlines()
    label_of = {mid: label for label, (mid, _) in enumerate(csv.reader(mids))}
    faults: List[Fault] = []
    with open(osp.join(root, 'annotations', f'{stem}-annotations-bbox.csv'), encoding='utf-8') as file:
        for row in csv.DictReader(file):
            box = tuple(float(row[side]) * SIZE for side in ('XMin', 'YMin', 'XMax', 'YMax'))
            source = osp.join('OpenImages', split, f'{row["ImageID"]}.jpg')
            faults += _faults(source, label_of[row['LabelName']], box, num_classes)
    return faults


def faults_in_panoptic(root: str, split: str, num_classes: int = NUM_THINGS) -> List[Fault]:
    """Return the faults of the objects; :func:`invalid_pixels` counts the pixels."""
    record = json.loads(Path(root, 'annotations', f'panoptic_{split}2017.json').read_text())
    label_of = {category['id']: label for label, category in enumerate(record['categories'])}
    is_thing = {category['id']: category['isthing'] for category in record['categories']}
    return [
        Fault(osp.join(f'{split}2017', ann['file_name'].replace('.png', '.jpg')), label_of[seg['category_id']], 'label')
        for ann in record['annotations']
        for seg in ann['segments_info']
        if is_thing[seg['category_id']] and label_of[seg['category_id']] >= num_classes
    ]


def invalid_pixels(root: str, split: str, num_classes: int = 133) -> Dict[str, Dict[str, int]]:
    """Image -> invalid value -> how many pixels of its label map have it, from the ids in the PNG."""
    record = json.loads(Path(root, 'annotations', f'panoptic_{split}2017.json').read_text())
    label_of = {category['id']: label for label, category in enumerate(record['categories'])}
    found: Dict[str, Dict[str, int]] = {}
    for ann in record['annotations']:
        label_of_segment = {seg['id']: label_of[seg['category_id']] for seg in ann['segments_info']}
        with Image.open(osp.join(root, 'annotations', f'panoptic_{split}2017', ann['file_name'])) as image:
            ids = Counter(red + 256 * green + 65536 * blue for red, green, blue in image.getdata())
        counts: Counter = Counter()
        for segment, pixels in ids.items():
            if label_of_segment.get(segment, 255) >= num_classes and segment in label_of_segment:
                counts[label_of_segment[segment]] += pixels
        if counts:
            source = osp.join(f'{split}2017', ann['file_name'].replace('.png', '.jpg'))
            found[source] = {str(value): n for value, n in sorted(counts.items())}
    return found


def _faults(source: str, label: int, box: Sequence[float], num_classes: int) -> List[Fault]:
    """One fault at most: the box comes first. A box outside of the image has no area once Resize has clipped it."""
    x1, y1, x2, y2 = (min(max(value, 0), SIZE) for value in box)
    if x2 <= x1 or y2 <= y1:
        return [Fault(source, label, 'box_no_area')]
    return [Fault(source, label, 'label')] if label >= num_classes else []


def expected_samples(faults: Sequence[Fault]) -> List[Dict[str, Any]]:
    """Return the expected line of the log for each file with a fault, sorted by name."""
    samples = []
    for source in sorted({fault.source for fault in faults}):
        here = [fault for fault in faults if fault.source == source]
        labels = Counter(str(fault.label) for fault in here if fault.reason == 'label')
        samples.append(
            dict(
                kind='instances',
                source=source,
                skipped=len(here),
                remapped=0,
                values=dict(sorted(labels.items(), key=lambda item: int(item[0]))),
                reasons=dict(Counter(fault.reason for fault in here)),
            )
        )
    return samples
