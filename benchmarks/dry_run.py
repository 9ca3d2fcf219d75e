"""``mmguard dry-run`` with all properties, as a command in a new process: time, CPU seconds and peak memory.

Runs official configs on small data sets (tests/properties/programs.py). CPU and memory are sums over the command
and its worker process.
"""

from __future__ import annotations

import json
import os
import random
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Dict, List, Tuple

import psutil

from benchmarks.timing import Row

CONFIGS = {
    'FCN R50': 'mmseg::fcn/fcn_r50-d8_4xb2-40k_cityscapes-512x1024.py',
    'PIDNet-S': 'mmseg::pidnet/pidnet-s_2xb6-120k_1024x1024-cityscapes.py',
    'RetinaNet R50': 'mmdet::retinanet/retinanet_r50_fpn_1x_coco.py',
    'Mask R-CNN R50': 'mmdet::mask_rcnn/mask-rcnn_r50_fpn_1x_coco.py',
    'DINO R50': 'mmdet::dino/dino-4scale_r50_8xb2-12e_coco.py',
    'Mask2Former R50': 'mmseg::mask2former/mask2former_r50_8xb2-160k_ade20k-512x512.py',
}
#: Bars for one config, in seconds and MiB, and for the CPU seconds of the median config.
MOST_SECONDS, MOST_MEMORY, MEDIAN_SECONDS = 60, 4096, 15
#: Seconds between two measurements of the memory.
_LOOK = 0.05


def rows(device: str, rounds: int) -> List[Row]:
    tests = Path(__file__).parents[1] / 'tests'
    sys.path[:0] = [str(tests), str(tests / 'properties')]
    from programs import tree_of, write_config

    found: Dict[str, List[Tuple[float, float, float]]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as root:
        paths = {}
        for name, config in CONFIGS.items():
            folder = Path(root, name)
            folder.mkdir()
            paths[name] = write_config(folder, tree_of(config))
        names, order = list(CONFIGS), random.Random(0)
        for _ in range(max(3, rounds // 5)):
            order.shuffle(names)
            for name in names:
                found[name].append(_run(paths[name], device))
    table, used = [], []
    for name in CONFIGS:
        seconds, processor, memory = (statistics.median(one) for one in zip(*found[name]))
        used.append(processor)
        table.append(Row(f'dry-run of {name}, all properties', seconds, None, MOST_SECONDS, 's'))
        table.append(Row('the same, CPU', processor, None, MOST_SECONDS, 's'))
        table.append(Row('the same, peak memory', memory, None, MOST_MEMORY, 'MiB'))
    return [*table, Row('dry-run, CPU, median of these configs', statistics.median(used), None, MEDIAN_SECONDS, 's')]


def _run(path: str, device: str) -> Tuple[float, float, float]:
    """Run the command; return seconds, CPU seconds, and peak memory in MiB."""
    out = f'{path}.json'
    words = ['dry-run', path, '--seconds', '600', '--device', device, '--json', out]
    start, peak = time.perf_counter(), 0.0
    used: Dict[int, float] = {}  # process id -> its CPU seconds at the last measurement
    with open(os.devnull, 'w') as null:
        command = psutil.Popen([sys.executable, '-m', 'mmguard.cli', *words], stdout=null, stderr=null)
        while command.poll() is None:
            family = [command, *_list_children(command)]
            peak = max(peak, sum(_read(one, 'memory_info', 'rss') for one in family) / 2**20)
            for one in family:
                seconds = _read(one, 'cpu_times', 'user') + _read(one, 'cpu_times', 'system')
                used[one.pid] = max(used.get(one.pid, 0.0), seconds)
            time.sleep(_LOOK)
    seconds = time.perf_counter() - start
    assert json.loads(Path(out).read_text())['properties'], 'nothing was tested'
    return seconds, sum(used.values()), peak


def _list_children(process: psutil.Process) -> List[psutil.Process]:
    try:
        return process.children(recursive=True)
    except psutil.Error:  # it has just ended
        return []


def _read(process: psutil.Process, figures: str, name: str) -> float:
    """Return a figure of a process; 0 if it has just ended."""
    try:
        return float(getattr(getattr(process, figures)(), name))
    except psutil.Error:
        return 0.0
