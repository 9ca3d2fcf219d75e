"""Compares what the guard logged with what was planted."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, List

import numpy as np

from mmguard.tools.demo.dataset import IGNORE_INDEX, NUM_CLASSES, SIZE, DataSet, read_png


@dataclass
class Verdict:
    """What the comparison found.

    Args:
        objections (list[str]): What does not fit; empty where all does.
        reads (dict[str, int]): Planted file -> how often the guard met it.
        pixels (int): Pixels that the guard reported.
    """

    objections: List[str] = field(default_factory=list)
    reads: Dict[str, int] = field(default_factory=dict)
    pixels: int = 0


def read_log(path: Path) -> List[Dict[str, Any]]:
    """The records of a ``label_guard.jsonl``, every sample with its values.

    A file that offends as it did the time before is logged without them.
    """
    records = [json.loads(line) for line in path.read_text(encoding='utf-8').splitlines()]
    before: Dict[str, Dict[str, int]] = {}
    for sample in (sample for record in records for sample in record['samples']):
        before[sample['source']] = sample.setdefault('values', before.get(sample['source'], {}))
    return records


def invalid_values(file: Path) -> Dict[int, int]:
    """Counts the invalid values of a label file, with numpy alone."""
    values, counts = np.unique(read_png(file), return_counts=True)
    found = zip(values.tolist(), counts.tolist())
    return {value: count for value, count in found if value >= NUM_CLASSES and value != IGNORE_INDEX}


def verify(records: List[Dict[str, Any]], dataset: DataSet, iters: int, batch_size: int) -> Verdict:
    """Compares the log with the label files and with what was planted in them, file by file and pixel by pixel.

    The sampler hands out every file once before any comes again, so it is known how often each must have been met.
    """
    verdict = Verdict()
    object_to = verdict.objections.append
    for file in dataset.labels:
        counted, planted = invalid_values(dataset.root / file), dataset.planted.get(file, {})
        if counted != planted:
            object_to(f'{file} holds {counted}, planted were {planted}')
    reads: Counter = Counter()
    for record in records:
        where = f'iteration {record["iter"]}'
        for sample in record['samples']:
            reads[sample['source']] += 1
            values = {int(value): count for value, count in sample['values'].items()}
            planted = dataset.planted.get(sample['source'], {})
            if values != planted or sample['skipped'] != sum(planted.values()):
                object_to(f'{where}: {sample["source"]} was logged with {values}, planted were {planted}')
        skipped = sum(sample['skipped'] for sample in record['samples'])
        if record['skipped_pixels'] != skipped:
            object_to(f'{where}: {record["skipped_pixels"]} px logged, its files add up to {skipped}')
        if record['total'] != batch_size * SIZE[0] * SIZE[1]:
            object_to(f'{where}: {record["total"]} px seen, the batch has {batch_size * SIZE[0] * SIZE[1]}')
        counted_twice = sum(loss['skipped'] for loss in record['losses'].values())
        if counted_twice:
            object_to(f'{where}: the losses counted {counted_twice} px that the pipeline had sanitized')
        verdict.pixels += record['skipped_pixels']
    rounds, rest = divmod(iters * batch_size, len(dataset.labels))
    for file in dataset.planted:
        verdict.reads[file] = reads[file]
        if not rounds <= reads[file] <= rounds + bool(rest):
            object_to(
                f'{file} was logged {reads[file]} times, trained on {rounds}{f" or {rounds + 1}" if rest else ""}'
            )
    return verdict
