"""What scans clean is what mmdet's own data sets load, and train: files that are damaged at random."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import pickle
import random
from collections import Counter
from itertools import groupby
from pathlib import Path
from typing import Any, Callable, Dict, List

import pytest
from coco_cases import NAMES, ann, coco, histogram
from mutants import as_json, bytewise, structural
from PIL import Image
from test_voc_scan import obj, xml
from test_voc_scan import write as write_voc

from mmguard.findings import LabelFacts, diagnose
from mmguard.tools.scan.annotations import scan_coco, scan_openimages, scan_voc

#: Files of each seed and kind.
MUTANTS = 40
SEEDS = range(5)


def is_clean(facts: LabelFacts) -> bool:
    return all(finding.severity == 'info' for finding in diagnose(facts))


def mutant_of_coco(draw: random.Random) -> bytes:
    record = with_masks()
    if draw.random() < 0.5:
        return as_json(structural(record, draw))
    return bytewise(as_json(record), draw)


def trained_by(dataset: Any) -> Dict[int, int]:
    labels = [
        [one['bbox_label'] for one in image['instances'] if not one['ignore_flag']] for image in dataset.data_list
    ]
    return histogram(labels)


def agree(scan: Callable[[], LabelFacts], load: Callable[[], Dict[int, int]]) -> bool:
    """Whether a file scans clean; then mmdet trains what was counted."""
    facts = scan()
    if not is_clean(facts):
        return False
    with contextlib.redirect_stdout(io.StringIO()):
        assert load() == facts.histogram
    return True


def with_masks() -> Dict[str, Any]:
    from pycocotools import mask as encoder

    runs = {'size': [80, 100], 'counts': [810, 20, 60, 20, 60, 20, 7010]}
    text = {'size': [80, 100], 'counts': encoder.frPyObjects(dict(runs), 80, 100)['counts'].decode()}
    masks = [[[10, 10, 30, 10, 30, 30]], runs, [[10, 10, 30, 10, 30, 30], [12, 12, 14, 12, 14, 14]], text, text]
    record = coco([ann(n, n % 3, n % 3 + 1, segmentation=mask, iscrowd=int(n == 1)) for n, mask in enumerate(masks)])
    record['annotations'][0].update(note='größe', keypoints=[1, 2, 0])
    record['images'][0].update(license=3, taken='2013')
    return {**record, 'info': {'year': 2017, 'by': ['a', 'b']}, 'licenses': [{'id': 1, 'name': 'x'}]}


def trained_from_coco(path: Path) -> Dict[int, int]:
    """With its masks."""
    from mmdet.datasets import CocoDataset
    from mmdet.datasets.transforms import LoadAnnotations

    dataset = CocoDataset(
        ann_file=str(path),
        data_prefix=dict(img=''),
        metainfo=dict(classes=tuple(NAMES)),
        pipeline=[],
        filter_cfg=dict(filter_empty_gt=True, min_size=32),
        serialize_data=False,
    )
    counts: Counter = Counter()
    load = LoadAnnotations(with_bbox=True, with_mask=True)
    for image in dataset.data_list:
        loaded = load({**image, 'ori_shape': (image['height'], image['width'])})
        assert len(loaded['gt_masks']) == len(loaded['gt_bboxes'])
        counts.update(loaded['gt_bboxes_labels'][~loaded['gt_ignore_flags']].tolist())
    return dict(sorted(counts.items()))


@pytest.mark.parametrize('seed', SEEDS)
def test_coco(tmp_path: Path, seed: int) -> None:
    draw, path = random.Random(seed), tmp_path / 'train.json'
    clean = 0
    for _ in range(2 * MUTANTS):
        path.write_bytes(mutant_of_coco(draw))
        clean += agree(lambda: scan_coco(str(path), class_names=NAMES, masks=True), lambda: trained_from_coco(path))
    assert 0 < clean < 2 * MUTANTS


def test_the_undamaged_files_are_clean(tmp_path: Path) -> None:
    path = tmp_path / 'train.json'
    path.write_bytes(as_json(with_masks()))
    assert agree(lambda: scan_coco(str(path), class_names=NAMES, masks=True), lambda: trained_from_coco(path))


#: What is replaced in a file of VOC, and by what.
OLD = ('<annotation>', 'object>', 'size>', 'name>', '>cat<', '>11<', '>31<', '>100<', '>0<', '>1<', '<')
NEW = (
    *('<annotation xmlns="http://x">', '<a:b xmlns:a="y">', 'x:object>', 'part>', '<name/><', '>&#49;<', '>&a;<', '><'),
    *('>1e400<', '>nan<', '>1_0<', '> 7 <', '>0x1f<', '>12.9<', '><!-- a -->8<', '>-3<', '>\ud7ff<', '>dog<'),
    f'>{"9" * 5000}<',
)


def voc_text(draw: random.Random) -> bytes:
    objects = [obj(NAMES[n], (11 + n, 11, 31, 31), difficult=n % 2) for n in range(3)]
    text = xml(*objects)
    for _ in range(draw.randint(1, 2)):
        old = draw.choice(OLD)
        new = draw.choice(NEW)
        text = text.replace(old, new, draw.choice([1, 1, -1]))
    data = text.encode('utf-8', 'replace')
    return bytewise(data, draw) if draw.random() < 0.4 else data


@pytest.mark.parametrize('seed', SEEDS)
def test_voc(tmp_path: Path, seed: int) -> None:
    from mmdet.datasets import XMLDataset

    draw = random.Random(seed)
    root = write_voc(tmp_path, {'a': xml(obj()), 'b': b''})

    def load() -> Dict[int, int]:
        prefix = dict(sub_data_root='')
        meta = dict(classes=tuple(NAMES))
        listed = 'ImageSets/Main/train.txt'
        more = dict(pipeline=[], serialize_data=False)
        return trained_by(XMLDataset(data_root=root, ann_file=listed, data_prefix=prefix, metainfo=meta, **more))

    clean = 0
    for _ in range(2 * MUTANTS):
        (tmp_path / 'Annotations' / 'b.xml').write_bytes(voc_text(draw))
        clean += agree(lambda: scan_voc(root, class_names=NAMES, split='train'), load)
    assert 0 < clean < 2 * MUTANTS


FILES = ('boxes.csv', 'classes.csv')


def write_openimages(root: Path) -> None:
    rows = [f'{name},x,/m/{n},1,0.1,0.5,0.1,0.5,0,0,0,1,-1' for name in 'ab' for n in range(3)]
    (root / 'boxes.csv').write_text('\n'.join(['header' + ',' * 12, *rows, '']))
    (root / 'classes.csv').write_text(''.join(f'/m/{n},{name}\n' for n, name in enumerate(NAMES)))
    (root / 'tree.json').write_text(json.dumps(dict(LabelName='/m/root', Subcategory=[])))
    write_metas(root)
    for name in 'ab':
        Image.new('RGB', (40, 30)).save(root / f'{name}.jpg')


def write_metas(root: Path) -> None:
    """Write the sizes of the images in the order of the boxes: another order ends mmdet, and is not looked for."""
    with open(root / 'boxes.csv', encoding='utf-8') as file:
        listed = [name for name, _ in groupby(row[0] for row in list(csv.reader(file))[1:])]
    metas = [dict(filename=f'some/where/{name}.jpg', ori_shape=(30, 40, 3)) for name in listed]
    (root / 'metas.pkl').write_bytes(pickle.dumps(metas))


def damaged(path: Path, draw: random.Random) -> bytes:
    data = path.read_bytes()
    if draw.random() < 0.5:
        return bytewise(data, draw)
    rows: List[str] = structural([line.split(',') for line in data.decode().split('\n')], draw)
    lines = [','.join(map(str, row)) if isinstance(row, list) else str(row) for row in rows]
    return '\n'.join(lines).encode('utf-8', 'surrogatepass')


@pytest.mark.parametrize('seed', SEEDS)
def test_openimages(tmp_path: Path, seed: int) -> None:
    from mmdet.datasets import OpenImagesDataset

    draw = random.Random(seed)
    boxes, classes, metas, tree = (str(tmp_path / name) for name in (*FILES, 'metas.pkl', 'tree.json'))

    def load() -> Dict[int, int]:
        write_metas(tmp_path)
        more = dict(data_prefix=dict(img=''), pipeline=[], serialize_data=False)
        return trained_by(OpenImagesDataset(classes, metas, tree, ann_file=boxes, **more))

    def scan() -> LabelFacts:
        return scan_openimages(boxes, classes, images=str(tmp_path))

    write_openimages(tmp_path)
    assert agree(scan, load)
    clean = 0
    for number in range(2 * MUTANTS):
        path = tmp_path / FILES[number % len(FILES)]
        whole = path.read_bytes()
        path.write_bytes(damaged(path, draw))
        clean += agree(scan, load)
        path.write_bytes(whole)
    assert 0 < clean < 2 * MUTANTS
