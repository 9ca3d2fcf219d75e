"""Scan of a COCO file, compared with ``pycocotools.COCO(...)``, with which detection frameworks load such a file."""

from __future__ import annotations

import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
from typing import Dict, List, TextIO

from benchmarks.timing import Row

ANNOTATIONS, CLASSES = 1_000_000, 80
#: As in COCO train2017: 860,001 annotations of 118,287 images, polygons of 22 points on average.
PER_IMAGE, POINTS = 7, 22
#: A child process loads the file and prints the seconds, and the peak memory beyond its imports in MiB. Not ru_maxrss,
#: which survives exec and so includes the parent; VmHWM is the child's own.
CHILD = """
import contextlib, io, re, sys, time
def memory(name):
    return int(re.search(name + r':\\s+(\\d+) kB', open('/proc/self/status').read()).group(1)) / 1024
{imports}
before = memory('VmRSS')
start = time.perf_counter()
with contextlib.redirect_stdout(io.StringIO()):
    result = {call}
seconds = time.perf_counter() - start
peak = memory('VmHWM')
assert {count} == {annotations}
print(seconds, peak - before)
"""
SIDES = {
    'ours': dict(
        imports='from mmguard.formats.coco.read import scan_coco',
        call='scan_coco(sys.argv[1], class_names=[f"class {n}" for n in range(80)])',
        count='result.total',
    ),
    'peer': dict(imports='from pycocotools.coco import COCO', call='COCO(sys.argv[1])', count='len(result.anns)'),
}


def rows(device: str, rounds: int) -> List[Row]:
    """Measure time and peak memory; every round runs each side in a new process."""
    table = []
    with tempfile.TemporaryDirectory() as folder:
        for what, points in (('polygons', POINTS), ('only boxes', 0)):
            path = os.path.join(folder, 'instances.json')
            with open(path, 'w', encoding='utf-8') as file:
                write_coco(file, ANNOTATIONS, points)
            seconds: Dict[str, List[float]] = {side: [] for side in SIDES}
            peaks: Dict[str, List[float]] = {side: [] for side in SIDES}
            for number in range(max(3, rounds // 5)):
                for side in sorted(SIDES, reverse=bool(number % 2)):
                    taken, peak = _measure(side, path)
                    seconds[side].append(taken)
                    peaks[side].append(peak)
            second = {side: statistics.median(taken) for side, taken in seconds.items()}
            peak = {side: statistics.median(taken) for side, taken in peaks.items()}
            name = f'scan_coco / pycocotools.COCO, {ANNOTATIONS:,} annotations, {what}'
            table.append(Row(f'{name}: time', 1e3 * second['ours'], 1e3 * second['peer'], 1 / 3))
            table.append(Row(f'{name}: peak memory', peak['ours'], peak['peer'], 1 / 3, 'MiB'))
    return table


def write_coco(file: TextIO, annotations: int, points: int) -> None:
    """Write a file like COCO's own, in ``json.dump``'s layout, without building it in memory."""
    draw = random.Random(0)
    images = annotations // PER_IMAGE
    # 500 polygons are repeated: drawing 44 million numbers would take longer than all measurements.
    polygons = [[round(draw.uniform(0, 640), 2) for _ in range(2 * points)] for _ in range(500)]
    masks = [json.dumps([polygon] if points else []) for polygon in polygons]
    file.write('{"info": {"year": 2017}, "licenses": [], "images": [')
    for number in range(images):
        record = dict(license=1, file_name=f'{number:012d}.jpg', height=480, width=640, id=number)
        file.write(f'{", " if number else ""}{json.dumps(record)}')
    file.write('], "annotations": [')
    for number in range(annotations):
        x, y, w, h = (round(draw.uniform(low, high), 2) for low, high in ((0, 500), (0, 400), (2, 140), (2, 80)))
        file.write(
            f'{", " if number else ""}{{"segmentation": {masks[number % 500]}, "area": {w * h:.4f}, "iscrowd": 0, '
            f'"image_id": {draw.randrange(images)}, "bbox": [{x}, {y}, {w}, {h}], '
            f'"category_id": {draw.randrange(CLASSES)}, "id": {number}}}'
        )
    categories = [dict(supercategory='thing', id=number, name=f'class {number}') for number in range(CLASSES)]
    file.write(f'], "categories": {json.dumps(categories)}}}')


def _measure(side: str, path: str) -> List[float]:
    code = CHILD.format(annotations=ANNOTATIONS, **SIDES[side])
    command = [sys.executable, '-W', 'ignore', '-c', code, path]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [float(number) for number in printed.split()]
