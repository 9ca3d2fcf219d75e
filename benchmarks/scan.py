"""Scan of label maps: time compared with decoding only and with numpy and pandas, two processes, and memory."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Callable, Dict, List

import numpy as np
import pandas as pd
from PIL import Image

from benchmarks.timing import Row, interleaved
from mmguard.formats.maps.sources import FolderSource, scan_maps
from mmguard.formats.options import MapSettings
from mmguard.scanning.executors import LocalProcesses, count_cores

SIZE = (1024, 2048)
FILES = 16
LABELS = MapSettings(num_classes=19)
FEW, MANY = 1_000, 100_000


def street(seed: int, invalid: bool = False) -> np.ndarray:
    """Return a label map with about as many edges as one of Cityscapes: 19 classes in irregular regions."""
    rng = np.random.default_rng(seed)
    rows = np.cumsum(rng.integers(-1, 2, SIZE[0]))
    columns = np.cumsum(rng.integers(-1, 2, SIZE[1]))
    coarse = rng.integers(0, 19, (20, 40)).astype(np.uint8)
    y = (np.arange(SIZE[0])[:, None] + columns[None, :]) // 64 % 20
    x = (np.arange(SIZE[1])[None, :] + rows[:, None]) // 64 % 40
    label = coarse[y, x]
    label[-64:] = 255
    if invalid:
        label[100:140, 100:180] = 33
    return label


def rows(device: str, rounds: int) -> List[Row]:
    with tempfile.TemporaryDirectory() as folder:
        clean, offending = (os.path.join(folder, name) for name in ('clean', 'offending'))
        for root in (clean, offending):
            os.mkdir(root)
            for number in range(FILES):
                Image.fromarray(street(number, root == offending)).save(f'{root}/{number:03d}.png')
        return _speed(clean, offending, rounds) + _scaling(clean, folder, rounds) + _memory(folder)


def _speed(clean: str, offending: str, rounds: int) -> List[Row]:
    files = sorted(str(path) for path in Path(clean).iterdir())

    def decode() -> None:
        # As mmseg's loader and every other reader: the file becomes an array.
        _decode(files)

    def decode_inside() -> None:
        for file in files:
            with Image.open(file) as image:
                image.load()

    def peer(values: Callable[[np.ndarray], object]) -> Callable[[], None]:
        def run() -> None:
            for file in files:
                values(np.asarray(Image.open(file)))

        return run

    def ours(root: str) -> Callable[[], object]:
        def run() -> object:
            # Everything that the command does per file: listing, stat, record, tally.
            return scan_maps(FolderSource(root, LABELS).items(), LABELS)

        return run

    calls: Dict[str, Callable[[], object]] = {
        'ours': ours(clean),
        'offending': ours(offending),
        'bare': decode,
        'inside': decode_inside,
        'pandas': peer(lambda label: pd.unique(label.ravel())),
        'numpy': peer(lambda label: np.unique(label, return_counts=True)),
    }
    times = {name: time / FILES for name, time in interleaved(calls, max(3, rounds // 2)).items()}
    return [
        Row('scan 2048x1024, per file / bare decoding', times['ours'], times['bare'], 1.25),
        Row('scan, per file / decoding that no array comes out of', times['ours'], times['inside'], None),
        Row('scan, every file with invalid pixels / bare decoding', times['offending'], times['bare'], None),
        Row('scan, per file / pandas.unique (nnU-Net)', times['ours'], times['pandas'], None),
        Row('scan, per file / numpy.unique', times['ours'], times['numpy'], None),
    ]


def _scaling(clean: str, folder: str, rounds: int) -> List[Row]:
    linked = os.path.join(folder, 'linked')
    os.mkdir(linked)
    sources = sorted(Path(clean).iterdir())
    for number in range(256):
        os.link(sources[number % FILES], f'{linked}/{number:04d}.png')

    def scan(processes: int) -> Callable[[], object]:
        return lambda: scan_maps(FolderSource(linked, LABELS).items(), LABELS, LocalProcesses(processes))

    def bare(processes: int) -> Callable[[], object]:
        # Files are distributed before the start and no result is returned: the fastest possible parallel decoding.
        parts = [sorted(map(str, Path(linked).iterdir()))[place::processes] for place in range(processes)]

        def run() -> None:
            running = [multiprocessing.Process(target=_decode, args=(part,)) for part in parts]
            for process in running:
                process.start()
            for process in running:
                process.join()

        return run

    calls = {'one': scan(1), 'two': scan(2), 'bare one': bare(1), 'bare two': bare(2)}
    times = interleaved(calls, max(3, rounds // 4))
    # At least 1.7 times as fast: at most 1 / 1.7 of the time. No bar with a single core.
    bar = 1 / 1.7 if count_cores() > 1 else None
    return [
        Row('scan, 2 processes / 1', times['two'], times['one'], bar),
        Row('bare decoding, 2 processes / 1', times['bare two'], times['bare one'], None),
    ]


def _decode(files: List[str]) -> None:
    for file in files:
        np.array(Image.open(file))


_CHILD = """
import sys
from pathlib import Path
from mmguard.formats.maps.sources import scan_maps
from mmguard.formats.options import MapSettings
from mmguard.formats.maps.sources import FolderSource

def resident():
    return int(Path('/proc/self/statm').read_text().split()[1]) * 4096 / 2**20

labels, peak = MapSettings(19), 0.0

def look(files):
    global peak
    peak = max(peak, resident())

start = resident()
done = scan_maps(FolderSource(sys.argv[1], labels).items(), labels, on_files=look)
print(done.files, peak - start)
"""


def _memory(folder: str) -> List[Row]:
    """Measure the peak memory of a scan beyond its imports, for links to 16 small files, in new processes."""
    small = os.path.join(folder, 'small')
    os.mkdir(small)
    for number in range(FILES):
        Image.fromarray(street(number, invalid=True)[:64, :64]).save(f'{small}/{number:03d}.png')
    peaks = {}
    for number in (FEW, MANY):
        linked = os.path.join(folder, f'links{number}')
        for place in range(number):
            # 1,000 names per folder, as in data sets of this size.
            inner = f'{linked}/{place // 1000:03d}'
            if place % 1000 == 0:
                os.makedirs(inner)
            os.link(f'{small}/{place % FILES:03d}.png', f'{inner}/{place:06d}.png')
        command = [sys.executable, '-c', _CHILD, linked]
        out = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
        assert int(out[0]) == number
        peaks[number] = float(out[1])
    # At most 4 MiB more for a hundred times the files.
    return [
        Row(f'scan, memory beyond the imports: {MANY:,} files / {FEW:,}', peaks[MANY], peaks[FEW], None, 'MiB'),
        Row(f'scan, memory grown from {FEW:,} to {MANY:,} files, MiB', peaks[MANY] - peaks[FEW], None, 4, 'MiB'),
    ]
