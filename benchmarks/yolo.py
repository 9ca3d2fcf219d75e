"""Scan of YOLO label files, compared with ultralytics' check of labels: ``python -m benchmarks.yolo``.

Needs ultralytics, which no stack has: make an environment with it, and run ``PYTHONPATH=. python -m benchmarks.yolo
[--files 100000] [--rounds 3]``. In other environments it prints that it is skipped. Both sides also read the images.
"""

from __future__ import annotations

import argparse
import importlib.util
import io
import os
import random
import sys
import tempfile
from itertools import repeat
from multiprocessing.pool import ThreadPool
from typing import List

from benchmarks.timing import Row, interleaved

FILES, CLASSES, ROWS, BAR = 100_000, 80, 7, 0.5


def rows(device: str, rounds: int, files: int = FILES) -> List[Row]:
    """Measure a set of valid boxes: mmguard with one process per core, ultralytics with its own number of threads."""
    if importlib.util.find_spec('ultralytics') is None:
        print('yolo: skipped, ultralytics is not installed here (see benchmarks/yolo.py)', file=sys.stderr)
        return []
    from ultralytics.data.utils import img2label_paths, verify_image_label
    from ultralytics.utils import NUM_THREADS

    from mmguard.formats.yolo import find_yolo_sets
    from mmguard.scanning.executors import LocalProcesses, count_cores

    with tempfile.TemporaryDirectory() as folder:
        images = make(folder, files)

        def ours() -> None:
            (found,) = find_yolo_sets(os.path.join(folder, 'data.yaml'))
            assert found.read(None, LocalProcesses(count_cores())).total == files * ROWS

        def peer() -> None:
            said = (repeat(value) for value in ('', False, CLASSES, 0, 0, False))
            with ThreadPool(NUM_THREADS) as pool:
                checked = list(pool.imap(verify_image_label, zip(images, img2label_paths(images), *said)))
            assert sum(len(one[1]) for one in checked) == files * ROWS

        times = interleaved({'ours': ours, 'peer': peer}, rounds)
    return [Row(f'scan of {files:,} texts of YOLO / ultralytics', times['ours'], times['peer'], BAR)]


def make(folder: str, files: int) -> List[str]:
    """Write a set with valid labels; return the names of its images."""
    import numpy as np
    from PIL import Image

    draw, rng = random.Random(0), np.random.default_rng(0)
    pictures = []
    for _ in range(20):
        out = io.BytesIO()
        Image.fromarray(rng.integers(0, 255, (60, 80, 3), dtype=np.uint8)).resize((320, 240)).save(out, 'JPEG')
        pictures.append(out.getvalue())
    texts = [''.join(_row(draw) for _ in range(ROWS)) for _ in range(500)]
    for kind in ('images', 'labels'):
        os.makedirs(os.path.join(folder, kind, 'train'))
    names = []
    for number in range(files):
        names.append(os.path.join(folder, 'images', 'train', f'{number:06d}.jpg'))
        with open(names[-1], 'wb') as picture:
            picture.write(pictures[number % 20])
        with open(os.path.join(folder, 'labels', 'train', f'{number:06d}.txt'), 'w', encoding='utf-8') as text:
            text.write(texts[number % 500])
    with open(os.path.join(folder, 'data.yaml'), 'w', encoding='utf-8') as file:
        file.write(f'train: images/train\nval: images/train\nnames: {[str(label) for label in range(CLASSES)]}\n')
    return names


def _row(draw: random.Random) -> str:
    x, y, w, h = (draw.uniform(*span) for span in ((0.3, 0.7), (0.3, 0.7), (0.05, 0.5), (0.05, 0.5)))
    return f'{draw.randrange(CLASSES)} {x:.6f} {y:.6f} {w:.6f} {h:.6f}\n'


def main() -> int:
    parser = argparse.ArgumentParser(prog='benchmarks.yolo', description=__doc__)
    parser.add_argument('--files', type=int, default=FILES)
    parser.add_argument('--rounds', type=int, default=3)
    args = parser.parse_args()
    for row in rows('cpu', args.rounds, args.files):
        print(f'{row.what}: {row.ours:.4g} ms, {row.peer:.4g} ms, ratio {row.figure:.3f}, holds: {row.holds}')
    return 0


if __name__ == '__main__':
    sys.exit(main())
